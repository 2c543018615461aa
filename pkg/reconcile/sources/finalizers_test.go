package sources_test

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/index"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/sources"
)

// TestChange: the cache has only our own finalizers, and those of others stay.
func TestChange(t *testing.T) {
	const theirs, ours = "example.com/theirs", v1alpha1.InUseFinalizer

	for name, test := range map[string]struct {
		before, after []string
		how           func(client.Object, string) bool
		meanwhile     bool // somebody else wrote the Secret
	}{
		"added":                   {before: []string{theirs}, after: []string{theirs, ours}, how: controllerutil.AddFinalizer},
		"removed":                 {before: []string{ours, theirs}, after: []string{theirs}, how: controllerutil.RemoveFinalizer},
		"there":                   {before: []string{theirs, ours}, after: []string{theirs, ours}, how: controllerutil.AddFinalizer},
		"added, not as read":      {before: []string{theirs}, after: []string{theirs}, how: controllerutil.AddFinalizer, meanwhile: true},
		"removed, not as it read": {before: []string{theirs, ours}, after: []string{theirs, ours}, how: controllerutil.RemoveFinalizer, meanwhile: true},
	} {
		t.Run(name, func(t *testing.T) {
			api := fake.NewClientBuilder().WithObjects(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{
				Namespace: "apps", Name: "db", Finalizers: test.before, Labels: map[string]string{"app": "db"},
			}}).Build()
			cached, now := index.SecretMetadata(), &corev1.Secret{}
			key := client.ObjectKey{Namespace: "apps", Name: "db"}

			if err := api.Get(t.Context(), key, cached); err != nil {
				t.Fatal(err)
			}

			if _, err := index.KeepNeeded(cached); err != nil {
				t.Fatal(err)
			}

			if test.meanwhile {
				_ = api.Get(t.Context(), key, now)
				now.Annotations = map[string]string{"written": "meanwhile"}

				if err := api.Update(t.Context(), now); err != nil {
					t.Fatal(err)
				}
			}

			err := sources.ChangeFinalizer(t.Context(), api, api, cached.ObjectMeta, ours, test.how)
			if apierrors.IsConflict(err) != test.meanwhile || err != nil && !test.meanwhile {
				t.Error(err)
			}

			if err := api.Get(t.Context(), key, now); err != nil || !slices.Equal(now.Finalizers, test.after) || now.Labels["app"] != "db" {
				t.Errorf("%v, labels %v, %v", now.Finalizers, now.Labels, err)
			}
		})
	}
}
