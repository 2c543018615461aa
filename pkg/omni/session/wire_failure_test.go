package session

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/mirror"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/plan"
	"omni.texashpc.com/omni-cluster-operator/test/await"
	"omni.texashpc.com/omni-cluster-operator/test/mirrortest"
	"omni.texashpc.com/omni-cluster-operator/test/omnisim"
	"omni.texashpc.com/omni-cluster-operator/test/omnitest"
	"omni.texashpc.com/omni-cluster-operator/test/plantest"
)

func TestRefusalsOverTheWire(t *testing.T) {
	server := startOmni(t, omnisim.Options{Phase: 10 * time.Millisecond})
	_, s := connect(t, server, &omnitest.Recorded{})
	machines := []string{omnitest.Machine1}

	for _, test := range []struct {
		name, document, change string
	}{
		{"a version that Omni does not know", strings.Replace(documentFor(machines), "v1.13.2", "v1.13.99", 1), "demo"},
		{"a machine class that is missing", omnitest.ClusterDocument + "---\nkind: ControlPlane\nmachineClass:\n  name: missing\n  size: 1\n", "demo-control-planes"},
	} {
		t.Run(test.name, func(t *testing.T) {
			await.Until(t, "ready", func() bool { return s.Ready("demo") == nil })

			planned, err := s.Plan(t.Context(), "demo", plantest.Load(t, test.document), plan.Options{})
			if err != nil {
				t.Fatal(err)
			}

			_, err = s.Apply(t.Context(), planned, plan.ApplyOptions{})

			var refused *plan.ChangeError
			if !errors.As(err, &refused) || refused.Class != omni.ClassRefused || refused.Change.ID != test.change {
				t.Errorf("error %v", err)
			}
		})
	}

	// The incomplete cluster of the second case continues from its current state.
	await.Until(t, "ready", func() bool { return s.Ready("demo") == nil })

	planned, err := s.Plan(t.Context(), "demo", plantest.Load(t, documentFor(machines)), plan.Options{})
	if err != nil || planned.Count(plan.ActionCreate) == 0 {
		t.Fatalf("plan %+v, %v", planned, err)
	}

	// Faults on the wire have their classes, too.
	for code, want := range map[codes.Code]omni.Class{
		codes.Internal: omni.ClassTransient, codes.PermissionDenied: omni.ClassDenied, codes.Unauthenticated: omni.ClassUnauthenticated,
		codes.Unavailable: omni.ClassTransient, codes.InvalidArgument: omni.ClassRefused, codes.AlreadyExists: omni.ClassConflict,
	} {
		remove := server.Inject(omnisim.Fault{Method: "Create", Code: code})

		if _, err = s.Apply(t.Context(), planned, plan.ApplyOptions{}); omni.Classify(err) != want {
			t.Errorf("%s: %v is %q", code, err, omni.Classify(err))
		}

		remove()
	}
}

func TestRolesOverTheWire(t *testing.T) {
	server := startOmni(t, omnisim.Options{Phase: 10 * time.Millisecond})
	_, s := connect(t, server, &omnitest.Recorded{})

	planned, err := s.Plan(t.Context(), "demo", plantest.Load(t, documentFor([]string{omnitest.Machine1})), plan.Options{})
	if err != nil {
		t.Fatal(err)
	}

	if err = server.SetRole("operator", omnisim.RoleReader); err != nil {
		t.Fatal(err)
	}

	if _, err = s.Apply(t.Context(), planned, plan.ApplyOptions{}); omni.Classify(err) != omni.ClassDenied {
		t.Errorf("error %v is %q", err, omni.Classify(err))
	}
}

func TestLostConnectionsOverTheWire(t *testing.T) {
	server := startOmni(t, omnisim.Options{Phase: 10 * time.Millisecond})
	told := &omnitest.Recorded{}
	_, s := connect(t, server, told)

	for i := range 3 {
		if err := server.State().Create(t.Context(), omnitest.ClusterNamed(fmt.Sprintf("c-%d", i))); err != nil {
			t.Fatal(err)
		}
	}

	await.Until(t, "told", func() bool { return told.Told("c-2") })

	// Watches that end are opened again, and only changes are reported. The simulated Omni has stopped working on the
	// clusters, and all of its changes have arrived.
	server.Pause()
	await.Until(t, "silence", func() bool {
		told.Take()
		time.Sleep(300 * time.Millisecond)

		return len(told.Take()) == 0
	})

	before := told.HealthChanges()

	server.ResetStreams()
	await.Until(t, "the loss was seen", func() bool { return told.HealthChanges() > before })
	await.Until(t, "synced again", func() bool { return s.Health().Synced })

	if clusters := told.Take(); len(clusters) > 0 {
		t.Errorf("told of %v", clusters)
	}

	// A stopped Omni is reported, and the session recovers by itself.
	server.GoDown()
	await.Until(t, "unreachable", func() bool { return s.Health().Class == omni.ClassUnreachable })

	if err := s.Ready("c-0"); !errors.Is(err, omni.ErrNotSynced) {
		t.Errorf("Ready: %v", err)
	}

	if err := server.State().Create(t.Context(), omnitest.ClusterNamed("while-down")); err != nil {
		t.Fatal(err)
	}

	if err := server.ComeBack(); err != nil {
		t.Fatal(err)
	}

	await.Until(t, "synced again", func() bool { return s.Health().Synced })
	await.Until(t, "told what happened meanwhile", func() bool { return told.Told("while-down") })
}

func TestARevokedKeyShowsInHealth(t *testing.T) {
	// The newest serves every kind, and this mirror does not ask.
	server := startOmni(t, omnisim.Options{Phase: 10 * time.Millisecond, OmniVersion: "1.14"})
	encoded, key := newAccount(t, server, "revoked", omnisim.RoleOperator, time.Hour)

	client, err := dial(t, Config{Endpoint: server.Endpoint(), CABundle: server.CAPEM(), Key: key})
	if err != nil {
		t.Fatal(err)
	}

	m := mirrortest.Start(t, client.State(), mirror.Options{ResyncMinDelay: time.Millisecond, ResyncMaxDelay: 20 * time.Millisecond})

	if err = server.RevokeKey(encoded); err != nil {
		t.Fatal(err)
	}

	server.ResetStreams()
	await.Until(t, "unauthenticated", func() bool { return m.Health().Class == omni.ClassUnauthenticated })
}
