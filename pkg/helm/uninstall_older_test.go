package helm

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/release/common"
	releasev1 "helm.sh/helm/v4/pkg/release/v1"

	"omni.texashpc.com/omni-cluster-operator/test/foreigntest"
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

		if got := withObjectsLeft(numbers, statuses); !slices.Equal(got, test.want) {
			t.Errorf("%s: %v, want %v", name, got, test.want)
		}
	}
}

// What an uninstallation covers is bounded together, and of the older revisions it keeps nothing else.
func TestCoveredRevisionsAreBounded(t *testing.T) {
	foreigntest.Sequential(t)

	for _, test := range []struct {
		values int
		want   Reason // empty: it is covered
	}{{10, ""}, {200_000, ReasonRecord}} {
		var records []*releasev1.Release

		for version := range 3 {
			one := record(version+1, common.StatusFailed)
			one.Manifest = object("of-"+strconv.Itoa(version)) + "x: [" + strings.Repeat("a,", test.values) + "]\n"
			records = append(records, one)
		}

		store, wrapped, _ := newStorage(t, 0, records...)
		x := &execution{config: &action.Configuration{Releases: store}, storage: wrapped, values: &redactor{}, soft: t.Context()}
		c := New(Target{Name: "demo", Namespace: "apps"}, logr.Discard(), 0)

		newest, err := c.newest(x)
		if err != nil {
			t.Fatal(err)
		}

		var failure *Error
		if err := c.coverAll(x, newest); err != nil && !errors.As(classify("uninstall", err, nil), &failure) || (err != nil) != (test.want != "") ||
			failure != nil && failure.Reason != test.want {
			t.Errorf("%d values: %v", test.values, err)
		}

		if test.want == "" && (len(wrapped.read) != 1 || strings.Count(newest.Manifest, "of-") != 3) {
			t.Errorf("%d records are kept; the manifest is %s", len(wrapped.read), newest.Manifest)
		}
	}
}
