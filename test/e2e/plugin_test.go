package e2e

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/tools/clientcmd"

	"omni.texashpc.com/omni-cluster-operator/cmd/kubectl-omni/app"
	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// plugin runs kubectl omni in the namespace, as a user; "" is the administrator.
func (s *space) plugin(user string, args ...string) (output string, err error) {
	s.t.Helper()

	var out, errOut bytes.Buffer

	args = append(args, "--kubeconfig", stack.Hub.KubeconfigPath, "--cache-dir", s.t.TempDir(), "-n", s.name)
	if user != "" {
		args = append(args, "--as", s.user(user))
	}

	if status := app.Main(genericiooptions.IOStreams{In: &bytes.Buffer{}, Out: &out, ErrOut: &errOut}, args); status != 0 {
		err = fmt.Errorf("status %d: %s", status, errOut.String())
	}

	return out.String(), err
}

// pluginSays fails the test unless a command succeeds and says all of the texts.
func (s *space) pluginSays(user string, args []string, texts ...string) {
	s.t.Helper()

	output, err := s.plugin(user, args...)
	if err != nil {
		s.t.Errorf("%v as %q: %v", args, user, err)
	}

	for _, text := range texts {
		if !strings.Contains(output, text) {
			s.t.Errorf("%v as %q: no %q in\n%s", args, user, text, output)
		}
	}
}

// The plugin beside a real API server, for a person who may only look, and for one who decides.
func TestPlugin(t *testing.T) {
	t.Parallel()

	f := newFleet(t)
	f.apply(rolloutPolicy("  hold: true"))
	f.tiers(map[string]string{"one": "prod"})

	for _, role := range []string{"view", "edit", "admin"} {
		bind(t, f.name, role, rbacv1.Subject{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: f.user(role)})
	}

	f.apply(tiered("one", "prod", "v1.36.1"))
	f.waitCondition("ocl", "one", v1alpha1.ConditionHeld, metav1.ConditionTrue, v1alpha1.ReasonPolicyOnHold)
	f.wait("the role view", func() error {
		_, err := f.plugin("view", "status")

		return err
	})

	f.pluginSays("view", []string{"tree", "one"}, "OmniCluster/one", "OmniConnection/omni", "OmniControlPlane/one-cp", "OmniRolloutPolicy/fleet")
	f.pluginSays("view", []string{"status"}, "one", "PolicyOnHold")
	f.pluginSays("view", []string{"status", "one"}, "v1.35.1", "v1.36.1", "spec.hold of the policy is set")
	f.checkPlan()
	f.checkFiles()
	f.checkKubeconfig()
	f.checkRefusals()
	f.checkDecisions()
	f.checkApproval()
	f.checkBundle()
}

// checkPlan: there are changes, and the status of the process says so.
func (f *fleet) checkPlan() {
	f.t.Helper()

	output, err := f.plugin("view", "plan", "one")
	if err == nil || !strings.Contains(err.Error(), "status 1: ") || !strings.Contains(output, "turn") || !strings.Contains(output, "KubernetesVersion") {
		f.t.Errorf("plan: %v\n%s", err, output)
	}
}

// checkFiles: files are compared with what is there, and nothing is written.
func (f *fleet) checkFiles() {
	f.t.Helper()

	before := f.run("get", "ocl", "one", "-o", "jsonpath={.metadata.resourceVersion}")

	for _, test := range []struct{ manifest, want string }{
		{tiered("one", "prod", "v1.36.1"), "Nothing differs"},
		{tiered("one", "canary", "v1.36.2"), "spec.kubernetes.version"},
		{tiered("two", "prod", "v1.36.1"), "(created)"},
		{strings.Replace(tiered("one", "prod", "v1.36.1"), "  kubernetes:", "  kubernets: {}\n  kubernetes:", 1), "kubernets"},
	} {
		file := filepath.Join(f.t.TempDir(), "one.yaml")
		if err := os.WriteFile(file, []byte(test.manifest), 0o600); err != nil {
			f.t.Fatal(err)
		}

		output, err := f.plugin("edit", "plan", "-f", file)
		if says := output + fmt.Sprint(err); !strings.Contains(says, test.want) || (err == nil) != (test.want == "Nothing differs") {
			f.t.Errorf("plan -f says %s, want %q", says, test.want)
		}
	}

	if after := f.run("get", "ocl", "one", "-o", "jsonpath={.metadata.resourceVersion}"); after != before {
		f.t.Errorf("the dry run has changed the object: %s, %s", before, after)
	}
}

// checkKubeconfig: what a person gets leads to the proxy and the login of this Omni.
func (f *fleet) checkKubeconfig() {
	f.t.Helper()

	output, err := f.plugin("view", "kubeconfig", "one")
	if err != nil {
		f.t.Fatal(err)
	}

	config, err := clientcmd.Load([]byte(output))
	if err != nil {
		f.t.Fatal(err)
	}

	current := config.Contexts[config.CurrentContext]
	if server := config.Clusters[current.Cluster].Server; server != f.omni.KubernetesProxyURL() {
		f.t.Errorf("it leads to %s, want %s", server, f.omni.KubernetesProxyURL())
	}

	want := "oidc-login get-token --oidc-issuer-url=" + f.omni.OIDCIssuerURL() + " --oidc-client-id=native --oidc-extra-scope=cluster:one"
	if got := strings.Join(config.AuthInfos[current.AuthInfo].Exec.Args, " "); got != want {
		f.t.Errorf("login by %s, want %s", got, want)
	}
}

