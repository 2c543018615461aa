package helm

import (
	"slices"
	"testing"
)

func TestRevisionsThatMayHaveLeftObjects(t *testing.T) {
	const good, bad, replaced = StatusDeployed, StatusFailed, StatusSuperseded

	for name, test := range map[string]struct {
		statuses []Status // the oldest first, numbered from 1
		want     []int
	}{
		"one":                         {[]Status{bad}, nil},
		"deployed":                    {[]Status{bad, replaced, good}, nil},
		"failed":                      {[]Status{replaced, good, bad}, []int{2}},
		"failed again":                {[]Status{replaced, good, bad, bad}, []int{3, 2}},
		"begun to uninstall":          {[]Status{replaced, good, bad, StatusUninstalling}, []int{3, 2}},
		"begun to uninstall, good":    {[]Status{replaced, bad, StatusUninstalling}, []int{2}},
		"never good":                  {[]Status{bad, bad, StatusPendingUpgrade}, []int{2, 1}},
		"crash after it was replaced": {[]Status{replaced, replaced, StatusPendingUpgrade}, nil},
		"uninstalled and back":        {[]Status{good, StatusUninstalled, bad, bad}, []int{3}},
		"uninstalled by hand":         {[]Status{good, bad, StatusUninstalled}, nil},
	} {
		var numbers []int

		statuses := map[int]Status{}
		for i, status := range test.statuses {
			numbers, statuses[i+1] = append(numbers, i+1), status
		}

		if got := unfinished(numbers, statuses); !slices.Equal(got, test.want) {
			t.Errorf("%s: %v, want %v", name, got, test.want)
		}
	}
}
