package bounds

import "testing"

func TestLimitsHaveDefaults(t *testing.T) {
	for _, test := range []struct{ given, want Limits }{
		{Limits{}, Limits{100, 200, DefaultResources, DefaultMemory, DefaultTotalMemory}},
		{Limits{QPS: 5}, Limits{5, 200, DefaultResources, DefaultMemory, DefaultTotalMemory}},
		{Limits{QPS: 0.5, Burst: 1, Resources: 2, Memory: 3, TotalMemory: 4}, Limits{0.5, 1, 2, 3, 4}},
	} {
		if got := test.given.WithDefaults(); got != test.want {
			t.Errorf("%+v: %+v", test.given, got)
		}
	}
}
