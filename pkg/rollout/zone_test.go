package rollout_test

import (
	"strings"
	"testing"

	"omni.texashpc.com/omni-cluster-operator/pkg/rollout"
)

func TestZone(t *testing.T) {
	for _, name := range []string{"UTC", "Europe/Berlin", "America/Argentina/Buenos_Aires", "Pacific/Apia", "Australia/Lord_Howe"} {
		zone, err := rollout.Zone(name)
		if err != nil || zone.String() != name {
			t.Errorf("%s: %v, %v", name, zone, err)
		}
	}

	for _, name := range []string{"", "CET", "EST5EDT", "Local", "utc", "GMT", "Etc/GMT+1", "Europe/Nowhere", "../etc/passwd", "/etc/localtime", "Europe/../../etc"} {
		zone, err := rollout.Zone(name)
		if err == nil {
			t.Errorf("%q is %s, want an error", name, zone)

			continue
		}

		if got := err.Error(); !strings.Contains(got, `"Europe/Berlin"`) {
			t.Errorf("%q: the error does not say what to write: %s", name, got)
		}
	}
}
