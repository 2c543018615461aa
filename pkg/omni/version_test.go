package omni_test

import (
	"testing"

	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
)

func TestVersionIsOlderOrNewer(t *testing.T) {
	for _, test := range []struct {
		version      omni.Version
		older, newer bool
	}{
		{omni.Version{}, false, false},
		{omni.Version{Text: "v1.8.7", API: 2}, true, false},
		{omni.Version{Text: "v1.9.0", API: 2}, false, false},
		{omni.Version{Text: "v1.11.3-beta.0", API: 3}, false, false},
		{omni.Version{Text: "v1.12.0", API: 3}, false, true},
		{omni.Version{Text: "main", API: 3}, false, false},
		{omni.Version{Text: "main", API: 4}, false, true},
		{omni.Version{Text: "v2.0.0", API: 3}, false, true},
		{omni.Version{Text: "v0.50.0", API: 1}, true, false},
	} {
		if test.version.IsOlder() != test.older || test.version.IsNewer() != test.newer {
			t.Errorf("%+v: older %t, newer %t", test.version, test.version.IsOlder(), test.version.IsNewer())
		}
	}
}
