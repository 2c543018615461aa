package app

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// mine is a kubeconfig with a context of the user's own.
const mine = `apiVersion: v1
kind: Config
current-context: home
clusters: [{name: home, cluster: {server: "https://home.example.com"}}]
contexts: [{name: home, context: {cluster: home, user: me}}]
users: [{name: me, user: {token: mine}}]
`

// TestKubeconfigMerge adds a context, a second time as well, and leaves everything else as it is.
func TestKubeconfigMerge(t *testing.T) {
	file := filepath.Join(t.TempDir(), "config")
	t.Setenv("KUBECONFIG", file)

	if err := os.WriteFile(file, []byte(mine), 0o600); err != nil {
		t.Fatal(err)
	}

	for range 2 {
		s := newSession(t)

		output, _, err := s.run("kubeconfig", "edge-01", "--merge")
		if err != nil || !strings.Contains(output, "kubectl --context acme-edge-01 get nodes") || len(s.writes()) > 0 {
			t.Fatalf("%q %v, writes %v", output, err, s.writes())
		}

		config, err := clientcmd.LoadFromFile(file)
		if err != nil {
			t.Fatal(err)
		}

		if config.CurrentContext != "home" || config.AuthInfos["me"].Token != "mine" || len(config.Contexts) != 2 {
			t.Errorf("current context %q, %d contexts", config.CurrentContext, len(config.Contexts))
		}

		if added := config.Contexts["acme-edge-01"]; added == nil || config.Clusters[added.Cluster].Server != "https://omni.example.com:8100" ||
			config.AuthInfos[added.AuthInfo].Exec.Args[4] != "--oidc-extra-scope=cluster:edge-01" {
			t.Errorf("it is not added: %+v", config.Contexts)
		}
	}
}

// TestKubeconfigMergeKeepsSettings merges into what somebody has changed since, and into what omnictl wrote.
func TestKubeconfigMergeKeepsSettings(t *testing.T) {
	for name, text := range map[string]string{
		"changed": `clusters: [{name: acme-edge-01, cluster: {server: "https://omni.example.com:8100", proxy-url: "http://proxy.example.com"}}]
`,
		"by omnictl": `clusters: [{name: acme-edge-01, cluster: {server: "https://omni.example.com:8100", proxy-url: "http://proxy.example.com"}}]
contexts: [{name: acme-edge-01, context: {cluster: acme-edge-01, user: acme-edge-01-me@example.com}}]
users:
- name: acme-edge-01-me@example.com
  user:
    exec:
      apiVersion: client.authentication.k8s.io/v1
      command: kubectl
      args: [oidc-login, get-token, --oidc-issuer-url=https://omni.example.com/oidc, --oidc-client-id=native, --oidc-extra-scope=cluster:edge-01, --grant-type=authcode-keyboard]
`,
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "config")
			t.Setenv("KUBECONFIG", file)

			if err := os.WriteFile(file, []byte("apiVersion: v1\nkind: Config\n"+text), 0o600); err != nil {
				t.Fatal(err)
			}

			if _, _, err := newSession(t).run("kubeconfig", "edge-01", "--merge"); err != nil {
				t.Fatal(err)
			}

			config, err := clientcmd.LoadFromFile(file)
			if err != nil {
				t.Fatal(err)
			}

			context := config.Contexts["acme-edge-01"]
			if config.Clusters["acme-edge-01"].ProxyURL != "http://proxy.example.com" || len(config.AuthInfos) != 1 || config.AuthInfos[context.AuthInfo] == nil {
				t.Errorf("clusters %+v, context %+v, %d users", config.Clusters, context, len(config.AuthInfos))
			}
		})
	}
}

// TestKubeconfigIsNotOverwritten has the user's kubeconfig use the name for something else.
func TestKubeconfigIsNotOverwritten(t *testing.T) {
	for name, change := range map[string][]string{
		"a cluster": {"name: home, cluster:", "name: acme-edge-01, cluster:"},
		"a user":    {"name: me, user:", "name: acme-edge-01, user:"},
		"a context": {"name: home, context:", "name: acme-edge-01, context:"},
	} {
		file := filepath.Join(t.TempDir(), "config")
		t.Setenv("KUBECONFIG", file)

		text := strings.NewReplacer(change...).Replace(mine)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}

		_, _, err := newSession(t).run("kubeconfig", "edge-01", "--merge")
		if err == nil || !strings.Contains(err.Error(), `something else of the name "acme-edge-01"`) {
			t.Errorf("%s: %v", name, err)
		}

		if now, err := os.ReadFile(file); err != nil || string(now) != text {
			t.Errorf("%s: the file has changed: %v", name, err)
		}
	}
}

