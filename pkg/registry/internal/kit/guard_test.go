package kit

import (
	"context"
	"errors"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// Whoever deletes with the policy Orphan means to keep something. What would be destroyed all the same is named, and how it is kept.
func TestGuardRefusesOrphan(t *testing.T) {
	orphan, background, yes := metav1.DeletePropagationOrphan, metav1.DeletePropagationBackground, true
	asks := &metav1.DeleteOptions{PropagationPolicy: &orphan}
	destroys := func(*v1alpha1.OmniCluster) string { return "the cluster would go" }
	keeps := func(*v1alpha1.OmniCluster) string { return "" }

	for name, test := range map[string]struct {
		options *metav1.DeleteOptions
		instead func(*v1alpha1.OmniCluster) string
		change  func(*v1alpha1.OmniCluster)
		refused bool
	}{
		"with orphan":                      {asks, destroys, nil, true},
		"in its former spelling":           {&metav1.DeleteOptions{OrphanDependents: &yes}, destroys, nil, true}, //nolint:staticcheck // clients still send it
		"tried":                            {&metav1.DeleteOptions{PropagationPolicy: &orphan, DryRun: []string{metav1.DryRunAll}}, destroys, nil, true},
		"in the background":                {&metav1.DeleteOptions{PropagationPolicy: &background}, destroys, nil, false},
		"without options":                  {nil, destroys, nil, false},
		"of what keeps it":                 {asks, keeps, nil, false},
		"of a kind that destroys nothing":  {asks, nil, nil, false},
		"of what is being deleted already": {asks, destroys, func(o *v1alpha1.OmniCluster) { o.DeletionTimestamp = new(metav1.Now()) }, false},
		"confirmed": {asks, destroys, func(o *v1alpha1.OmniCluster) {
			o.Annotations = map[string]string{v1alpha1.AnnotationConfirmDeletion: "demo"}
		}, false},
		"confirmed for another": {asks, destroys, func(o *v1alpha1.OmniCluster) {
			o.Annotations = map[string]string{v1alpha1.AnnotationConfirmDeletion: "other"}
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			object := &v1alpha1.OmniCluster{ObjectMeta: metav1.ObjectMeta{Name: "demo"}}
			if test.change != nil {
				test.change(object)
			}

			err := guardOf(&Descriptor[*v1alpha1.OmniCluster]{Plural: "omniclusters", KeepInstead: test.instead})(t.Context(), object, test.options)
			if (err != nil) != test.refused {
				t.Fatalf("%v", err)
			}

			if err != nil && (!apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "the cluster would go. To delete it all the same, annotate it with omni.texashpc.com/confirm-deletion=demo first")) {
				t.Errorf("%v", err)
			}
		})
	}

	first := errors.New("confirm")
	guard := guardOf(&Descriptor[*v1alpha1.OmniCluster]{
		DeleteGuard: func(context.Context, *v1alpha1.OmniCluster) error { return first }, KeepInstead: destroys,
	})

	if err := guard(t.Context(), &v1alpha1.OmniCluster{}, asks); !errors.Is(err, first) {
		t.Errorf("the guard of the kind comes first: %v", err)
	}
}
