package omnisecretsync

import (
	"maps"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/hubs"
)

const (
	uid     = "uid-1"
	thisHub = "hub-1"
)

func wanted(t *testing.T) content {
	t.Helper()

	sync := &v1alpha1.OmniSecretSync{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "pull", UID: uid}}
	sync.Spec.Labels = map[string]string{"team": "a"}

	want, err := build(sync, &corev1.Secret{Type: corev1.SecretTypeOpaque, Data: map[string][]byte{"password": []byte("s3cret")}}, thisHub)
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

// connected are the hubs of an object whose connection names hub-0 as the previous one.
func connected() hubs.Hubs {
	return hubs.Hubs{Own: thisHub, Previous: "hub-0"}
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
		{"from before the hub was marked", func(s *corev1.Secret) { delete(s.Labels, labelHub) }, true, false, actionMark, ""},
		{"from before the hub was marked, and changed", func(s *corev1.Secret) { delete(s.Labels, labelHub); s.Data["more"] = nil }, true, false, actionUpdate, ""},
		{"of the previous hub", func(s *corev1.Secret) { s.Labels[labelHub] = "hub-0" }, true, false, actionMark, ""},
		{"of another hub", func(s *corev1.Secret) { s.Labels[labelHub] = "hub-2" }, true, false, actionKeep, "another hub, hub-2"},
		{"of another hub, adopted", func(s *corev1.Secret) { s.Labels[labelHub] = "hub-2" }, true, true, actionKeep, `previous-hub: hub-2 on OmniConnection "omni"`},
		{"of another hub, and changed", func(s *corev1.Secret) { s.Labels[labelHub] = "hub-2"; s.Type = "other" }, true, false, actionKeep, "hub-2"},
		{"of another hub, being deleted", func(s *corev1.Secret) {
			s.Labels[labelHub], s.DeletionTimestamp = "hub-2", &metav1.Time{}
		}, true, false, actionKeep, "hub-2"},
		{"another's in another hub, adopted", func(s *corev1.Secret) { s.Labels[labelOwnerUID], s.Labels[labelHub] = "uid-2", "hub-2" }, false, true, actionUpdate, ""},
		{"another's without a name", func(s *corev1.Secret) {
			s.Labels[labelOwnerUID], s.Annotations = "uid-2", nil
		}, false, false, actionRefuse, "the OmniSecretSync with UID uid-2; its name was removed"},
		{"of the operator with CRDs", func(s *corev1.Secret) {
			s.Labels, s.Annotations = map[string]string{formerUID: "old-1"}, map[string]string{formerName: "pull"}
		}, false, false, actionRefuse, `OmniSecretSync "pull" (UID old-1) of the operator with CRDs; choose another spec.targetSecretRef, or set spec.adopt`},
		{"of the operator with CRDs, adopted", func(s *corev1.Secret) { s.Labels = map[string]string{formerUID: "old-1"} }, false, true, actionUpdate, ""},
		{"lost to another", func(s *corev1.Secret) { s.Labels[labelOwnerUID] = "uid-2" }, true, true, actionRefuse, "not taken back"},
	} {
		t.Run(test.name, func(t *testing.T) {
			live := written(t)
			test.change(live)

			got, why := claim{uid: uid, known: test.known, adopt: test.adopt, hubs: connected(), names: `OmniConnection "omni"`, from: "source", live: live, want: wanted(t)}.decide()
			if got != test.want || !strings.Contains(why, test.says) {
				t.Errorf("got %d, %q; want %d, %q", got, why, test.want, test.says)
			}
		})
	}

	if got, _ := (claim{uid: uid, want: wanted(t)}).decide(); got != actionCreate {
		t.Errorf("got %d for nothing, want create", got)
	}
}

func TestCarriesMark(t *testing.T) {
	live := written(t)
	if !carriesMark(live, uid) || carriesMark(live, "uid-2") || carriesMark(&corev1.Secret{}, "") {
		t.Error("only the mark counts")
	}
}
