package omnicluster

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/index"
	"omni.texashpc.com/omni-cluster-operator/test/looptest"
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

	m := newMapper(t, demo, claimant, other, w)
	ctx := t.Context()

	secret, configMap := index.SecretMetadata(), index.ConfigMapMetadata()
	secret.SetNamespace(testNamespace)
	secret.SetName("s")
	configMap.SetNamespace(testNamespace)
	configMap.SetName("m")

	connection := &v1alpha1.OmniConnection{ObjectMeta: metav1.ObjectMeta{Namespace: testNamespace, Name: "omni"}}

	for name, test := range map[string]struct {
		got  []reconcile.Request
		want string
	}{
		"document":                {ClusterOfDocument(ctx, w), "team/demo"},
		"document of nothing":     {ClusterOfDocument(ctx, &v1alpha1.OmniMachine{}), ""},
		"connection":              {m.ClustersOfConnection(ctx, connection), "team/demo team/rival"},
		"connection by UID":       {m.ClustersOfConnectionUID(ctx, "uid-connection"), "team/demo team/rival"},
		"unknown UID":             {m.ClustersOfConnectionUID(ctx, "uid-unknown"), ""},
		"cluster in Omni":         {m.ClustersOfRemote(ctx, Remote{"uid-connection", "demo"}), "team/demo team/rival"},
		"unknown cluster in Omni": {m.ClustersOfRemote(ctx, Remote{"uid-connection", "unknown"}), ""},
		"rivals":                  {m.OtherClaimants(ctx, demo), "team/demo team/rival"},
		"Secret":                  {m.ClustersOfSecret(ctx, secret), "team/demo team/other"},
		"ConfigMap":               {m.ClustersOfConfigMap(ctx, configMap), "team/demo"},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, strings.Join(names(test.got), " ")); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// newMapper returns a Mapper over an API with these objects, the OmniConnection omni and the indexes.
func newMapper(t *testing.T, objects ...client.Object) *Mapper {
	t.Helper()

	api := looptest.NewAPI(objects...).WithObjects(&v1alpha1.OmniConnection{ObjectMeta: meta("omni", "uid-connection")}).Build()

	return NewMapper(api)
}
