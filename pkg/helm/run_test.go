package helm

import (
	"bytes"
	"log"
	"log/slog"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/release/common"
	releasev1 "helm.sh/helm/v4/pkg/release/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

func TestVersionLabel(t *testing.T) {
	for version, want := range map[string]string{
		"1.2.3":       "1.2.3",
		"1.2.3+build": "1.2.3_build",
		"1.2.3-rc-":   "1.2.3-rc",
		"1.2.3+" + strings.Repeat("0123456789", 7):    "1.2.3_" + strings.Repeat("0123456789", 5) + "0123456",
		"1.2.3-" + strings.Repeat("a", 56) + "+build": "1.2.3-" + strings.Repeat("a", 56),
	} {
		got := versionLabel(version)
		if got != want || len(validation.IsValidLabelValue(got)) > 0 {
			t.Errorf("%s became %q, want %q", version, got, want)
		}
	}
}

// Helm warns about values on the standard library's loggers.
func TestTheStandardLoggersAreSilent(t *testing.T) {
	var written bytes.Buffer

	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&written, nil)))
	t.Cleanup(func() { slog.SetDefault(before) })

	New(Target{}, logr.Discard(), 0)
	forProcess() // whoever called New before
	log.Printf("warning: %s", "canary")
	slog.Warn("canary")

	if written.Len() > 0 {
		t.Errorf("written: %s", &written)
	}
}

func TestUnlock(t *testing.T) {
	for before, want := range map[common.Status]common.Status{
		common.StatusPendingUpgrade: common.StatusFailed,
		common.StatusUnknown:        common.StatusFailed,
		common.StatusUninstalling:   common.StatusFailed,
		common.StatusDeployed:       common.StatusDeployed, // it has ended meanwhile
	} {
		store, _, _ := newStorage(t, 0, record(1, before))
		c := New(Target{Name: "demo"}, logr.Discard(), 0)

		if err := c.unlock(&execution{config: &action.Configuration{Releases: store}}, 1); err != nil {
			t.Fatal(err)
		}

		found, err := store.Get("demo", 1)
		if err != nil {
			t.Fatal(err)
		}

		if got := found.(*releasev1.Release).Info.Status; got != want {
			t.Errorf("%s became %s, want %s", before, got, want)
		}

		if mark := found.(*releasev1.Release).Labels[labelLeftUninstalling]; (mark == "1") != (before == common.StatusUninstalling) {
			t.Errorf("%s has the mark %q", before, mark)
		}
	}
}
