package env

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestStack starts the whole stack with stand-ins for this repository's programs, and treats
// them as tests do: read, restart, kill, stop.
func TestStack(t *testing.T) {
	stack, err := StartStack(t.Context(), StackOptions{
		Hub:           Options{Dir: t.TempDir(), Progress: t.Output()},
		OmniAPIServer: OmniAPIServerOptions{Binary: os.Args[0]},
		Controller:    ControllerOptions{Binary: os.Args[0], Namespace: "shop", DestroySettleTime: 2 * time.Second},
	})
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() {
		if err := stack.Stop(); err != nil {
			t.Error(err)
		}
	})

	stdout, _, err := stack.Kubectl(t.Context(), "api-resources", "--api-group=omni.texashpc.com", "-o", "name")
	if err != nil || stdout != "omniclusters.omni.texashpc.com\n" {
		t.Errorf("api-resources = %q, %v", stdout, err)
	}

	t.Run("flags", func(t *testing.T) { testFlags(t, stack) })
	t.Run("namespace", func(t *testing.T) {
		if _, err := stack.Client().RbacV1().RoleBindings("shop").Get(t.Context(), "omni-controller", metav1.GetOptions{}); err != nil {
			t.Error(err)
		}
	})
	t.Run("API server survives a kill", func(t *testing.T) { testKillAPIServer(t, stack) })
	t.Run("controller", func(t *testing.T) { testController(t, stack) })
	t.Run("second API server", func(t *testing.T) {
		if _, err := stack.StartOmniAPIServer(t.Context(), OmniAPIServerOptions{Binary: os.Args[0]}); err == nil {
			t.Error("a second omni-apiserver was started")
		}
	})
}

func testFlags(t *testing.T, stack *Stack) {
	tests := map[string]struct {
		args string
		want []string
	}{
		"omni-apiserver": {stack.OmniAPIServer.Args(), []string{
			"--kubeconfig", "--authentication-kubeconfig", "--authorization-kubeconfig", "--bind-address", "--secure-port",
			"--tls-cert-file", "--tls-private-key-file", "--etcd-data-dir",
		}},
		"omni-controller": {stack.Controller.Args(), []string{
			"--kubeconfig", "--metrics-bind-address", "--metrics-secure", "--health-probe-bind-address", "--leader-elect", "--allowed-networks", "--namespace", "--role-binding", "--join-settle-time",
			"--destroy-settle-time",
		}},
	}

	for name, test := range tests {
		var got []string

		for _, arg := range strings.Fields(test.args) {
			flag, _, _ := strings.Cut(arg, "=")
			got = append(got, flag)
		}

		if !slices.Equal(got, test.want) {
			t.Errorf("%s has flags %q, want %q", name, got, test.want)
		}
	}

	for _, want := range []string{"--leader-elect=false", "--namespace=shop", "--join-settle-time=100ms", "--destroy-settle-time=2s"} {
		if !strings.Contains(stack.Controller.Args(), want) {
			t.Errorf("the controller lacks %s", want)
		}
	}
}

func testKillAPIServer(t *testing.T, stack *Stack) {
	stack.OmniAPIServer.Kill()

	if _, _, err := stack.Kubectl(t.Context(), "get", "--raw", "/apis/omni.texashpc.com/v1alpha1"); err == nil {
		t.Error("the API answers while its server is dead")
	}

	start := time.Now()
	if err := stack.OmniAPIServer.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}

	t.Logf("served again after %s", time.Since(start).Round(time.Millisecond))

	starts, err := os.ReadFile(filepath.Join(stack.OmniAPIServer.EtcdDataDir, "starts"))
	if err != nil || string(starts) != "start\nstart\n" {
		t.Errorf("the data directory holds %q, %v; want two starts", starts, err)
	}
}

func testController(t *testing.T, stack *Stack) {
	metrics, err := stack.Controller.Metrics(t.Context())
	if err != nil || metrics != "workqueue_depth 0\n" {
		t.Errorf("metrics = %q, %v", metrics, err)
	}

	second, err := stack.StartController(t.Context(), ControllerOptions{
		Binary: os.Args[0], Name: "second", AllNamespaces: true, LeaderElection: true, Args: []string{"--namespace=other"},
	})
	if err != nil {
		t.Fatal(err)
	}

	if args := second.Args(); !strings.HasSuffix(args, "--leader-elect=true --allowed-networks=127.0.0.0/8 --all-namespaces --join-settle-time=100ms --namespace=other") {
		t.Errorf("the second controller has flags %q", args)
	}

	if err := stack.Controller.Stop(); err != nil {
		t.Error(err)
	}

	if !second.Running() || stack.Controller.Running() {
		t.Error("stopping one controller reached the other")
	}

	if _, err := stack.Controller.Metrics(t.Context()); err == nil {
		t.Error("a stopped controller has metrics")
	}
}
