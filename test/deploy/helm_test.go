package deploy

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/chart/common"
	chartv2 "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/kube"
	"k8s.io/cli-runtime/pkg/genericclioptions"

	"omni.texashpc.com/omni-cluster-operator/test/env"
)

// claim is the volume claim of the objects.
const claim = "data-omni-apiserver-0"

// TestHelm installs, upgrades and uninstalls with Helm itself, as the how-to says: the claim with the objects outlives
// the release, another writer's caBundle outlives an upgrade, and nothing else stays.
func TestHelm(t *testing.T) {
	t.Parallel()

	hub := startHub(t)
	helm := newHelm(t, hub)

	helm.install(t, "")
	eventually(t, hub, "the claim", func(string) error { return nil }, "get", "pvc", claim, "-n", namespace)

	// Made by the real controllers of workloads, in a namespace that enforces the restricted Pod Security Standard.
	eventually(t, hub, "the Pods", func(stdout string) error {
		if got := strings.Fields(stdout); !slices.Equal(got, []string{"omni-apiserver", "omni-controller", "omni-controller"}) {
			return fmt.Errorf("there are those of %v", got)
		}

		return nil
	}, "get", "pods", "-n", namespace, "--sort-by=.metadata.name", "-o", `jsonpath={.items[*].metadata.labels.app\.kubernetes\.io/name}`)

	// cert-manager's cainjector would write this. kube-apiserver wants well-formed authorities.
	kubectl(t, hub, "", "patch", "apiservice", "v1alpha1.omni.texashpc.com", "--type=merge", "--field-manager=cainjector",
		"-p", fmt.Sprintf(`{"spec": {"caBundle": %q}}`, encoded(hub.CA())))

	helm.conflictsAfterScale(t, hub)
	helm.upgrade(t, "controller: {namespaces: [team-a]}")

	if got := kubectl(t, hub, "", "get", "apiservice", "v1alpha1.omni.texashpc.com", "-o", "jsonpath={.spec.caBundle}"); got != encoded(hub.CA()) {
		t.Errorf("an upgrade leaves caBundle as %q", got)
	}

	// What the old values made and the new ones do not is gone; what they share stays.
	for kind, name := range map[string]string{"rolebindings": "omni-controller", "roles": "omni-controller-lease"} {
		if got := kubectl(t, hub, "", "get", kind, "-A", "--field-selector=metadata.name="+name, "-o", "jsonpath={.items[*].metadata.namespace}"); got != "team-a" {
			t.Errorf("there are %s %s in %q", kind, name, got)
		}
	}

	if got := kubectl(t, hub, "", "get", "deployments", "-n", namespace, "-o", "name"); strings.TrimSpace(got) != "deployment.apps/omni-controller-team-a" {
		t.Errorf("Deployments: %q", got)
	}

	// With a namespace, its account goes.
	if got := kubectl(t, hub, "", "get", "serviceaccounts", "-n", namespace, "-l", "app.kubernetes.io/name=omni-controller", "-o", "name"); strings.TrimSpace(got) != "serviceaccount/omni-controller-team-a" {
		t.Errorf("accounts of controllers: %q", got)
	}

	helm.leavesSharedAccount(t, hub)
	helm.refusesOtherStorage(t)
	helm.uninstall(t)

	eventually(t, hub, "the StatefulSet to be gone", func(stdout string) error {
		if stdout != "" {
			return fmt.Errorf("there are %s", stdout)
		}

		return nil
	}, "get", "statefulsets,deployments,services,apiservices,clusterroles,clusterrolebindings,roles,rolebindings,certificates,issuers,networkpolicies",
		"-A", "-l", "app.kubernetes.io/part-of=omni-cluster-operator", "-o", "name")

	if got := kubectl(t, hub, "", "get", "pvc", claim, "-n", namespace, "-o", "jsonpath={.metadata.deletionTimestamp}{.metadata.ownerReferences}"); got != "" {
		t.Errorf("the claim is about to go: %q", got)
	}

	kubectl(t, hub, "", "get", "namespace", namespace)

	// The next installation finds the claim.
	helm.install(t, "")
	kubectl(t, hub, "", "get", "pvc", claim, "-n", namespace)

	checkReinstall(t, hub, helm)
}

// helmClient is Helm as an administrator runs it.
type helmClient struct{ config *action.Configuration }

func newHelm(t *testing.T, hub *env.Hub) *helmClient {
	t.Helper()

	flags := genericclioptions.NewConfigFlags(false)
	flags.KubeConfig = &hub.KubeconfigPath
	*flags.Namespace = namespace

	config := action.NewConfiguration()
	if err := config.Init(flags, namespace, "secret"); err != nil {
		t.Fatal(err)
	}

	return &helmClient{config: config}
}

