package deploy

import (
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/chart/common"
	chartv2 "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/kube"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"omni.texashpc.com/omni-cluster-operator/test/env"
)

// TestUpgrade: what earlier charts rendered is installed on a real hub, by Helm and without it, and becomes what this one
// renders from the same values, in place: no object is made anew.
func TestUpgrade(t *testing.T) {
	t.Parallel()

	hub := startHub(t)

	for _, set := range frozenSets(t) {
		t.Run("apply "+set.name, func(t *testing.T) {
			manifest := stream(mustRender(t, set.values))
			kubectl(t, hub, set.rendered, "apply", "--server-side", "-f", "-")
			before := identities(t, hub, set.rendered)
			kubectl(t, hub, manifest, "apply", "--server-side", "-f", "-")
			checkSame(t, before, identities(t, hub, manifest))

			for _, object := range decode(t, manifest) {
				checkKept(t, hub, object)
			}

			// The token of a ServiceAccount goes with its account.
			kubectl(t, hub, manifest, "delete", "--ignore-not-found", "-f", "-")
		})

		t.Run("helm "+set.name, func(t *testing.T) {
			helm := newHelm(t, hub)
			helm.installFrozen(t, set)
			before := identities(t, hub, set.rendered)
			helm.upgrade(t, set.values)
			checkSame(t, before, identities(t, hub, stream(mustRender(t, set.values))))
			helm.uninstall(t)
		})
	}
}

// installFrozen installs, as a release, what an earlier chart rendered.
func (h *helmClient) installFrozen(t *testing.T, set frozenSet) {
	t.Helper()

	chart := &chartv2.Chart{
		Metadata: &chartv2.Metadata{APIVersion: "v2", Name: release, Version: "0.0.1", Type: "application"},
		// As a file and not as a template: alerts have braces of their own.
		Templates: []*common.File{{Name: "templates/frozen.yaml", Data: []byte(`{{ .Files.Get "frozen.yaml" }}`)}},
		Files:     []*common.File{{Name: "frozen.yaml", Data: []byte(set.rendered)}},
	}

	install := action.NewInstall(h.config)
	install.ReleaseName, install.Namespace = release, namespace
	install.WaitStrategy, install.Timeout, install.ServerSideApply = kube.HookOnlyStrategy, time.Minute, true

	if _, err := install.RunWithContext(t.Context(), chart, map[string]any{}); err != nil {
		t.Fatal(err)
	}
}

// identities are the UIDs of the objects of a manifest, as the hub has them.
func identities(t *testing.T, hub *env.Hub, manifest string) map[string]string {
	t.Helper()

	uids := map[string]string{}

	for _, object := range decode(t, kubectl(t, hub, manifest, "get", "-f", "-", "-o", "json")) {
		items, _, err := unstructured.NestedSlice(object.Object, "items")
		if err != nil {
			t.Fatal(err)
		}

		for _, item := range items {
			stored := &unstructured.Unstructured{Object: item.(map[string]any)}
			uids[identity(stored)] = string(stored.GetUID())
		}
	}

	return uids
}

// checkSame: what was there before is there with the same UID.
func checkSame(t *testing.T, before, after map[string]string) {
	t.Helper()

	if len(before) == 0 {
		t.Fatal("nothing was installed")
	}

	maps.DeleteFunc(after, func(name, _ string) bool { return before[name] == "" })

	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("objects are gone or made anew; -before +after:\n%s", strings.TrimSpace(diff))
	}
}
