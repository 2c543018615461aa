package omniconnection

import (
	"context"
	"errors"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/session"
	"omni.texashpc.com/omni-cluster-operator/test/omnisim"
)

func TestCheckCounts(t *testing.T) {
	old, other := &session.Session{}, &session.Session{}

	for name, test := range map[string]struct {
		known *check
		err   error         // of the known one
		after time.Duration // it was answered
		want  int           // how many more are asked
	}{
		"none":             {known: nil, want: 1},
		"fresh":            {known: &check{session: old, requested: "1"}, after: 29 * time.Second},
		"a failure":        {known: &check{session: old, requested: "1"}, err: errors.New("no"), want: 1},
		"old":              {known: &check{session: old, requested: "1"}, after: 30 * time.Second, want: 1},
		"another session":  {known: &check{session: other, requested: "1"}, want: 1},
		"before a refusal": {known: &check{session: old, requested: "1", refusals: 1}, want: 1},
		"another request":  {known: &check{session: old, requested: "0"}, want: 1},
	} {
		t.Run(name, func(t *testing.T) {
			now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
			r := &reconciler{checks: newChecks(Options{Now: func() time.Time { return now }})}
			asked := 0

			if test.known != nil {
				if err := r.ask(t.Context(), "uid", *test.known, func(context.Context) error { return test.err }); !errors.Is(err, test.err) {
					t.Fatal(err)
				}
			}

			now = now.Add(test.after)

			err := r.ask(t.Context(), "uid", check{session: old, requested: "1"}, func(context.Context) error {
				asked++

				return nil
			})
			if err != nil || asked != test.want {
				t.Errorf("asked %d times, %v", asked, err)
			}
		})
	}
}

// A check under way answers those who come meanwhile, also with a failure; nobody has to wait for it.
func TestCheckUnderWay(t *testing.T) {
	no, hold, woken := errors.New("no"), make(chan struct{}), make(chan types.UID, 1)
	r := &reconciler{checks: newChecks(Options{Now: time.Now})}
	r.checks.Options.Wake = func(uid types.UID) { woken <- uid }

	short, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()

	if err := r.ask(short, "uid", check{}, func(context.Context) error {
		<-hold

		return no
	}); !errors.Is(err, errUndecided) {
		t.Fatal(err)
	}

	close(hold)

	if uid := <-woken; uid != "uid" {
		t.Errorf("%s was woken", uid)
	}

	for _, want := range []error{no, nil} {
		if err := r.ask(t.Context(), "uid", check{}, func(context.Context) error { return nil }); !errors.Is(err, want) {
			t.Errorf("got %v, want %v", err, want)
		}
	}
}

// A restart writes nothing while the copy of a large Omni is being filled, for a while.
func TestARestartKeepsAConnectionReady(t *testing.T) {
	t.Parallel()

	f := newFixture(t)
	f.secret("key", f.key)
	f.runUntilReady(metav1.ConditionTrue)

	heal := f.omni.Inject(omnisim.Fault{Hang: true, Method: "Watch"})
	defer heal()

	writes := f.writes
	f.pool.Forget("uid-main")
	f.start(EndpointPolicy{})
	f.now = f.now.Add(time.Hour) // another process led until now

	if result := f.run(); f.writes != writes || result.RequeueAfter == 0 || result.RequeueAfter > session.ContentsGrace {
		t.Errorf("%d writes, then %+v", f.writes-writes, result)
	}

	f.expect("Ready", metav1.ConditionTrue, "Connected")

	f.now = f.now.Add(session.ContentsGrace)
	f.run()
	f.expect("Ready", metav1.ConditionFalse, "MirrorNotSynced", "reading")

	heal()
	f.runUntilReady(metav1.ConditionTrue)
}

// An Omni that hangs holds no worker while it is dialled or asked: the run comes
// back, the status stays, and the end of the question is told later.
func TestAnOmniThatHangsHoldsNoWorker(t *testing.T) {
	t.Parallel()

	// A worker that waits for the answer is held until Omni is declared silent.
	const held = session.SuspectAfter + session.ProbeTimeout - time.Second

	t.Run("dialling", func(t *testing.T) {
		t.Parallel()

		f := newFixture(t)
		f.secret("key", f.key)

		heal := f.omni.Inject(omnisim.Fault{Hang: true})
		defer heal()

		started := time.Now()
		result := f.run()

		if took := time.Since(started); took > held || result.RequeueAfter == 0 {
			t.Errorf("took %s, then %+v", took, result)
		}

		heal()
		f.runUntilReady(metav1.ConditionTrue)
	})

	t.Run("asking", func(t *testing.T) {
		t.Parallel()

		f := newFixture(t)
		f.secret("key", f.key)
		f.runUntilReady(metav1.ConditionTrue)

		heal := f.omni.Inject(omnisim.Fault{Hang: true, Method: "Get"})
		defer heal()

		f.edit(func(o *v1alpha1.OmniConnection) {
			o.Annotations = map[string]string{v1alpha1.AnnotationReconcileRequestedAt: "now"}
		})

		started := time.Now()
		result := f.run()

		if took := time.Since(started); took > held || result.RequeueAfter == 0 {
			t.Errorf("took %s, then %+v", took, result)
		}

		f.runUntilReady(metav1.ConditionFalse) // it is declared silent, and the message says so
		heal()
		f.runUntilReady(metav1.ConditionTrue)
	})
}
