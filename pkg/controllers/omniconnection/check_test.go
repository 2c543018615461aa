package omniconnection

import (
	"errors"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/session"
	"omni.texashpc.com/omni-cluster-operator/test/omnisim"
)

func TestCheckCounts(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	session, other := &session.Session{}, &session.Session{}
	open, answered := make(chan struct{}), make(chan struct{})
	close(answered)

	for name, test := range map[string]struct {
		known *check
		want  bool
	}{
		"none":             {nil, false},
		"under way":        {&check{session: session, requested: "1", answered: open}, true},
		"fresh":            {&check{session: session, requested: "1", answered: answered, at: now.Add(-29 * time.Second)}, true},
		"fresh, a failure": {&check{session: session, requested: "1", answered: answered, at: now, err: errors.New("no")}, true},
		"old":              {&check{session: session, requested: "1", answered: answered, at: now.Add(-30 * time.Second)}, false},
		"another session":  {&check{session: other, requested: "1", answered: answered, at: now}, false},
		"before a refusal": {&check{session: session, requested: "1", refusals: 1, answered: answered, at: now}, false},
		"another request":  {&check{session: session, requested: "0", answered: answered, at: now}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := test.known.counts(&check{session: session, requested: "1"}, now); got != test.want {
				t.Errorf("%v", got)
			}
		})
	}
}

// An Omni that hangs holds no worker while it is dialled or asked: the run comes
// back, the status stays, and the end of the question is told later.
func TestAnOmniThatHangsHoldsNoWorker(t *testing.T) {
	// A worker that waits for the answer is held until Omni is declared silent.
	const held = session.SuspectAfter + session.ProbeTimeout - time.Second

	t.Run("dialling", func(t *testing.T) {
		b := newBench(t)
		b.secret("key", b.key)

		heal := b.omni.Inject(omnisim.Fault{Hang: true})
		defer heal()

		started := time.Now()
		result := b.run()

		if took := time.Since(started); took > held || result.RequeueAfter == 0 {
			t.Errorf("took %s, then %+v", took, result)
		}

		heal()
		b.runUntilReady(metav1.ConditionTrue)
	})

	t.Run("asking", func(t *testing.T) {
		b := newBench(t)
		b.secret("key", b.key)
		b.runUntilReady(metav1.ConditionTrue)

		heal := b.omni.Inject(omnisim.Fault{Hang: true, Method: "Get"})
		defer heal()

		b.edit(func(o *v1alpha1.OmniConnection) {
			o.Annotations = map[string]string{v1alpha1.AnnotationReconcileRequestedAt: "now"}
		})

		started := time.Now()
		result := b.run()

		if took := time.Since(started); took > held || result.RequeueAfter == 0 {
			t.Errorf("took %s, then %+v", took, result)
		}

		b.runUntilReady(metav1.ConditionFalse) // it is declared silent, and the message says so
		heal()
		b.runUntilReady(metav1.ConditionTrue)
	})
}
