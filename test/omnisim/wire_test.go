package omnisim_test

import (
	"context"
	"errors"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/cosi-project/runtime/pkg/resource"
	"github.com/cosi-project/runtime/pkg/safe"
	"github.com/cosi-project/runtime/pkg/state"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"

	"github.com/siderolabs/omni/client/pkg/client"
	"github.com/siderolabs/omni/client/pkg/client/management"
	"github.com/siderolabs/omni/client/pkg/omni/resources"
	"github.com/siderolabs/omni/client/pkg/omni/resources/omni"

	"omni.texashpc.com/omni-cluster-operator/test/omnisim"
)

// wantCode checks the code in an error's text and a word of it; an empty code wants no error.
func wantCode(t *testing.T, err error, code, word string) {
	t.Helper()

	if code == "" {
		if err != nil {
			t.Errorf("error %v, want none", err)
		}

		return
	}

	if err == nil {
		t.Errorf("no error, want code %s", code)

		return
	}

	found := regexp.MustCompile(`code = (\w+)`).FindStringSubmatch(err.Error())
	if found == nil || found[1] != code || !strings.Contains(err.Error(), word) {
		t.Errorf("error %q, want code %s and %q", err, code, word)
	}
}

func list(ctx context.Context, st state.State) error {
	_, err := safe.StateListAll[*omni.Cluster](ctx, st)

	return err
}

func testCluster(name string) *omni.Cluster {
	cluster := omni.NewCluster(name)
	cluster.TypedSpec().Value.TalosVersion, cluster.TypedSpec().Value.KubernetesVersion = "1.13.5", "1.35.1"

	return cluster
}

func TestPlaintext(t *testing.T) {
	sim := start(t, omnisim.Options{Plaintext: true})

	if sim.Endpoint() != "grpc://"+sim.Address() || sim.CAPEM() != nil {
		t.Errorf("endpoint %s with CA %q, want grpc:// and no CA", sim.Endpoint(), sim.CAPEM())
	}

	c, err := client.New(sim.Endpoint(), client.WithServiceAccount(key(t, sim, omnisim.RoleReader)))
	if err != nil {
		t.Fatal(err)
	}

	wantCode(t, list(deadline(t), c.Omni().State()), "", "")
	_ = c.Close()
}

func TestOptions(t *testing.T) {
	for name, options := range map[string]omnisim.Options{
		"no port":         {Address: "127.0.0.1"},
		"not on loopback": {Address: "0.0.0.0:0"},
		"name":            {Address: "example.com:443"},
		"negative phase":  {Phase: -time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			if sim, err := omnisim.Start(options); err == nil {
				sim.Close()
				t.Error("started")
			}
		})
	}
}

func TestKeys(t *testing.T) {
	sim := start(t, omnisim.Options{})

	first := key(t, sim, omnisim.RoleReader)
	st := connect(t, sim, first).Omni().State()
	wantCode(t, list(deadline(t), st), "", "")

	second, err := sim.AddKey("account-reader", time.Hour)
	if err != nil {
		t.Fatal(err)
	}

	if err = sim.RevokeKey(first); err != nil {
		t.Fatal(err)
	}

	wantCode(t, list(deadline(t), st), "Unauthenticated", "invalid signature")

	other := connect(t, sim, second).Omni().State()
	wantCode(t, list(deadline(t), other), "", "")

	if err = sim.SetRole("account-reader", omnisim.RoleNone); err != nil {
		t.Fatal(err)
	}

	wantCode(t, list(deadline(t), other), "PermissionDenied", "insufficient role")

	for name, failed := range map[string]error{
		"revoke twice":   sim.RevokeKey(first),
		"revoke nothing": sim.RevokeKey("nonsense"),
		"unknown name":   sim.SetRole("nobody", omnisim.RoleAdmin),
		"unknown role":   sim.SetRole("account-reader", "King"),
	} {
		if failed == nil {
			t.Errorf("%s: no error", name)
		}
	}

	if _, err = sim.CreateServiceAccount("account-reader", omnisim.RoleReader, time.Hour); err == nil {
		t.Error("two accounts of one name")
	}
}

func TestExpiredKeys(t *testing.T) {
	sim := start(t, omnisim.Options{})

	expired, err := sim.CreateServiceAccount("old", omnisim.RoleAdmin, -time.Hour)
	if err != nil {
		t.Fatal(err)
	}

	// The library detects it locally.
	if err = list(deadline(t), connect(t, sim, expired).Omni().State()); err == nil || !strings.Contains(err.Error(), "no valid signing keys") {
		t.Errorf("error %v, want no valid signing keys", err)
	}

	if _, err = sim.CreateServiceAccount("short", omnisim.RoleAdmin, time.Millisecond); err == nil {
		t.Error("a key that lives a millisecond was made")
	}
}