func (h *helmClient) install(t *testing.T, values string) {
	t.Helper()

	install := action.NewInstall(h.config)
	install.ReleaseName, install.Namespace = release, namespace
	// There are no nodes: nothing becomes ready.
	install.WaitStrategy, install.Timeout, install.ServerSideApply = kube.HookOnlyStrategy, time.Minute, true

	if _, err := install.RunWithContext(t.Context(), loaded(t), parse(t, values)); err != nil {
		t.Fatal(err)
	}
}

func (h *helmClient) upgrade(t *testing.T, values string) {
	t.Helper()

	if err := h.tryUpgrade(t, values); err != nil {
		t.Fatal(err)
	}
}

func (h *helmClient) tryUpgrade(t *testing.T, values string) error {
	t.Helper()

	return h.upgradeTo(t, loaded(t), values)
}

// loaded is the chart.
func loaded(t *testing.T) *chartv2.Chart {
	t.Helper()

	chart, err := loader.Load(chartDir)
	if err != nil {
		t.Fatal(err)
	}

	return chart
}

func (h *helmClient) upgradeTo(t *testing.T, chart *chartv2.Chart, values string) error {
	t.Helper()

	_, err := h.newUpgrade().RunWithContext(t.Context(), release, chart, parse(t, values))

	return err
}

func (h *helmClient) newUpgrade() *action.Upgrade {
	upgrade := action.NewUpgrade(h.config)
	upgrade.Namespace = namespace
	upgrade.WaitStrategy, upgrade.Timeout = kube.HookOnlyStrategy, time.Minute

	return upgrade
}

// conflictsAfterScale: an upgrade starts what kubectl has scaled to 0, and refuses to change another number that kubectl has set,
// as docs/how-to/install.md says, unless that is forced.
func (h *helmClient) conflictsAfterScale(t *testing.T, hub *env.Hub) {
	t.Helper()

	scale := func(replicas string) {
		kubectl(t, hub, "", "scale", "deployment", "--selector=app.kubernetes.io/name=omni-controller", "--replicas="+replicas, "-n", namespace)
	}
	want := func(replicas, after string) {
		if got := kubectl(t, hub, "", "get", "deployment", "omni-controller", "-n", namespace, "-o", "jsonpath={.spec.replicas}"); got != replicas {
			t.Errorf("%s there are %s replicas, want %s", after, got, replicas)
		}
	}

	scale("0")
	h.upgrade(t, "")
	want("2", "after an upgrade of what was scaled to 0")
	scale("1")

	if err := h.tryUpgrade(t, ""); err == nil || !strings.Contains(err.Error(), `conflict with "kubectl"`) || !strings.Contains(err.Error(), ".spec.replicas") {
		t.Errorf("an upgrade of what was scaled to 1: %v", err)
	}

	scale("2")
	h.upgrade(t, "")
	scale("1")

	upgrade := h.newUpgrade()
	upgrade.ForceConflicts = true

	if _, err := upgrade.RunWithContext(t.Context(), release, loaded(t), map[string]any{}); err != nil {
		t.Errorf("an upgrade that forces conflicts: %v", err)
	}

	want("2", "after an upgrade that forces conflicts")
}

// refusesOtherStorage: an upgrade never serves an empty API because somebody forgot a value, and the claim's template
// cannot change.
func (h *helmClient) refusesOtherStorage(t *testing.T) {
	t.Helper()

	for values, want := range map[string]string{
		valueSets(t)["external-etcd"]:                                   "the StatefulSet omni-apiserver has the objects in the embedded etcd",
		`{fullnameOverride: other, controller: {namespaces: [team-a]}}`: "the StatefulSet omni-apiserver has the objects on the claim data-omni-apiserver-0",
		// With the namespaces of before: a failed upgrade leaves what it made.
		`{controller: {namespaces: [team-a]}, apiserver: {etcd: {embedded: {persistence: {size: 32Gi}}}}}`: "spec.volumeClaimTemplates",
	} {
		if err := h.tryUpgrade(t, values); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", values, err)
		}
	}
}

func (h *helmClient) uninstall(t *testing.T) {
	t.Helper()

	uninstall := action.NewUninstall(h.config)
	uninstall.WaitStrategy, uninstall.Timeout = kube.HookOnlyStrategy, time.Minute

	if _, err := uninstall.Run(release); err != nil {
		t.Fatal(err)
	}
}

func parse(t *testing.T, values string) map[string]any {
	t.Helper()

	result, err := common.ReadValues([]byte(values))
	if err != nil {
		t.Fatal(err)
	}

	return result
}
