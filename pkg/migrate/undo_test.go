package migrate

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	metadatafake "k8s.io/client-go/metadata/fake"
)

// Undo gives no Secret back to an object that is gone, or going: the garbage collector would delete the Secret.
func TestOwnersThatAreGone(t *testing.T) {
	owner := func(apiVersion, uid string) metav1.OwnerReference {
		return metav1.OwnerReference{APIVersion: apiVersion, Kind: "OmniKubeconfigExport", Name: uid, UID: types.UID(uid)}
	}
	ours := func(uid string) metav1.OwnerReference { return owner("omni.texashpc.com/v1alpha1", uid) }
	foreign := owner("example.com/v1", "foreign")

	there, going := unstructured.Unstructured{}, unstructured.Unstructured{}
	there.SetUID("there")
	going.SetUID("going")
	going.SetDeletionTimestamp(&metav1.Time{Time: time.Now()})

	tests := map[string]struct {
		saved, left, want []metav1.OwnerReference
		say               string
	}{
		"there":              {saved: []metav1.OwnerReference{ours("there")}, want: []metav1.OwnerReference{ours("there")}},
		"gone":               {saved: []metav1.OwnerReference{ours("gone")}, say: "Secret team-a/one stays without an owner: its object is gone, or being deleted"},
		"going":              {saved: []metav1.OwnerReference{ours("going")}, say: "Secret team-a/one stays without an owner: its object is gone, or being deleted"},
		"one of two is gone": {saved: []metav1.OwnerReference{ours("gone"), ours("there")}, want: []metav1.OwnerReference{ours("there")}},
		"a foreign one stays": {
			saved: []metav1.OwnerReference{foreign, ours("gone")}, left: []metav1.OwnerReference{foreign}, want: []metav1.OwnerReference{foreign},
			say: "stays without an owner: its object is gone",
		},
		"a foreign one, and ours is there": {
			saved: []metav1.OwnerReference{foreign, ours("there")}, left: []metav1.OwnerReference{foreign}, want: []metav1.OwnerReference{foreign, ours("there")},
		},
	}

	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			scheme := metadatafake.NewTestScheme()
			if err := metav1.AddMetaToScheme(scheme); err != nil {
				t.Fatal(err)
			}

			secret := &metav1.PartialObjectMetadata{
				TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
				ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "one", UID: "secret", OwnerReferences: test.left},
			}

			m := migrationOn(fakeHub())
			m.hub.metadata = metadatafake.NewSimpleMetadataClient(scheme, []runtime.Object{secret}...)
			m.backup.Owned = []ownedSecret{{Namespace: "team-a", Name: "one", UID: "secret", Owners: test.saved}}

			if err := m.putOwners(t.Context(), &state{Objects: []unstructured.Unstructured{there, going}}); err != nil {
				t.Fatal(err)
			}

			got, err := m.hub.metadata.Resource(secretsResource).Namespace("team-a").Get(t.Context(), "one", metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}

			if diff := cmp.Diff(test.want, got.OwnerReferences); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}

			said := m.options.Progress.(*bytes.Buffer).String()
			if !strings.Contains(said, test.say) || test.say == "" && strings.Contains(said, "stays") {
				t.Errorf("said %q", said)
			}
		})
	}
}