// TestKubeconfigNeedsAccess has connections that do not say how people reach their clusters, or say what is no URL.
func TestKubeconfigNeedsAccess(t *testing.T) {
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))

	for want, access := range map[string]*v1alpha1.OmniAccess{
		"does not say how people reach its clusters": nil,
		"status.access.oidcIssuerURL":                {KubernetesProxyURL: "https://a", OIDCIssuerURL: "--token-cache-dir=/", Account: "acme"},
		"status.access.kubernetesProxyURL":           {KubernetesProxyURL: "file:///etc", OIDCIssuerURL: "https://a", Account: "acme"},
	} {
		s := newSession(t)
		connection := &v1alpha1.OmniConnection{}
		connection.Name, connection.Namespace, connection.Status.Access = "omni", "fleet", access
		connection.Status.Endpoint = "https://omni.example.com"

		if err := s.client.Tracker().Update(v1alpha1.SchemeGroupVersion.WithResource("omniconnections"), connection, "fleet"); err != nil {
			t.Fatal(err)
		}

		if output, _, err := s.run("kubeconfig", "edge-01"); err == nil || !strings.Contains(err.Error(), want) || output != "" {
			t.Errorf("%s: %v %s", want, err, output)
		}
	}
}

// TestKubeconfigOfAnotherCluster has an OmniCluster say that the cluster of its name in Omni is not its own, in each condition
// that may say so: a kubeconfig would lead people into that one.
func TestKubeconfigOfAnotherCluster(t *testing.T) {
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))

	for _, one := range []metav1.Condition{
		{Type: v1alpha1.ConditionStalled, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonEndpointChanged},
		{Type: v1alpha1.ConditionStalled, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonNotOwned},
		{Type: v1alpha1.ConditionStalled, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonOwnershipLost},
		{Type: v1alpha1.ConditionStalled, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonOwnedByOtherHub},
		{Type: v1alpha1.ConditionStalled, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonRemoteClusterReplaced},
		{Type: v1alpha1.ConditionDeletionBlocked, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonEndpointChanged},
		{Type: v1alpha1.ConditionPlanned, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonEndpointChanged}, // it is suspended
	} {
		s := newSession(t)
		one.Message = "who the cluster belongs to"

		cluster := s.cluster("edge-01")
		cluster.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: one.Reason}, one}

		if err := s.client.Tracker().Update(v1alpha1.SchemeGroupVersion.WithResource("omniclusters"), cluster, "fleet"); err != nil {
			t.Fatal(err)
		}

		for _, args := range [][]string{{"kubeconfig", "edge-01"}, {"kubeconfig", "edge-01", "--merge"}} {
			output, _, err := s.run(args...)
			if err == nil || !strings.Contains(err.Error(), one.Reason+": "+one.Message) || output != "" {
				t.Errorf("%s %s: %v: %v %s", one.Type, one.Reason, args, err, output)
			}
		}
	}
}

// TestKubeconfigNeedsEvidence: the statuses of these OmniClusters do not show that the cluster in Omni is theirs. The connection may
// lead to another Omni, which could not be read since.
func TestKubeconfigNeedsEvidence(t *testing.T) {
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))

	for want, change := range map[string]func(*v1alpha1.OmniClusterStatus){
		"is not known to be in Omni":                     func(status *v1alpha1.OmniClusterStatus) { status.Omni = nil },
		"was last seen at https://elsewhere.example.com": func(status *v1alpha1.OmniClusterStatus) { status.Endpoint = "https://elsewhere.example.com" },
		"was last seen at no endpoint":                   func(status *v1alpha1.OmniClusterStatus) { status.Endpoint = "" },
	} {
		s := newSession(t)
		cluster := s.cluster("edge-01")
		change(&cluster.Status)
		s.put("omniclusters", cluster)

		for _, args := range [][]string{{"kubeconfig", "edge-01"}, {"kubeconfig", "edge-01", "--merge"}} {
			if output, _, err := s.run(args...); err == nil || !strings.Contains(err.Error(), want) || output != "" {
				t.Errorf("%s: %v: %v %s", want, args, err, output)
			}
		}
	}
}