// checkRefusals: who may not is told what right is missing, and nothing is changed.
func (f *fleet) checkRefusals() {
	f.t.Helper()

	hash := f.run("get", "ocl", "one", "-o", "jsonpath={.status.rollout.hash}")

	for _, test := range []struct {
		user string
		args []string
		want string
	}{
		{"view", []string{"suspend", "one"}, `cannot patch resource "omniclusters"`},
		{"view", []string{"reconcile", "one"}, `cannot patch resource "omniclusters"`},
		{"view", []string{"promote", "fleet", "prod", "--for", "1h", "--yes"}, `cannot patch resource "omnirolloutpolicies"`},
		{"edit", []string{"hold", "fleet", "--release"}, `cannot patch resource "omnirolloutpolicies"`},
		{"edit", []string{"override", "one", "--reason", "the outage of tonight", "--yes", "--hash", hash}, "cannot override omniclusters"},
		{"none", []string{"tree", "one"}, `cannot get resource "omniclusters"`},
	} {
		if output, err := f.plugin(test.user, test.args...); err == nil || !strings.Contains(err.Error(), test.want) {
			f.t.Errorf("%v as %s: %v\n%s\nwant %q", test.args, test.user, err, output, test.want)
		}
	}

	if err := errors.Join(f.shows("ocl", "one", "{.spec.suspend}", "false"), f.shows("orp", "fleet", "{.spec.hold}", "true")); err != nil {
		f.t.Error(err)
	}
}

// checkDecisions: suspend, resume, the end of the hold and the promotion of a stage do what they say, and the cluster goes on.
// The canary stage has no clusters, and proves nothing.
func (f *fleet) checkDecisions() {
	f.t.Helper()

	f.pluginSays("edit", []string{"suspend", "one"}, "suspended")

	if err := f.shows("ocl", "one", "{.spec.suspend}", "true"); err != nil {
		f.t.Error(err)
	}

	if _, err := f.plugin("view", "resume", "one"); err == nil || !strings.Contains(err.Error(), `cannot patch resource "omniclusters"`) {
		f.t.Errorf("resume as view: %v", err)
	}

	f.pluginSays("edit", []string{"resume", "one"}, "resumed")
	f.pluginSays("admin", []string{"hold", "fleet", "--release"}, "fleet")
	f.waitCondition("ocl", "one", v1alpha1.ConditionHeld, metav1.ConditionTrue, v1alpha1.ReasonWaitingForStage)
	f.pluginSays("admin", []string{"promote", "fleet", "prod", "--for", "1h", "--yes"}, "prod")
	f.waitShows("the cluster to run v1.36.1", "ocl", "one", "{.status.rollout.last.result}", "Done")
	f.wait("nothing to be left to do", func() error {
		_, err := f.plugin("view", "plan", "one")

		return err
	})

	f.pluginSays("admin", []string{"hold", "fleet"}, "fleet")

	if err := f.shows("orp", "fleet", "{.spec.hold}", "true"); err != nil {
		f.t.Error(err)
	}

	f.pluginSays("admin", []string{"hold", "fleet", "--release"}, "fleet")
}

// checkApproval: what destroys waits for who may change the cluster, and is done once the hash that was looked at is approved.
func (f *fleet) checkApproval() {
	f.t.Helper()

	f.run("patch", "ocl", "one", "--type=merge", "-p", `{"spec":{"changePolicy":"ConfirmDestructive"}}`)
	f.apply(workersManifest("one-w", "one", "machines: []"))
	f.waitCondition("ow", "one-w", v1alpha1.ConditionSynced, metav1.ConditionTrue, "")
	f.run("delete", "ow", "one-w", "--wait=false")
	f.waitShows("a plan that waits for approval", "ocl", "one", `{.status.conditions[?(@.type=="Synced")].reason}`, v1alpha1.ReasonAwaitingApproval)

	hash := f.run("get", "ocl", "one", "-o", "jsonpath={.status.plan.hash}")
	approve := []string{"approve", "one", "--yes", "--hash", hash}

	if _, err := f.plugin("view", approve...); err == nil || !strings.Contains(err.Error(), `cannot patch resource "omniclusters"`) {
		f.t.Errorf("approve as view: %v", err)
	}

	if _, err := f.plugin("edit", "approve", "one", "--yes", "--hash", "another"); err == nil || !strings.Contains(err.Error(), "look again") {
		f.t.Errorf("approve another hash: %v", err)
	}

	f.pluginSays("edit", approve, "approved")
	f.wait("the set to be gone", func() error {
		_, err := tryGet[anyKind](f.space, "ow", "one-w")
		if apierrors.IsNotFound(err) {
			return nil
		}

		return fmt.Errorf("it is still there (%w)", err)
	})
}

// checkBundle: the bundle has our objects and no secret.
func (f *fleet) checkBundle() {
	f.t.Helper()

	output, err := f.plugin("view", "support-bundle", "--file", "-")
	if err != nil {
		f.t.Fatal(err)
	}

	if !strings.Contains(output, "kind: OmniCluster") || !strings.Contains(output, "kind: OmniRolloutPolicy") || strings.Contains(output, f.key) {
		f.t.Errorf("the bundle:\n%s", output)
	}
}
