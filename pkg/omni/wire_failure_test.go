package omni

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"omni.texashpc.com/omni-cluster-operator/test/omnisim"
)

func TestRefusalsOverTheWire(t *testing.T) {
	server := startOmni(t, omnisim.Options{Phase: 10 * time.Millisecond})
	_, s := connect(t, server, &recorded{})
	machines := []string{machine1}

	for _, test := range []struct {
		name, document, change string
	}{
		{"a version that Omni does not know", strings.Replace(documentFor(machines), "v1.13.2", "v1.13.99", 1), "demo"},
		{"a machine class that is missing", clusterDocument + "---\nkind: ControlPlane\nmachineClass:\n  name: missing\n  size: 1\n", "demo-control-planes"},
	} {
		t.Run(test.name, func(t *testing.T) {
			eventually(t, "ready", func() bool { return s.Ready("demo") == nil })

			plan, err := s.Plan(t.Context(), "demo", []byte(test.document), PlanOptions{})
			if err != nil {
				t.Fatal(err)
			}

			_, err = s.Apply(t.Context(), plan, ApplyOptions{})

			var refused *ChangeError
			if !errors.As(err, &refused) || refused.Class != ClassRefused || refused.Change.ID != test.change {
				t.Errorf("error %v", err)
			}
		})
	}

	// The half-made cluster of the second row goes on from where it is.
	eventually(t, "ready", func() bool { return s.Ready("demo") == nil })

	plan, err := s.Plan(t.Context(), "demo", []byte(documentFor(machines)), PlanOptions{})
	if err != nil || plan.Count(ActionCreate) == 0 {
		t.Fatalf("plan %v, %v", lines(plan), err)
	}

	// Faults on the way have their classes, too.
	for code, want := range map[codes.Code]Class{
		codes.Internal: ClassTransient, codes.PermissionDenied: ClassDenied, codes.Unauthenticated: ClassUnauthenticated,
		codes.Unavailable: ClassTransient, codes.InvalidArgument: ClassRefused, codes.AlreadyExists: ClassConflict,
	} {
		remove := server.Inject(omnisim.Fault{Method: "Create", Code: code})

		if _, err = s.Apply(t.Context(), plan, ApplyOptions{}); Classify(err) != want {
			t.Errorf("%s: %v is %q", code, err, Classify(err))
		}

		remove()
	}
}

func TestRolesOverTheWire(t *testing.T) {
	server := startOmni(t, omnisim.Options{Phase: 10 * time.Millisecond})
	_, s := connect(t, server, &recorded{})

	plan, err := s.Plan(t.Context(), "demo", []byte(documentFor([]string{machine1})), PlanOptions{})
	if err != nil {
		t.Fatal(err)
	}

	if err = server.SetRole("operator", omnisim.RoleReader); err != nil {
		t.Fatal(err)
	}

	if _, err = s.Apply(t.Context(), plan, ApplyOptions{}); Classify(err) != ClassDenied {
		t.Errorf("error %v is %q", err, Classify(err))
	}
}

func TestLostConnectionsOverTheWire(t *testing.T) {
	server := startOmni(t, omnisim.Options{Phase: 10 * time.Millisecond})
	told := &recorded{}
	_, s := connect(t, server, told)

	for i := range 3 {
		if err := server.State().Create(t.Context(), clusterNamed(fmt.Sprintf("c-%d", i))); err != nil {
			t.Fatal(err)
		}
	}

	eventually(t, "told", func() bool { return told.told("c-2") })

	// Watches that end are opened again, and nothing is told that did not change.
	// The simulated Omni works on the clusters no more, and all that it did arrived.
	server.Pause()
	eventually(t, "silence", func() bool {
		told.take()
		time.Sleep(300 * time.Millisecond)

		return len(told.take()) == 0
	})

	before := told.healthChanges()

	server.ResetStreams()
	eventually(t, "the loss was seen", func() bool { return told.healthChanges() > before })
	eventually(t, "synced again", func() bool { return s.Health().Synced })

	if clusters := told.take(); len(clusters) > 0 {
		t.Errorf("told of %v", clusters)
	}

	// An Omni that is down says so, and comes back by itself.
	server.GoDown()
	eventually(t, "unreachable", func() bool { return s.Health().Class == ClassUnreachable })

	if err := s.Ready("c-0"); !errors.Is(err, ErrNotSynced) {
		t.Errorf("Ready: %v", err)
	}

	if err := server.State().Create(t.Context(), clusterNamed("while-down")); err != nil {
		t.Fatal(err)
	}

	if err := server.ComeBack(); err != nil {
		t.Fatal(err)
	}

	eventually(t, "synced again", func() bool { return s.Health().Synced })
	eventually(t, "told what happened meanwhile", func() bool { return told.told("while-down") })
}

func TestARevokedKeyShowsInHealth(t *testing.T) {
	server := startOmni(t, omnisim.Options{Phase: 10 * time.Millisecond})
	encoded, key := newAccount(t, server, "revoked", omnisim.RoleOperator, time.Hour)

	client, err := dial(t, Config{Endpoint: server.Endpoint(), CABundle: server.CAPEM(), Key: key})
	if err != nil {
		t.Fatal(err)
	}

	m := startMirror(t, client.State(), MirrorOptions{ResyncMinDelay: time.Millisecond, ResyncMaxDelay: 20 * time.Millisecond})

	if err = server.RevokeKey(encoded); err != nil {
		t.Fatal(err)
	}

	server.ResetStreams()
	eventually(t, "unauthenticated", func() bool { return m.Health().Class == ClassUnauthenticated })
}