func TestFaultsHitWhatTheySay(t *testing.T) {
	sim := start(t, omnisim.Options{})
	ctx, st := deadline(t), operator(t, sim)

	sim.Inject(omnisim.Fault{Method: "Create", Type: omni.ClusterType, Times: 2, Code: codes.ResourceExhausted, Message: "too many"})
	wantCode(t, list(ctx, st), "", "")
	wantCode(t, st.Create(ctx, testCluster("a")), "ResourceExhausted", "too many")
	wantCode(t, st.Create(ctx, testCluster("a")), "ResourceExhausted", "too many")
	wantCode(t, st.Create(ctx, testCluster("a")), "", "")

	remove := sim.Inject(omnisim.Fault{Method: "List", Code: codes.Unavailable})
	wantCode(t, list(ctx, st), "Unavailable", "injected")
	wantCode(t, list(ctx, st), "Unavailable", "injected")
	remove()
	wantCode(t, list(ctx, st), "", "")
}

func TestHangingAndSlowRequests(t *testing.T) {
	sim := start(t, omnisim.Options{})
	st := operator(t, sim)

	remove := sim.Inject(omnisim.Fault{Method: "Get", Hang: true})
	short, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()

	_, err := st.Get(short, omni.NewCluster("a").Metadata())
	wantCode(t, err, "DeadlineExceeded", "")

	// A hanging request continues when the fault is removed.
	answered := make(chan error, 1)

	go func() {
		_, getErr := st.Get(deadline(t), omni.NewCluster("a").Metadata())
		answered <- getErr
	}()

	time.Sleep(50 * time.Millisecond)
	remove()

	if err = <-answered; !state.IsNotFoundError(err) {
		t.Errorf("error %v after the fault was removed, want not found", err)
	}

	sim.Inject(omnisim.Fault{Method: "Get", Times: 1, Delay: 60 * time.Millisecond})

	began := time.Now()
	if _, err = st.Get(deadline(t), omni.NewCluster("a").Metadata()); !state.IsNotFoundError(err) || time.Since(began) < 60*time.Millisecond {
		t.Errorf("error %v after %s, want not found after 60ms", err, time.Since(began))
	}
}

func TestGoingDownAndComingBack(t *testing.T) {
	sim := start(t, omnisim.Options{})
	st, address := operator(t, sim), sim.Address()

	if err := sim.ComeBack(); err == nil {
		t.Error("came back without having been down")
	}

	sim.Inject(omnisim.Fault{Method: "Get", Hang: true}) // must not prevent the server from stopping

	go func() { _, _ = st.Get(deadline(t), omni.NewCluster("a").Metadata()) }()

	time.Sleep(20 * time.Millisecond)
	sim.GoDown()
	wantCode(t, list(deadline(t), st), "Unavailable", "")

	if err := sim.ComeBack(); err != nil {
		t.Fatal(err)
	}

	if sim.Address() != address {
		t.Errorf("came back on %s, want %s", sim.Address(), address)
	}

	for ctx := deadline(t); ; time.Sleep(20 * time.Millisecond) {
		err := list(ctx, st)
		if err == nil {
			return
		}

		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			t.Fatal(err)
		}
	}
}

func TestStreamsAreReset(t *testing.T) {
	sim := start(t, omnisim.Options{})
	st := connect(t, sim, key(t, sim, omnisim.RoleOperator)).Omni().State()
	kind := resource.NewMetadata(resources.DefaultNamespace, omni.ClusterType, "", resource.VersionUndefined)
	events := make(chan state.Event)

	if err := st.WatchKind(deadline(t), kind, events, state.WithBootstrapContents(true)); err != nil {
		t.Fatal(err)
	}

	if event := <-events; event.Type != state.Bootstrapped {
		t.Fatalf("event %v, want bootstrapped", event.Type)
	}

	sim.ResetStreams()

	// The library resumes a watch from its bookmark or ends it with an error; it never stays silent.
	if err := st.Create(deadline(t), testCluster("a")); err != nil {
		t.Fatal(err)
	}

	select {
	case <-events:
	case <-deadline(t).Done():
		t.Error("nothing came after the reset")
	}
}

