package kubeconfigsecret

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/index"
)

// What comes of letting go: a Secret that was written meanwhile is looked at again without an error in
// the log, one that is gone is done with, and a refusal is an error.
func TestLettingGo(t *testing.T) {
	refused := errors.New("refused")

	for _, test := range []struct {
		name  string
		patch error
		want  reconcile.Result
		err   error
	}{
		{"done", nil, reconcile.Result{}, nil},
		{"written meanwhile", apierrors.NewConflict(corev1.Resource("secrets"), "access", errors.New("modified")), reconcile.Result{RequeueAfter: time.Second}, nil},
		{"gone", apierrors.NewNotFound(corev1.Resource("secrets"), "access"), reconcile.Result{}, nil},
		{"refused", refused, reconcile.Result{}, refused},
	} {
		t.Run(test.name, func(t *testing.T) {
			api := heldSecret(t, test.patch)
			r := &reconciler{client: api, live: api, now: time.Now}

			result, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "ns", Name: "access"}})
			if diff := cmp.Diff(test.want, result); diff != "" || !errors.Is(err, test.err) {
				t.Errorf("error %v, result (-want +got):\n%s", err, diff)
			}
		})
	}
}

// heldSecret is an API with one held Secret that nobody names, whose patches end in an error, if any.
func heldSecret(t *testing.T, patch error) client.Client {
	t.Helper()

	scheme := runtime.NewScheme()
	if err := errors.Join(corev1.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}

	nothing := func(client.Object) []string { return nil }

	return fake.NewClientBuilder().WithScheme(scheme).
		WithObjects(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "access", Finalizers: []string{v1alpha1.KubeconfigInUseFinalizer}}}).
		WithIndex(&v1alpha1.OmniSecretSync{}, index.ByKubeconfigSecret, nothing).
		WithIndex(&v1alpha1.OmniHelmRelease{}, index.ByKubeconfigSecret, nothing).
		WithInterceptorFuncs(interceptor.Funcs{
			Patch: func(ctx context.Context, api client.WithWatch, object client.Object, change client.Patch, options ...client.PatchOption) error {
				if patch != nil {
					return patch
				}

				return api.Patch(ctx, object, change, options...)
			},
		}).Build()
}
