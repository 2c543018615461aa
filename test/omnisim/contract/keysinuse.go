package contract

import (
	"testing"
	"time"

	"github.com/cosi-project/runtime/pkg/resource"
	"github.com/cosi-project/runtime/pkg/safe"
	"github.com/cosi-project/runtime/pkg/state"

	"github.com/siderolabs/omni/client/pkg/client"
	"github.com/siderolabs/omni/client/pkg/omni/resources"
	"github.com/siderolabs/omni/client/pkg/omni/resources/omni"
)

// keysInUse tests an open connection whose key ends. Calls fail from then on, but an open watch goes on, so only a call
// detects it.
func (s *suite) keysInUse(t *testing.T) {
	for name, test := range map[string]struct {
		lifetime time.Duration
		end      func(t *testing.T, name string, expires time.Time)
		code     string // of a call after the end; empty if the call is not sent
		words    string
	}{
		"revoked": {time.Hour, func(t *testing.T, name string, _ time.Time) {
			if err := s.admin.Management().DestroyServiceAccount(deadline(t), name); err != nil {
				t.Fatal(err)
			}
		}, "Unauthenticated", "invalid signature"},
		"expired": {10 * time.Second, func(_ *testing.T, _ string, expires time.Time) {
			time.Sleep(time.Until(expires.Add(2 * time.Second)))
		}, "", "no valid signing keys"},
	} {
		t.Run(name, func(t *testing.T) {
			account := unique("ends")
			pair, key := newKey(t, account, test.lifetime)
			expires := time.Now().Add(test.lifetime)

			public, err := pair.ArmorPublic()
			if err != nil {
				t.Fatal(err)
			}

			if _, err = s.admin.Management().CreateServiceAccount(deadline(t), account, public, "Reader", false); err != nil {
				t.Fatal(err)
			}

			s.keyEnds(t, s.connect(t, key), func() { test.end(t, account, expires) }, test.code, test.words)
		})
	}
}

// keyEnds watches and calls before and after a key ends.
func (s *suite) keyEnds(t *testing.T, c *client.Client, end func(), code, words string) {
	t.Helper()

	ctx, st := deadline(t), c.Omni().State()
	events := make(chan state.Event)
	kind := resource.NewMetadata(resources.DefaultNamespace, omni.ClusterType, "", resource.VersionUndefined)

	if err := st.WatchKind(ctx, kind, events, state.WithBootstrapContents(true)); err != nil {
		t.Fatal(err)
	}

	next := func() state.Event {
		select {
		case event := <-events:
			return event
		case <-ctx.Done():
			t.Fatal("no event")

			return state.Event{}
		}
	}

	for event := next(); event.Type != state.Bootstrapped; event = next() {
	}

	end()

	_, err := safe.StateListAll[*omni.Cluster](deadline(t), st)
	wantError(t, err, code, words)

	after := newCluster(unique("watched"))
	s.create(t, after)
	expect(t, next, state.Created, after.Metadata().ID(), state.Noop)
	s.remove(t, after.Metadata())
}