func TestJournal(t *testing.T) {
	sim := start(t, omnisim.Options{Manual: true})
	ctx, st := deadline(t), operator(t, sim)

	if err := st.Create(ctx, testCluster("a")); err != nil {
		t.Fatal(err)
	}

	waitFor(ctx, t, st, omni.NewClusterStatus("a"), func(*omni.ClusterStatus) bool { return true })
	sim.ForgetRequests()

	cluster, err := safe.StateUpdateWithConflicts(ctx, st, omni.NewCluster("a").Metadata(), func(cluster *omni.Cluster) error {
		cluster.Metadata().Annotations().Set("example", "a")

		return nil
	})
	if err != nil {
		t.Fatal(err)
	}

	// Refused writes are requests but no writes; writes through State are neither.
	wantCode(t, st.Create(ctx, cluster), "AlreadyExists", "")
	wantCode(t, sim.State().Create(ctx, testCluster("b")), "", "")

	if _, err = st.Teardown(ctx, cluster.Metadata()); err != nil {
		t.Fatal(err)
	}

	writes := sim.Writes()
	for i := range writes {
		writes[i].Time = time.Time{}
	}

	want := []omnisim.Write{
		{Who: "account-operator@serviceaccount.omni.sidero.dev", Verb: "Update", Type: omni.ClusterType, ID: "a"},
		{Who: "account-operator@serviceaccount.omni.sidero.dev", Verb: "Teardown", Type: omni.ClusterType, ID: "a"},
	}
	if diff := cmp.Diff(want, writes); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}

	requests := sim.Requests()
	for request, count := range map[omnisim.Request]int{
		{Method: "Get", Type: omni.ClusterType}:      1,
		{Method: "Update", Type: omni.ClusterType}:   1,
		{Method: "Create", Type: omni.ClusterType}:   1,
		{Method: "Teardown", Type: omni.ClusterType}: 1,
	} {
		if requests[request] != count {
			t.Errorf("%v: %d requests, want %d", request, requests[request], count)
		}
	}
}

func TestKubeconfigRightAfterCreation(t *testing.T) {
	sim := start(t, omnisim.Options{Manual: true, KubernetesProxyURL: "https://127.0.0.1:4711"})
	c := connect(t, sim, key(t, sim, omnisim.RoleOperator))

	if err := c.Omni().State().Create(deadline(t), testCluster("a")); err != nil {
		t.Fatal(err)
	}

	ask := func() ([]byte, error) {
		return c.Management().WithCluster("a").Kubeconfig(deadline(t), management.WithServiceAccount(time.Hour, "robot", "admins"))
	}

	_, err := ask()
	wantCode(t, err, "Unknown", "failed to get cluster UUID")
	sim.Step()

	config, err := ask()
	if err != nil || !strings.Contains(string(config), "https://127.0.0.1:4711") {
		t.Errorf("kubeconfig (%v) does not lead to the proxy", err)
	}
}

func TestForcedStatus(t *testing.T) {
	sim := start(t, omnisim.Options{})
	ctx, st := deadline(t), operator(t, sim)
	machines, _ := sim.AddMachines(2)

	apply(ctx, t, st, listed("alpha", machines[0], machines[1]))
	waitFor(ctx, t, st, omni.NewClusterStatus("alpha"), running)
	sim.Pause()

	_, err := safe.StateUpdateWithConflicts(ctx, sim.Unchecked(), omni.NewClusterStatus("alpha").Metadata(), func(status *omni.ClusterStatus) error {
		status.TypedSpec().Value.Ready = false

		return nil
	}, state.WithUpdateOwner("ClusterStatusController"))
	if err != nil {
		t.Fatal(err)
	}

	time.Sleep(3 * phase)

	if status, _ := safe.StateGetByID[*omni.ClusterStatus](ctx, st, "alpha"); status.TypedSpec().Value.Ready {
		t.Error("the forced status was overwritten while the engine paused")
	}

	sim.Resume()
	sim.Step()

	// The next change of the cluster restores the true status.
	apply(ctx, t, st, strings.Replace(listed("alpha", machines[0], machines[1]), "65535", "1024", 1))
	waitFor(ctx, t, st, omni.NewClusterStatus("alpha"), running)
}

// TestClock: calls that are signed more than five minutes from the server's time are those of a stranger.
func TestClock(t *testing.T) {
	sim := start(t, omnisim.Options{})
	st := connect(t, sim, key(t, sim, omnisim.RoleReader)).Omni().State()

	for _, test := range []struct {
		ahead      time.Duration
		code, word string
	}{
		{4 * time.Minute, "", ""},
		{-4 * time.Minute, "", ""},
		{6 * time.Minute, "Unauthenticated", "invalid signature"},
		{-6 * time.Minute, "Unauthenticated", "invalid signature"},
		{0, "", ""},
	} {
		sim.SetClock(test.ahead)
		wantCode(t, list(deadline(t), st), test.code, test.word)
	}
}
