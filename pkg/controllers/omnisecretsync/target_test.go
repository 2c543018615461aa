package omnisecretsync

import (
	"maps"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

const uid = "uid-1"

func wanted(t *testing.T) content {
	t.Helper()

	sync := &v1alpha1.OmniSecretSync{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "pull", UID: uid}}
	sync.Spec.Labels = map[string]string{"team": "a"}

	want, err := build(sync, &corev1.Secret{Type: corev1.SecretTypeOpaque, Data: map[string][]byte{"password": []byte("s3cret")}})
	if err != nil {
		t.Fatal(err)
	}

	return want
}

// written is the Secret as an earlier run wrote it.
func written(t *testing.T) *corev1.Secret {
	t.Helper()

	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "apps", Name: "pull", UID: "live", ResourceVersion: "7"}}
	want := wanted(t)
	want.data = maps.Clone(want.data)
	want.fill(secret)

	return secret
}

func TestDecide(t *testing.T) {
	immutable := true

	for _, test := range []struct {
		name   string
		change func(*corev1.Secret) // of what was written
		known  bool
		adopt  bool
		want   action
		says   string
	}{
		{"as written", func(*corev1.Secret) {}, true, false, actionNone, ""},
		{"data changed", func(s *corev1.Secret) { s.Data["password"] = []byte("x") }, true, false, actionUpdate, ""},
		{"a key added", func(s *corev1.Secret) { s.Data["more"] = nil }, true, false, actionUpdate, ""},
		{"a label of ours removed", func(s *corev1.Secret) { delete(s.Labels, "team") }, true, false, actionUpdate, ""},
		{"a label of others stays", func(s *corev1.Secret) { s.Labels["theirs"] = "x" }, true, false, actionNone, ""},
		{"another type", func(s *corev1.Secret) { s.Type = "other" }, true, false, actionReplace, ""},
		{"immutable, and right", func(s *corev1.Secret) { s.Immutable = &immutable }, true, false, actionNone, ""},
		{"immutable, and wrong", func(s *corev1.Secret) { s.Immutable = &immutable; s.Data["more"] = nil }, true, false, actionReplace, ""},
		{"foreign", func(s *corev1.Secret) { s.Labels = nil }, false, false, actionRefuse, "set spec.adopt to overwrite"},
		{"foreign, adopted", func(s *corev1.Secret) { s.Labels = nil }, false, true, actionUpdate, ""},
		{"ours before, mark removed", func(s *corev1.Secret) { s.Labels = nil }, true, false, actionRefuse, "was removed since"},
		{"ours before, mark removed, adopted", func(s *corev1.Secret) { s.Labels = nil }, true, true, actionUpdate, ""},
		{"the source itself, adopted", func(s *corev1.Secret) { s.UID = "source"; s.Labels = nil }, false, true, actionRefuse, "is the source itself"},
		{"the source itself, marked", func(s *corev1.Secret) { s.UID = "source" }, true, true, actionRefuse, "is the source itself"},
		{"an exported kubeconfig, adopted", func(s *corev1.Secret) { s.Labels = map[string]string{v1alpha1.LabelExportUID: "e"} }, false, true, actionRefuse, "kubeconfig"},
		{"a kubeconfig in use, adopted", func(s *corev1.Secret) { s.Labels = nil; s.Finalizers = []string{v1alpha1.KubeconfigInUseFinalizer} }, false, true, actionRefuse, "kubeconfig"},
		{"being deleted", func(s *corev1.Secret) {
			s.DeletionTimestamp = &metav1.Time{}
			s.Finalizers = []string{"their/finalizer"}
		}, true, false, actionWait, "their/finalizer"},
		{"another's", func(s *corev1.Secret) { s.Labels[labelOwnerUID] = "uid-2" }, false, false, actionRefuse, "belongs to OmniSecretSync fleet/pull"},
		{"another's, adopted", func(s *corev1.Secret) { s.Labels[labelOwnerUID] = "uid-2" }, false, true, actionUpdate, ""},
		{"lost to another", func(s *corev1.Secret) { s.Labels[labelOwnerUID] = "uid-2" }, true, true, actionRefuse, "not taken back"},
	} {
		t.Run(test.name, func(t *testing.T) {
			live := written(t)
			test.change(live)

			got, why := target{uid: uid, known: test.known, adopt: test.adopt, from: "source", live: live, want: wanted(t)}.decide()
			if got != test.want || !strings.Contains(why, test.says) {
				t.Errorf("got %d, %q; want %d, %q", got, why, test.want, test.says)
			}
		})
	}

	if got, _ := (target{uid: uid, want: wanted(t)}).decide(); got != actionCreate {
		t.Errorf("got %d for nothing, want create", got)
	}
}

func TestOurs(t *testing.T) {
	live := written(t)
	if !ours(live, uid) || ours(live, "uid-2") || ours(&corev1.Secret{}, "") {
		t.Error("only the mark counts")
	}
}
