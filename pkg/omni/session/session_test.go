package session

import (
	"errors"
	"strings"
	"testing"

	"github.com/cosi-project/runtime/pkg/state"
	omnires "github.com/siderolabs/omni/client/pkg/omni/resources/omni"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/mirror"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/observe"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/plan"
	"omni.texashpc.com/omni-cluster-operator/test/await"
	"omni.texashpc.com/omni-cluster-operator/test/mirrortest"
	"omni.texashpc.com/omni-cluster-operator/test/omnitest"
	"omni.texashpc.com/omni-cluster-operator/test/plantest"
)

func newTestSession(t *testing.T, source *omnitest.FakeOmni, told *omnitest.Recorded) *Session {
	t.Helper()

	return New(source, mirrortest.Start(t, source, mirrortest.Telling(told)))
}

// TestSessionNeverPlansAgainstStaleData checks that a plan right after an apply never repeats it.
func TestSessionNeverPlansAgainstStaleData(t *testing.T) {
	source, told := omnitest.NewFakeOmni(), &omnitest.Recorded{}
	s := newTestSession(t, source, told)

	for _, document := range []string{
		omnitest.FullTemplate,
		strings.Replace(omnitest.FullTemplate, "v1.35.0", "v1.35.1", 1),
		strings.Replace(omnitest.FullTemplate, "- "+omnitest.Machine3+"\n", "", 1),
		omnitest.FullTemplate,
	} {
		planned, err := s.Plan(t.Context(), "demo", plantest.Load(t, document), plan.Options{})
		if err != nil {
			t.Fatal(err)
		}

		if planned.Empty() {
			t.Fatal("nothing to do")
		}

		if _, err = s.Apply(t.Context(), planned, plan.ApplyOptions{Consent: plan.EveryChange}); err != nil {
			t.Fatal(err)
		}

		// Plan returns ErrBehind, or the right plan.
		await.Until(t, "an empty plan", func() bool {
			plan, err := s.Plan(t.Context(), "demo", plantest.Load(t, document), plan.Options{})
			if errors.Is(err, omni.ErrBehind) {
				return false
			}

			if err != nil || !plan.Empty() {
				t.Fatalf("stale: %v, %v", plan, err)
			}

			return true
		})
	}
}

func TestSessionDeletes(t *testing.T) {
	source, told := omnitest.NewFakeOmni(), &omnitest.Recorded{}
	plantest.Sync(t, source, omnitest.ClusterDocument+omnitest.ControlPlaneDocument)

	s := newTestSession(t, source, told)

	live, err := omni.Inspect(t.Context(), s.Copy(), "demo")
	if err != nil || live.Marks.UID != "uid-1" {
		t.Fatalf("live %+v, %v", live, err)
	}

	planned, err := s.PlanDelete(t.Context(), "demo", plan.DeleteOptions{})
	if err != nil {
		t.Fatal(err)
	}

	if _, err = s.Apply(t.Context(), planned, plan.ApplyOptions{Consent: plan.EveryChange}); err != nil {
		t.Fatal(err)
	}

	await.Until(t, "gone", func() bool {
		progress, err := observe.Progress(t.Context(), s.Copy(), "demo")

		return err == nil && progress.Gone
	})

	if !told.Told("demo") {
		t.Error("nobody was woken")
	}

	status, err := observe.Observe(t.Context(), s.Copy(), "demo")
	if err != nil || status.Exists {
		t.Errorf("status %+v, %v", status, err)
	}
}

func TestSessionRefusesBeforeItIsReady(t *testing.T) {
	source := omnitest.NewFakeOmni()

	m := mirror.Start(t.Context(), omnitest.SilentOmni{State: source}, mirror.Options{})
	defer m.Stop()

	s := New(source, m)

	if _, err := s.Plan(t.Context(), "demo", plantest.Load(t, omnitest.FullTemplate), plan.Options{}); !errors.Is(err, omni.ErrNotSynced) {
		t.Errorf("Plan: %v", err)
	}

	if _, err := s.PlanDelete(t.Context(), "demo", plan.DeleteOptions{}); !errors.Is(err, omni.ErrNotSynced) {
		t.Errorf("PlanDelete: %v", err)
	}

	if s.Health().Synced || !errors.Is(s.Ready("demo"), omni.ErrNotSynced) || s.Client() != nil || s.Mirror() != m {
		t.Error("the session says something else than its mirror")
	}
}

func TestSessionRefusesATemplateForAnotherCluster(t *testing.T) {
	s := newTestSession(t, omnitest.NewFakeOmni(), &omnitest.Recorded{})

	if _, err := s.Plan(t.Context(), "other", plantest.Load(t, omnitest.FullTemplate), plan.Options{}); !errors.Is(err, omni.ErrTemplate) {
		t.Errorf("error %v", err)
	}
}

func TestSessionRemovesMarksInOmniItself(t *testing.T) {
	source := omnitest.NewFakeOmni()
	omnitest.MustCreate(t, source, omnitest.Marked("demo", "uid-1"))

	s := newTestSession(t, source, &omnitest.Recorded{})

	if err := plan.RemoveMarks(t.Context(), s.Live(), "demo", omnitest.OfUID1); err != nil {
		t.Fatal(err)
	}

	found, err := source.Get(t.Context(), omnires.NewCluster("demo").Metadata())
	if err != nil {
		t.Fatal(err)
	}

	if _, set := found.Metadata().Annotations().Get(v1alpha1.MarkOwnerUID); set {
		t.Error("the mark is still there")
	}
}

// TestSessionIsReadyAfterARefusal checks that a failed write leaves no expectation behind.
func TestSessionIsReadyAfterARefusal(t *testing.T) {
	source := omnitest.NewFakeOmni()
	refusing := &omnitest.RefusingOmni{CoreState: source, Refuse: "demo", With: errors.New("rpc error: code = InvalidArgument desc = failed to validate: no")}
	s := New(state.WrapCore(refusing), mirrortest.Start(t, source, mirror.Options{}))

	planned, err := s.Plan(t.Context(), "demo", plantest.Load(t, omnitest.FullTemplate), plan.Options{})
	if err != nil {
		t.Fatal(err)
	}

	if _, err = s.Apply(t.Context(), planned, plan.ApplyOptions{}); omni.Classify(err) != omni.ClassRefused {
		t.Errorf("error %v", err)
	}

	if err = s.Ready("demo"); err != nil {
		t.Errorf("Ready: %v", err)
	}
}
