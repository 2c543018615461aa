package session

import (
	"context"
	"errors"
	"testing"
	"time"

	omnires "github.com/siderolabs/omni/client/pkg/omni/resources/omni"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
	"omni.texashpc.com/omni-cluster-operator/test/omnisim"
)

// TestKeyRefusals checks that every refused call counts, but that a refusal is reported at most twice a minute, and
// never for a call of Check.
func TestKeyRefusals(t *testing.T) {
	now, told := time.Unix(0, 0), 0
	r := newKeyRefusals(func() { told++ })
	r.now = func() time.Time { return now }

	refused := status.Error(codes.Unauthenticated, "invalid signature")

	for _, step := range []struct {
		name  string
		after time.Duration
		ctx   context.Context // what the call carries
		err   error
		total uint64
		told  int
	}{
		{"an answer", 0, t.Context(), nil, 0, 0},
		{"a role that is missing", 0, t.Context(), status.Error(codes.PermissionDenied, "no"), 0, 0},
		{"no connection", 0, t.Context(), errors.New("refused"), 0, 0},
		{"a check", 0, context.WithValue(t.Context(), checking{}, true), refused, 0, 0},
		{"refused", 0, t.Context(), refused, 1, 1},
		{"at once again", 0, t.Context(), refused, 2, 1},
		{"a little later", keyRefusalInterval - time.Second, t.Context(), refused, 3, 1},
		{"much later", time.Second, t.Context(), refused, 4, 2},
	} {
		now = now.Add(step.after)
		r.note(step.ctx, step.err)

		if r.count() != step.total || told != step.told {
			t.Errorf("%s: %d, told %d times", step.name, r.count(), told)
		}
	}
}

// TestRevokedKeyIsTold revokes a key while a connection is open: the first refused call is reported, one of Check is
// not.
func TestRevokedKeyIsTold(t *testing.T) {
	sim, err := omnisim.Start(omnisim.Options{})
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(sim.Close)

	text, err := sim.CreateServiceAccount("operator", omnisim.RoleOperator, time.Hour)
	if err != nil {
		t.Fatal(err)
	}

	key, err := ParseServiceAccountKey([]byte(text))
	if err != nil {
		t.Fatal(err)
	}

	told := make(chan string, 100)
	pool := NewPool(t.Context(), PoolOptions{KeyRefused: func(uid string) { told <- uid }})
	t.Cleanup(pool.Close)

	lease := mustAcquire(t, pool, "uid", "1", Config{Endpoint: sim.Endpoint(), Key: key, CABundle: sim.CAPEM()})
	t.Cleanup(lease.Release)

	for !lease.Health().Synced {
		time.Sleep(time.Millisecond)
	}

	if err := sim.RevokeKey(text); err != nil {
		t.Fatal(err)
	}

	if err := lease.Client().Check(t.Context()); omni.Classify(err) != omni.ClassUnauthenticated {
		t.Fatal(err)
	}

	select {
	case uid := <-told:
		t.Errorf("a check told %s", uid)
	default:
	}

	if _, err := lease.Client().State().Get(t.Context(), omnires.NewCluster("demo").Metadata()); omni.Classify(err) != omni.ClassUnauthenticated {
		t.Fatal(err)
	}

	if uid := <-told; uid != "uid" || lease.Client().Refusals() != 1 {
		t.Errorf("told %s, %d refusals", uid, lease.Client().Refusals())
	}
}
