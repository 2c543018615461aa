package omni

import (
	"errors"
	"strings"
	"testing"

	"github.com/cosi-project/runtime/pkg/state"
	omnires "github.com/siderolabs/omni/client/pkg/omni/resources/omni"
)

func newTestSession(t *testing.T, source *fakeOmni, told *recorded) *Session {
	t.Helper()

	return NewSession(source, startMirror(t, source, telling(told)))
}

// A plan that is made right after an apply never repeats it.
func TestSessionNeverPlansAgainstStaleData(t *testing.T) {
	source, told := newFakeOmni(), &recorded{}
	s := newTestSession(t, source, told)

	for _, document := range []string{
		fullTemplate,
		strings.Replace(fullTemplate, "v1.35.0", "v1.35.1", 1),
		strings.Replace(fullTemplate, "- "+machine3+"\n", "", 1),
		fullTemplate,
	} {
		plan, err := s.Plan(t.Context(), "demo", []byte(document), PlanOptions{})
		if err != nil {
			t.Fatal(err)
		}

		if plan.Empty() {
			t.Fatal("nothing to do")
		}

		if _, err = s.Apply(t.Context(), plan, ApplyOptions{Leave: EveryChange}); err != nil {
			t.Fatal(err)
		}

		// Either it is not answered yet, or it is right.
		eventually(t, "an empty plan", func() bool {
			plan, err := s.Plan(t.Context(), "demo", []byte(document), PlanOptions{})
			if errors.Is(err, ErrBehind) {
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
	source, told := newFakeOmni(), &recorded{}
	mustSync(t, source, clusterDocument+controlPlaneDocument)

	s := newTestSession(t, source, told)

	live, err := Inspect(t.Context(), s.Copy(), "demo", testKeys)
	if err != nil || live.Marks.UID != "uid-1" {
		t.Fatalf("live %+v, %v", live, err)
	}

	plan, err := s.PlanDelete(t.Context(), "demo", DeleteOptions{})
	if err != nil {
		t.Fatal(err)
	}

	if _, err = s.Apply(t.Context(), plan, ApplyOptions{Leave: EveryChange}); err != nil {
		t.Fatal(err)
	}

	eventually(t, "gone", func() bool {
		progress, err := Progress(t.Context(), s.Copy(), "demo")

		return err == nil && progress.Gone
	})

	if !told.told("demo") {
		t.Error("nobody was woken")
	}

	status, err := Observe(t.Context(), s.Copy(), "demo")
	if err != nil || status.Exists {
		t.Errorf("status %+v, %v", status, err)
	}
}

func TestSessionRefusesBeforeItIsReady(t *testing.T) {
	source := newFakeOmni()

	m := StartMirror(t.Context(), silentOmni{State: source}, MirrorOptions{})
	defer m.Stop()

	s := NewSession(source, m)

	if _, err := s.Plan(t.Context(), "demo", []byte(fullTemplate), PlanOptions{}); !errors.Is(err, ErrNotSynced) {
		t.Errorf("Plan: %v", err)
	}

	if _, err := s.PlanDelete(t.Context(), "demo", DeleteOptions{}); !errors.Is(err, ErrNotSynced) {
		t.Errorf("PlanDelete: %v", err)
	}

	if s.Health().Synced || !errors.Is(s.Ready("demo"), ErrNotSynced) || s.Client() != nil || s.Mirror() != m {
		t.Error("the session says something else than its mirror")
	}
}

func TestSessionRefusesATemplateForAnotherCluster(t *testing.T) {
	s := newTestSession(t, newFakeOmni(), &recorded{})

	if _, err := s.Plan(t.Context(), "other", []byte(fullTemplate), PlanOptions{}); !errors.Is(err, ErrTemplate) {
		t.Errorf("error %v", err)
	}
}

func TestSessionRemovesMarksInOmniItself(t *testing.T) {
	source := newFakeOmni()
	mustCreate(t, source, marked("demo", "uid-1"))

	s := newTestSession(t, source, &recorded{})

	removed, err := RemoveMarks(t.Context(), s.Live(), "demo", testKeys, ofUID1)
	if err != nil || !removed {
		t.Fatalf("%v, %v", removed, err)
	}

	found, err := source.Get(t.Context(), omnires.NewCluster("demo").Metadata())
	if err != nil {
		t.Fatal(err)
	}

	if _, set := found.Metadata().Annotations().Get(testKeys.UID); set {
		t.Error("the mark is still there")
	}
}

// A failed write leaves no expectation behind.
func TestSessionIsReadyAfterARefusal(t *testing.T) {
	source := newFakeOmni()
	refusing := &refusingOmni{CoreState: source, refuse: "demo", with: errors.New("rpc error: code = InvalidArgument desc = failed to validate: no")}
	s := NewSession(state.WrapCore(refusing), startMirror(t, source, MirrorOptions{}))

	plan, err := s.Plan(t.Context(), "demo", []byte(fullTemplate), PlanOptions{})
	if err != nil {
		t.Fatal(err)
	}

	if _, err = s.Apply(t.Context(), plan, ApplyOptions{}); Classify(err) != ClassRefused {
		t.Errorf("error %v", err)
	}

	if err = s.Ready("demo"); err != nil {
		t.Errorf("Ready: %v", err)
	}
}
