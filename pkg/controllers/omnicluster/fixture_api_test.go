package omnicluster

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/test/looptest"
)

// newClient makes the API: objects, indexes, and a count of what is written.
func (f *fixture) newClient(objects []client.Object) {
	f.t.Helper()

	f.client = looptest.NewAPI(objects...).WithObjects(&v1alpha1.OmniConnection{
		ObjectMeta: metav1.ObjectMeta{Namespace: testNamespace, Name: "omni", UID: "uid-connection"},
		Spec:       v1alpha1.OmniConnectionSpec{Endpoint: f.omni.Endpoint(), CABundle: f.omni.CAPEM()},
	}, &corev1.Namespace{
		ObjectMeta: metav1.ObjectMeta{Name: testNamespace, Finalizers: []string{"kubernetes.io/everything-in-it"}},
	}).WithStatusSubresource(&v1alpha1.OmniCluster{}).WithInterceptorFuncs(looptest.CountWrites(&f.writes)).Build()
}

// deleteNamespace begins the deletion of the namespace, which waits for everything in it.
func (f *fixture) deleteNamespace() {
	f.t.Helper()
	f.delete(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: testNamespace}})
}

// checkConditions checks that every condition has a type: the API refuses a status with one that has none, and not every
// phase has a condition.
func (f *fixture) checkConditions() {
	f.t.Helper()

	clusters := &v1alpha1.OmniClusterList{}
	if err := f.client.List(f.t.Context(), clusters); err != nil {
		f.t.Fatal(err)
	}

	for _, cluster := range clusters.Items {
		if slices.ContainsFunc(cluster.Status.Conditions, func(c metav1.Condition) bool { return c.Type == "" }) {
			f.t.Errorf("a condition without a type: %+v", cluster.Status.Conditions)
		}
	}
}
