package omnisecretsync

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// source is a Secret whose metadata must never be copied.
func source() *corev1.Secret {
	immutable := true

	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Name: "source", Labels: map[string]string{"private": "label"}, Annotations: map[string]string{"private": "annotation"},
			OwnerReferences: []metav1.OwnerReference{{Name: "private"}}, Finalizers: []string{"private/finalizer"},
		},
		Immutable: &immutable,
		Type:      corev1.SecretTypeDockerConfigJson,
		Data:      map[string][]byte{".dockerconfigjson": []byte("{}"), "extra": []byte("x")},
	}
}

func TestBuild(t *testing.T) {
	for _, test := range []struct {
		name string
		spec v1alpha1.OmniSecretSyncSpec
		want corev1.Secret
		err  string
	}{
		{
			"everything as it is", v1alpha1.OmniSecretSyncSpec{},
			corev1.Secret{
				Type: corev1.SecretTypeDockerConfigJson, Data: map[string][]byte{".dockerconfigjson": []byte("{}"), "extra": []byte("x")},
				ObjectMeta: metav1.ObjectMeta{
					Labels: map[string]string{"app.kubernetes.io/managed-by": "omni-controller", "omni.texashpc.com/owner-uid": uid, "omni.texashpc.com/hub-id": thisHub},
					Annotations: map[string]string{
						"omni.texashpc.com/owner-namespace": "fleet", "omni.texashpc.com/owner-name": "pull",
					},
				},
			}, "",
		},
		{
			"selected, renamed, labelled", v1alpha1.OmniSecretSyncSpec{
				Type: "Opaque", Keys: []v1alpha1.SecretKeyMapping{{From: "extra", To: "value"}},
				Labels: map[string]string{"team": "a", "omni.texashpc.com/owner-uid": "forged"}, Annotations: map[string]string{"note": "n"},
			},
			corev1.Secret{
				Type: corev1.SecretTypeOpaque, Data: map[string][]byte{"value": []byte("x")},
				ObjectMeta: metav1.ObjectMeta{
					Labels: map[string]string{"app.kubernetes.io/managed-by": "omni-controller", "omni.texashpc.com/owner-uid": uid, "omni.texashpc.com/hub-id": thisHub, "team": "a"},
					Annotations: map[string]string{
						"omni.texashpc.com/owner-namespace": "fleet", "omni.texashpc.com/owner-name": "pull", "note": "n",
						"omni.texashpc.com/applied-metadata": "annotation:note,label:omni.texashpc.com/owner-uid,label:team",
					},
				},
			}, "",
		},
		{
			"missing keys", v1alpha1.OmniSecretSyncSpec{Keys: []v1alpha1.SecretKeyMapping{{From: "a", To: "a"}, {From: "extra", To: "b"}, {From: "c", To: "c"}}},
			corev1.Secret{}, `no key "a", "c"`,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			sync := &v1alpha1.OmniSecretSync{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "pull", UID: uid}, Spec: test.spec}

			want, err := build(sync, source(), thisHub)
			if test.err != "" {
				if err == nil || !strings.Contains(err.Error(), test.err) {
					t.Fatalf("got %v, want %q", err, test.err)
				}

				return
			}

			if err != nil {
				t.Fatal(err)
			}

			var got corev1.Secret

			want.fill(&got)

			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// TestFillTakesBack changes labels and annotations that the spec no longer asks for.
func TestFillTakesBack(t *testing.T) {
	sync := &v1alpha1.OmniSecretSync{ObjectMeta: metav1.ObjectMeta{UID: uid}}
	sync.Spec.Labels, sync.Spec.Annotations = map[string]string{"old": "1", "kept": "1"}, map[string]string{"old": "1"}

	before, err := build(sync, source(), thisHub)
	if err != nil {
		t.Fatal(err)
	}

	live := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"theirs": "1"}}}
	before.fill(live)

	sync.Spec.Labels, sync.Spec.Annotations = map[string]string{"kept": "2", "app.kubernetes.io/managed-by": "platform"}, nil

	after, err := build(sync, source(), thisHub)
	if err != nil {
		t.Fatal(err)
	}

	after.fill(live)

	want := map[string]string{"theirs": "1", "kept": "2", "app.kubernetes.io/managed-by": "platform", "omni.texashpc.com/owner-uid": uid, "omni.texashpc.com/hub-id": thisHub}
	if diff := cmp.Diff(want, live.Labels); diff != "" {
		t.Errorf("labels (-want +got)\n%s", diff)
	}

	if _, old := live.Annotations["old"]; old || live.Annotations[annotationMetadata] != "label:app.kubernetes.io/managed-by,label:kept" {
		t.Errorf("annotations: %v", live.Annotations)
	}

	before.fill(live)

	if got := live.Labels["app.kubernetes.io/managed-by"]; got != "omni-controller" {
		t.Errorf("managed by %q, when the spec does not say it any more", got)
	}
}

func TestHash(t *testing.T) {
	one := content{secretType: "Opaque", data: map[string][]byte{"a": []byte("bc")}}
	for name, other := range map[string]content{
		"another value":    {secretType: "Opaque", data: map[string][]byte{"a": []byte("bd")}},
		"another boundary": {secretType: "Opaque", data: map[string][]byte{"ab": []byte("c")}},
		"another type":     {secretType: "x", data: map[string][]byte{"a": []byte("bc")}},
		"one key more":     {secretType: "Opaque", data: map[string][]byte{"a": []byte("bc"), "b": nil}},
	} {
		if one.hash() == other.hash() {
			t.Errorf("%s has the same hash", name)
		}
	}

	if one.hash() != (content{secretType: "Opaque", data: map[string][]byte{"a": []byte("bc")}}).hash() {
		t.Error("the same content has another hash")
	}
}

// What refuses a Secret may quote it.
func TestValuesAreRemoved(t *testing.T) {
	c := content{data: map[string][]byte{"password": []byte("s3cret-value\n"), "short": []byte("no")}}

	got := c.secrets().Line(`webhook "x" denied: no password s3cret-value, czNjcmV0LXZhbHVlCg== allowed`)
	if want := `webhook "x" denied: no password [removed], [removed]== allowed`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// A value that is the beginning of another one leaves nothing of it.
func TestOverlappingValuesAreRemoved(t *testing.T) {
	c := content{data: map[string][]byte{"a": []byte("hunter"), "b": []byte("hunter2-the-real-password"), "c": []byte(`quo"ted-value`)}}

	got := c.secrets().Line(`denied: hunter2-the-real-password and {"p":"quo\"ted-value"}`)
	if want := `denied: [removed] and {"p":"[removed]"}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// Equal Secrets of two objects have different hashes.
func TestHashIsSalted(t *testing.T) {
	data := map[string][]byte{"pin": []byte("1234")}
	if (content{salt: "uid-1", data: data}).hash() == (content{salt: "uid-2", data: data}).hash() {
		t.Error("the hash shows that two Secrets are equal")
	}
}

func TestDifference(t *testing.T) {
	want := wanted(t)
	live := written(t)

	if got := want.difference(live); got != "" {
		t.Errorf("got %q for the same", got)
	}

	live.Data["password"], live.Type = []byte("other"), "other"
	delete(live.Labels, "team")

	if got := want.difference(live); got != "type, data, labels" {
		t.Errorf("got %q", got)
	}
}
