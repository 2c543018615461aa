package mirror

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cosi-project/runtime/pkg/resource"
	omnires "github.com/siderolabs/omni/client/pkg/omni/resources/omni"

	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
	"omni.texashpc.com/omni-cluster-operator/test/await"
	"omni.texashpc.com/omni-cluster-operator/test/omnitest"
)

// at returns a cluster with a version and a time of creation.
func at(t *testing.T, version string, created time.Time) *omnires.Cluster {
	t.Helper()

	cluster := omnitest.ClusterNamed("demo")

	parsed, err := resource.ParseVersion(version)
	if err != nil {
		t.Fatal(err)
	}

	cluster.Metadata().SetVersion(parsed)
	cluster.Metadata().SetCreated(created)
	cluster.Metadata().SetUpdated(created)

	return cluster
}

func TestWritesAreVisible(t *testing.T) {
	morning := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	later := morning.Add(time.Hour)

	leaving := at(t, "2", morning)
	leaving.Metadata().SetPhase(resource.PhaseTearingDown)

	for name, test := range map[string]struct {
		effect omni.Effect
		copied *omnires.Cluster
		want   bool
	}{
		"created, not there":             {omni.EffectCreated, nil, false},
		"created, there":                 {omni.EffectCreated, at(t, "2", morning), true},
		"updated, older":                 {omni.EffectUpdated, at(t, "1", morning), false},
		"updated, same":                  {omni.EffectUpdated, at(t, "2", morning), true},
		"updated, newer":                 {omni.EffectUpdated, at(t, "7", morning), true},
		"updated, gone since":            {omni.EffectUpdated, nil, true},
		"torn down, still running":       {omni.EffectTornDown, at(t, "2", morning), false},
		"torn down, tearing down":        {omni.EffectTornDown, leaving, true},
		"torn down, gone":                {omni.EffectTornDown, nil, true},
		"destroyed, still there":         {omni.EffectGone, leaving, false},
		"destroyed, gone":                {omni.EffectGone, nil, true},
		"destroyed, made again meantime": {omni.EffectGone, at(t, "1", later), true},
	} {
		t.Run(name, func(t *testing.T) {
			copied := newStore(mirroredKinds())
			if test.copied != nil {
				copied.put(stored{Resource: test.copied})
			}

			now := morning
			w := newWrites(10*time.Second, func() time.Time { return now })
			w.expect("demo", *at(t, "2", morning).Metadata(), test.effect)

			if waiting, unseen := w.outstanding("demo", copied); (waiting == "") != test.want || unseen != nil {
				t.Errorf("waiting for %q, given up %v", waiting, unseen)
			}

			if waiting, _ := w.outstanding("other", copied); waiting != "" {
				t.Errorf("another cluster waits for %q", waiting)
			}

			// No write is awaited longer than the timeout; the types of timed-out writes are reported.
			now = morning.Add(10 * time.Second)

			waiting, unseen := w.outstanding("demo", copied)
			if waiting != "" || slices.Equal(unseen, []resource.Type{omnires.ClusterType}) == test.want {
				t.Errorf("still waiting for %q, given up %v", waiting, unseen)
			}

			if len(w.expected) != 0 {
				t.Error("something is left in memory")
			}
		})
	}
}

func TestWritesForgetClustersThatNobodyAsksAbout(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	w := newWrites(10*time.Second, func() time.Time { return now })

	w.expect("gone", *omnitest.ClusterNamed("gone").Metadata(), omni.EffectCreated)

	now = now.Add(time.Minute)
	w.expect("demo", *omnitest.ClusterNamed("demo").Metadata(), omni.EffectCreated)

	if len(w.expected) != 1 || w.expected["demo"] == nil {
		t.Errorf("kept %v", w.expected)
	}
}

func TestWritesToUnmirroredTypesAreNotAwaited(t *testing.T) {
	w := newWrites(10*time.Second, time.Now)
	w.expect("demo", *omnires.NewMachineClass("x").Metadata(), omni.EffectCreated)

	if waiting, _ := w.outstanding("demo", newStore(mirroredKinds())); waiting != "" {
		t.Errorf("waiting for %q", waiting)
	}
}

func TestMirrorIsBehindOurOwnWrites(t *testing.T) {
	source := omnitest.NewFakeOmni()
	m := startMirror(t, source, Options{})

	cluster := omnitest.ClusterNamed("demo")
	cluster.Metadata().SetVersion(resource.VersionUndefined.Next())
	m.writes.expect("demo", *cluster.Metadata(), omni.EffectCreated)

	err := m.Ready("demo")
	if !errors.Is(err, omni.ErrBehind) || err.Error() != `the local copy of Omni's resources does not show our last writes yet: 1 write, Cluster "demo"` {
		t.Errorf("Ready: %v", err)
	}

	set := omnires.NewMachineSet("demo-w")
	set.Metadata().SetVersion(resource.VersionUndefined.Next())
	m.writes.expect("demo", *set.Metadata(), omni.EffectCreated)

	if err := m.Ready("demo"); err == nil || !strings.HasSuffix(err.Error(), `yet: 2 writes, first Cluster "demo"`) {
		t.Errorf("Ready: %v", err)
	}

	if err = m.Ready("other"); err != nil {
		t.Errorf("another cluster: %v", err)
	}

	omnitest.MustCreate(t, source, omnitest.ClusterNamed("demo"))
	omnitest.MustCreate(t, source, omnires.NewMachineSet("demo-w"))
	await.Until(t, "ready", func() bool { return m.Ready("demo") == nil })
}
