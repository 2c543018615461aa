package loop

import (
	"context"
	"errors"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// persisting is a fixture whose phase stores the endpoint before it goes on, over a cache
// that shows what the test says.
type persisting struct {
	*fixture
	loop   *Reconciler[*v1alpha1.OmniConnection, *scope]
	cached *v1alpha1.OmniConnection // nil: what the API has
	now    time.Time
	runs   int
}

func newPersisting(t *testing.T) *persisting {
	t.Helper()

	object := connection()
	object.Finalizers = []string{v1alpha1.Finalizer}

	p := &persisting{now: time.Unix(1000, 0)}
	p.fixture = newFixture(t, object, Phase[*scope]{Condition: "First", Run: func(_ context.Context, s *scope) (Outcome, error) {
		p.runs++

		if s.object.Status.Endpoint != "" {
			return Continue("Fine", "done"), nil
		}

		s.object.Status.Endpoint = "noted"

		return Persist("Progressing", "about to begin"), nil
	}})

	api, ok := p.client.(client.WithWatch)
	if !ok {
		t.Fatal("the client of the fixture has no watch")
	}

	cache := interceptor.NewClient(api, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, into client.Object, options ...client.GetOption) error {
			if cached, ok := into.(*v1alpha1.OmniConnection); ok && p.cached != nil {
				p.cached.DeepCopyInto(cached)

				return nil
			}

			return c.Get(ctx, key, into, options...)
		},
	})
	p.loop = New(p.kind, Settings{Client: cache, Events: p.events})
	p.loop.written.now = func() time.Time { return p.now }

	return p
}

// once runs once, and returns when it is looked at again.
func (p *persisting) once() time.Duration {
	p.t.Helper()

	result, err := p.loop.Reconcile(p.t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "team", Name: "main"}})
	if err != nil {
		p.t.Fatal(err)
	}

	return result.RequeueAfter
}

// The next run waits until the cache has the status that was stored.
func TestPersist(t *testing.T) {
	p := newPersisting(t)
	old := p.get()

	if got := p.once(); got != writtenPoll {
		t.Errorf("looked at again after %s", got)
	}

	stored := p.get()
	if got, want := conditions(stored)["First"], "False Progressing: about to begin"; got != want || stored.Status.Endpoint != "noted" {
		t.Errorf("%q, %+v", got, stored.Status)
	}

	if got, want := conditions(stored)["Reconciling"], "True Progressing: about to begin"; got != want {
		t.Errorf("Reconciling is %q, want %q", got, want)
	}

	p.cached = old

	for range 3 {
		if got := p.once(); got != writtenPoll || p.runs != 1 || p.writes.Status != 1 {
			t.Errorf("with the old status: again after %s, %d runs, %d writes", got, p.runs, p.writes.Status)
		}
	}

	p.cached = nil
	p.once()

	if got, want := conditions(p.get())["First"], "True Fine: done"; got != want || p.runs != 2 {
		t.Errorf("%q after %d runs", got, p.runs)
	}
}

// A run that would begin from an object without our last write waits: it would only add the finalizer again, or write a
// status that has a conflict.
func TestRunsBeginFromOurOwnWrites(t *testing.T) {
	p := newPersisting(t)
	p.once()

	object := p.get()
	object.Finalizers = nil

	if err := p.client.Update(t.Context(), object); err != nil {
		t.Fatal(err)
	}

	bare := p.get()
	p.once() // adds the finalizer; the phase continues, and its status is written

	writes := p.writes
	p.cached = bare

	if got := p.once(); got != writtenPoll || p.runs != 2 || p.writes != writes {
		t.Errorf("without our last write: again after %s, %d runs, %+v before and %+v after", got, p.runs, writes, p.writes)
	}

	p.now = p.now.Add(10 * writtenPoll)

	if got := p.once(); got != 10*writtenPoll || p.runs != 2 {
		t.Errorf("later: again after %s, %d runs", got, p.runs)
	}

	p.cached = nil
	p.once()

	if p.runs != 3 || p.writes != writes {
		t.Errorf("with our last write: %d runs, %+v before and %+v after", p.runs, writes, p.writes)
	}
}

// What is no older than the status that was stored does not wait for it.
func TestPersistDoesNotWaitForEver(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*persisting)
		runs   int
	}{
		"the old status":              {func(*persisting) {}, 1},
		"for too long":                {func(p *persisting) { p.now = p.now.Add(writtenTimeout) }, 2},
		"another object of that name": {func(p *persisting) { p.cached.UID = "new" }, 2},
		"a newer version":             {func(p *persisting) { p.cached.ResourceVersion = "123456789" }, 2},
		"a version that says nothing": {func(p *persisting) { p.cached.ResourceVersion = "unknown" }, 2},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPersisting(t)
			old := p.get()
			p.once()

			p.cached = old
			test.change(p)
			p.cached.Status.Endpoint = "noted" // the run is not to store anything again
			_, _ = p.loop.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "team", Name: "main"}})

			if p.runs != test.runs {
				t.Errorf("%d runs, want %d", p.runs, test.runs)
			}
		})
	}
}

// An object that is gone is not waited for.
func TestPersistForgets(t *testing.T) {
	p := newPersisting(t)
	p.once()

	if len(p.loop.written.writes) != 1 {
		t.Fatal(p.loop.written.writes)
	}

	object := p.get()
	object.Finalizers = nil

	if err := errors.Join(p.client.Update(t.Context(), object), p.client.Delete(t.Context(), object)); err != nil {
		t.Fatal(err)
	}

	if got := p.once(); got != 0 || len(p.loop.written.writes) != 0 {
		t.Errorf("again after %s, remembers %v", got, p.loop.written.writes)
	}
}

// Whoever asks for what is stored already would wait for ever.
func TestPersistOfNothing(t *testing.T) {
	f := newFixture(t, connection(), phase("First", Persist("Progressing", "about to begin"), nil))

	if _, err := f.run(); err != nil {
		t.Fatal(err)
	}

	if _, err := f.run(); !errors.Is(err, errNothingPersisted) {
		t.Errorf("got %v", err)
	}
}
