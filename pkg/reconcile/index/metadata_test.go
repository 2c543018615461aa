package index_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/index"
	"omni.texashpc.com/omni-cluster-operator/test/foreigntest"
)

// large returns the metadata of a Secret that somebody filled with what nobody here reads, MiB of it.
func large(name string) *metav1.PartialObjectMetadata {
	labels := map[string]string{v1alpha1.LabelExportUID: "export", v1alpha1.LabelCluster: "demo"}
	for i := range 1 << 13 {
		labels[fmt.Sprintf("%s%04d", strings.Repeat("a", 59), i)] = strings.Repeat("b", 63)
	}

	metadata := index.SecretMetadata()
	metadata.ObjectMeta = metav1.ObjectMeta{
		Name: name, Namespace: "apps", UID: types.UID(name), ResourceVersion: "7", Generation: 2,
		CreationTimestamp: metav1.Unix(1, 0), DeletionTimestamp: new(metav1.Unix(2, 0)),
		Labels: labels,
		Annotations: map[string]string{
			corev1.LastAppliedConfigAnnotation:    `{"data":{"password":"` + strings.Repeat("c", 200_000) + `"}}`,
			v1alpha1.AnnotationExportName:         "export",
			v1alpha1.AnnotationExportNamespace:    strings.Repeat("d", 50_000), // no namespace has such a name
			v1alpha1.GroupName + "/of-no-meaning": strings.Repeat("e", 5_000),
		},
		Finalizers:      []string{v1alpha1.InUseFinalizer, "example.com/theirs", v1alpha1.KubeconfigInUseFinalizer},
		OwnerReferences: []metav1.OwnerReference{{Kind: "Job", Name: "job"}},
		ManagedFields:   []metav1.ManagedFieldsEntry{{Manager: "kubectl"}},
	}

	return metadata
}

func TestKeepNeeded(t *testing.T) {
	got, err := index.KeepNeeded(large("db"))
	if err != nil {
		t.Fatal(err)
	}

	want := index.SecretMetadata()
	want.ObjectMeta = metav1.ObjectMeta{
		Name: "db", Namespace: "apps", UID: "db", ResourceVersion: "7", Generation: 2,
		CreationTimestamp: metav1.Unix(1, 0), DeletionTimestamp: new(metav1.Unix(2, 0)),
		Labels:      map[string]string{v1alpha1.LabelExportUID: "export"},
		Annotations: map[string]string{v1alpha1.AnnotationExportName: "export"},
		Finalizers:  []string{v1alpha1.InUseFinalizer, v1alpha1.KubeconfigInUseFinalizer},
	}

	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}

	// The watch passes on what is no object as well.
	if other, err := index.KeepNeeded("deleted"); err != nil || other != "deleted" {
		t.Errorf("%v, %v", other, err)
	}
}

// TestMemoryOfMetadata: what the cache keeps of an object depends on nothing that its owner may write.
func TestMemoryOfMetadata(t *testing.T) {
	const objects = 100

	kept := make([]any, 0, objects)
	before := foreigntest.LiveBytes()

	for i := range objects {
		one, err := index.KeepNeeded(large(fmt.Sprint(i)))
		if err != nil {
			t.Fatal(err)
		}

		kept = append(kept, one)
	}

	if grown := foreigntest.LiveBytes() - before; grown > objects*4096 {
		t.Errorf("%d objects take %d bytes", len(kept), grown)
	}

	runtime.KeepAlive(kept)
}
