package omnicluster

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/index"
)

func names(requests []reconcile.Request) []string {
	var all []string
	for _, request := range requests {
		all = append(all, request.Namespace+"/"+request.Name)
	}

	slices.Sort(all)

	return slices.Compact(all)
}

func TestMapper(t *testing.T) {
	demo, claimant, other := newCluster(), newCluster(), newCluster()
	claimant.Name, claimant.UID, claimant.Spec.ClusterName = "rival", "uid-rival", "demo"
	other.Name, other.UID, other.Spec.ConnectionRef.Name = "other", "uid-other", "elsewhere"
	other.Spec.Patches = []v1alpha1.Patch{{ValueFrom: &v1alpha1.ValueSource{SecretKeyRef: &v1alpha1.KeyReference{Name: "s", Key: "k"}}}}

	w := newWorkers("w", machineClass, 1)
	w.Spec.Patches = []v1alpha1.Patch{
		{ValueFrom: &v1alpha1.ValueSource{SecretKeyRef: &v1alpha1.KeyReference{Name: "s", Key: "k"}}},
		{ValueFrom: &v1alpha1.ValueSource{ConfigMapKeyRef: &v1alpha1.KeyReference{Name: "m", Key: "k"}}},
	}

	b := newBench(t, demo, claimant, other, w)
	m := &mapper{client: b.client}
	ctx := t.Context()

	secret, configMap := index.SecretMetadata(), index.ConfigMapMetadata()
	secret.SetNamespace(benchNamespace)
	secret.SetName("s")
	configMap.SetNamespace(benchNamespace)
	configMap.SetName("m")

	connection := &v1alpha1.OmniConnection{ObjectMeta: metav1.ObjectMeta{Namespace: benchNamespace, Name: "omni"}}

	for name, test := range map[string]struct {
		got  []reconcile.Request
		want string
	}{
		"document":                {clusterOfDocument(ctx, w), "team/demo"},
		"document of nothing":     {clusterOfDocument(ctx, &v1alpha1.OmniMachine{}), ""},
		"connection":              {m.clustersOfConnection(ctx, connection), "team/demo team/rival"},
		"connection by UID":       {m.clustersOfConnectionUID(ctx, "uid-connection"), "team/demo team/rival"},
		"unknown UID":             {m.clustersOfConnectionUID(ctx, "uid-unknown"), ""},
		"cluster in Omni":         {m.clustersOfRemote(ctx, Remote{"uid-connection", "demo"}), "team/demo team/rival"},
		"unknown cluster in Omni": {m.clustersOfRemote(ctx, Remote{"uid-connection", "unknown"}), ""},
		"rivals":                  {m.otherClaimants(ctx, demo), "team/demo team/rival"},
		"Secret":                  {m.clustersOfSecret(ctx, secret), "team/demo team/other"},
		"ConfigMap":               {m.clustersOfConfigMap(ctx, configMap), "team/demo"},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, strings.Join(names(test.got), " ")); diff != "" {
				t.Error(diff)
			}
		})
	}
}
