package omnisim_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cosi-project/runtime/pkg/resource"
	"github.com/cosi-project/runtime/pkg/safe"
	"github.com/cosi-project/runtime/pkg/state"
	"go.yaml.in/yaml/v3"

	"github.com/siderolabs/omni/client/pkg/client"
	"github.com/siderolabs/omni/client/pkg/template"

	"omni.texashpc.com/omni-cluster-operator/test/await"
	"omni.texashpc.com/omni-cluster-operator/test/omnisim"
)

// phase is short enough for tests in which the engine runs by itself.
const phase = 20 * time.Millisecond

func start(t *testing.T, options omnisim.Options) *omnisim.Server {
	t.Helper()

	if options.Phase == 0 {
		options.Phase = phase
	}

	options.Logf = t.Logf

	sim, err := omnisim.Start(options)
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(sim.Close)

	return sim
}

// key creates a service account of the role and returns its key.
func key(t *testing.T, sim *omnisim.Server, role omnisim.Role) string {
	t.Helper()

	encoded, err := sim.CreateServiceAccount("account-"+strings.ToLower(string(role)), role, time.Hour)
	if err != nil {
		t.Fatal(err)
	}

	return encoded
}

// connect opens a client of the simulator.
func connect(t *testing.T, sim *omnisim.Server, serviceAccount string) *client.Client {
	t.Helper()

	c, err := omnisim.Connect(sim.Endpoint(), serviceAccount, sim.CAPEM())
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() { _ = c.Close() })

	return c
}

// operator returns the state of a client that may write.
func operator(t *testing.T, sim *omnisim.Server) state.State {
	t.Helper()

	return connect(t, sim, key(t, sim, omnisim.RoleOperator)).Omni().State()
}

func deadline(t *testing.T) context.Context {
	t.Helper()

	ctx, cancel := context.WithTimeout(context.Background(), await.Limit)
	t.Cleanup(cancel)

	return ctx
}

// apply makes the changes of a template, without waiting for teardowns, and returns the number of writes.
func apply(ctx context.Context, t *testing.T, st state.State, text string) int {
	t.Helper()

	loaded, err := template.Load(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}

	if err = loaded.Validate(); err != nil {
		t.Fatal(err)
	}

	plan, err := loaded.Sync(ctx, st)
	if err != nil {
		t.Fatal(err)
	}

	writes, err := execute(ctx, st, plan)
	if err != nil {
		t.Fatal(err)
	}

	return writes
}

func execute(ctx context.Context, st state.State, plan *template.SyncResult) (int, error) {
	writes := 0

	for _, res := range plan.Create {
		if err := st.Create(ctx, res); err != nil {
			return writes, err
		}

		writes++
	}

	for _, change := range plan.Update {
		if err := st.Update(ctx, change.New); err != nil {
			return writes, err
		}

		writes++
	}

	for _, group := range plan.Destroy {
		for _, res := range group {
			if _, err := st.Teardown(ctx, res.Metadata()); err != nil && !state.IsNotFoundError(err) {
				return writes, err
			}

			writes++
		}
	}

	return writes, nil
}

// destroy removes a cluster as the library does: machine sets first.
func destroy(ctx context.Context, t *testing.T, st state.State, cluster string) {
	t.Helper()

	plan, err := template.WithCluster(cluster).Delete(ctx, st)
	if err != nil {
		t.Fatal(err)
	}

	if _, err = execute(ctx, st, plan); err != nil {
		t.Fatal(err)
	}
}

// waitFor waits until the resource exists and satisfies the condition.
func waitFor[T interface {
	comparable
	resource.Resource
}](ctx context.Context, t *testing.T, st state.State, empty T, condition func(T) bool) T {
	t.Helper()

	describe := func(res T) string {
		var none T
		if res == none {
			return "nothing"
		}

		text, err := yaml.Marshal(res.Spec())
		if err != nil {
			return err.Error()
		}

		return fmt.Sprintf("%s\n%s", res.Metadata(), text)
	}

	for {
		found, err := safe.StateGet[T](ctx, st, empty.Metadata())
		if err == nil && condition(found) {
			return found
		}

		if err != nil && !state.IsNotFoundError(err) {
			t.Fatal(err)
		}

		select {
		case <-ctx.Done():
			t.Fatalf("%s never became what the test waits for; last seen: %s", empty.Metadata(), describe(found))
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// waitGone waits until the resource does not exist.
func waitGone(ctx context.Context, t *testing.T, st state.State, ptr resource.Pointer) {
	t.Helper()

	for {
		_, err := st.Get(ctx, ptr)
		if state.IsNotFoundError(err) {
			return
		}

		select {
		case <-ctx.Done():
			t.Fatalf("%s is still there: %v", ptr, err)
		case <-time.After(5 * time.Millisecond):
		}
	}
}
