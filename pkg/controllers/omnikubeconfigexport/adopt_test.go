package omnikubeconfigexport

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// theirs turns the export's Secret into one that the operator with CRDs wrote for its export of the same name, and makes
// the export forget that it ever wrote one.
func (f *fixture) theirs(edit func(*corev1.Secret)) *corev1.Secret {
	f.t.Helper()

	secret := f.secret("target")
	secret.Labels = map[string]string{v1alpha1.LabelExportUID: "old-1", v1alpha1.LabelCluster: "cluster-01", "team": "a"}
	secret.Annotations = map[string]string{formerName: "automation", formerNamespace: namespace, formerSpecHash: "0", formerExpiration: "soon", "note": "ours"}
	// The same in another order of lines, and with a comment that says so.
	secret.Data = map[string][]byte{"kubeconfig": append([]byte("# by hand\n"), secret.Data["kubeconfig"]...)}

	if edit != nil {
		edit(secret)
	}

	f.must(f.client.Update(f.t.Context(), secret))

	export := f.get()
	export.Status = v1alpha1.OmniKubeconfigExportStatus{}
	f.must(f.client.Status().Update(f.t.Context(), export))
	f.restart()

	return f.secret("target")
}

func adopts(spec *v1alpha1.OmniKubeconfigExportSpec) { spec.Adopt = true }

// A Secret of the operator with CRDs is taken over in place: who reads it notices nothing.
func TestAdopt(t *testing.T) {
	f := newFixture(t)
	f.ready()

	// Omni's kubeconfigs name the default namespace.
	before := f.theirs(func(secret *corev1.Secret) {
		secret.Data["kubeconfig"] = bytes.Replace(secret.Data["kubeconfig"], []byte("    user: "), []byte("    namespace: default\n    user: "), 1)
	})
	if !bytes.Contains(before.Data["kubeconfig"], []byte("namespace: default")) {
		t.Fatalf("it names no namespace:\n%s", before.Data["kubeconfig"])
	}

	f.edit(adopts)
	f.ready()

	after := f.secret("target")
	if got := after.Data["kubeconfig"]; !bytes.Equal(got, before.Data["kubeconfig"]) {
		t.Error("the kubeconfig is another one")
	}

	if got := f.asked(); got != 1 {
		t.Errorf("Omni was asked %d times, want once", got)
	}

	labels := map[string]string{v1alpha1.LabelExportUID: "uid-automation", v1alpha1.MarkHub: thisHub, v1alpha1.LabelCluster: "cluster-01", "team": "a"}
	if diff := cmp.Diff(labels, after.Labels); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}

	for _, key := range []string{formerName, formerNamespace, formerSpecHash, formerExpiration} {
		if _, there := after.Annotations[key]; there {
			t.Errorf("annotation %s is still there", key)
		}
	}

	if after.Annotations["note"] != "ours" {
		t.Error("an annotation of somebody else is gone")
	}
}

// A kubeconfig that is not what the export asks for is replaced.
func TestAdoptAnother(t *testing.T) {
	replaced := func(old, text string) func(*corev1.Secret) {
		return func(secret *corev1.Secret) {
			secret.Data["kubeconfig"] = bytes.Replace(secret.Data["kubeconfig"], []byte(old), []byte(text), 1)
		}
	}

	for name, test := range map[string]struct {
		edit  func(*v1alpha1.OmniKubeconfigExportSpec)
		there func(*corev1.Secret)
	}{
		"for other groups": {func(spec *v1alpha1.OmniKubeconfigExportSpec) { spec.ServiceAccount.Groups = []string{"deployers"} }, nil},
		"that lives longer": {func(spec *v1alpha1.OmniKubeconfigExportSpec) {
			spec.TTL, spec.RenewBefore = "5m", "1m"
		}, nil},
		"for another namespace": {func(spec *v1alpha1.OmniKubeconfigExportSpec) { spec.ContextNamespace = "apps" }, nil},
		"with a program to run": {nil, replaced("    token: ", "    exec: {apiVersion: client.authentication.k8s.io/v1, command: evil, interactiveMode: Never}\n    token: ")},
		"that trusts everybody": {nil, replaced("    server: ", "    insecure-skip-tls-verify: true\n    server: ")},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.edit(func(spec *v1alpha1.OmniKubeconfigExportSpec) { spec.TTL = "72h" })
			f.ready()
			before := f.theirs(test.there)
			f.edit(adopts)

			if test.edit != nil {
				f.edit(test.edit)
			}

			f.ready()

			if got := f.secret("target").Data["kubeconfig"]; bytes.Equal(got, before.Data["kubeconfig"]) {
				t.Error("the kubeconfig is the old one")
			}
		})
	}
}

// What would lose something, or is somebody's, is not taken over.
func TestNotAdopted(t *testing.T) {
	for name, test := range map[string]struct {
		edit   func(*corev1.Secret)
		reason string
		says   string
	}{
		"more keys":    {func(s *corev1.Secret) { s.Data["password"] = []byte("x") }, v1alpha1.ReasonConflict, "more than a kubeconfig, and that would be lost: the keys password"},
		"another type": {func(s *corev1.Secret) { s.Type = corev1.SecretTypeBasicAuth }, v1alpha1.ReasonConflict, "its type is kubernetes.io/basic-auth"},
		"immutable":    {func(s *corev1.Secret) { s.Immutable = new(true) }, v1alpha1.ReasonConflict, "it is immutable"},
		"a copy": {func(s *corev1.Secret) { s.Annotations[v1alpha1.AnnotationExportSecret] = "elsewhere/target" }, v1alpha1.ReasonConflict,
			`it is a copy of Secret "elsewhere/target"`},
		"of another export of the operator with CRDs": {func(s *corev1.Secret) { s.Annotations[formerName] = "other" }, v1alpha1.ReasonConflict,
			`for its OmniKubeconfigExport "` + namespace + `/other"`},
		"of an export that lives": {func(s *corev1.Secret) { s.Labels[v1alpha1.LabelExportUID] = "uid-living" }, v1alpha1.ReasonConflict,
			`it belongs to OmniKubeconfigExport "living"`},
		"of an export that lives, under another's name": {func(s *corev1.Secret) {
			s.Labels[v1alpha1.LabelExportUID] = "uid-living"
			s.Annotations = map[string]string{v1alpha1.AnnotationExportName: "automation"}
		}, v1alpha1.ReasonConflict, `it belongs to OmniKubeconfigExport "living"`},
		"of another hub": {func(s *corev1.Secret) { s.Labels[v1alpha1.MarkHub] = "hub-2" }, v1alpha1.ReasonOwnedByOtherHub, "hub-2"},
		"no kubeconfig": {func(s *corev1.Secret) {
			s.Labels, s.Annotations, s.Data = nil, nil, map[string][]byte{"kubeconfig": []byte("a password")}
		}, v1alpha1.ReasonConflict, "is not a kubeconfig with one server and one bearer token"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.ready()
			before := f.theirs(test.edit)
			living := newExport("living")
			living.UID = types.UID("uid-living")
			f.must(f.client.Create(t.Context(), living))
			f.edit(adopts)
			f.expect(metav1.ConditionFalse, test.reason, test.says)

			if diff := cmp.Diff(before, f.secret("target")); diff != "" {
				t.Errorf("the Secret was changed (-before +after):\n%s", diff)
			}

			if got := f.asked(); got != 1 {
				t.Errorf("Omni was asked %d times, want once", got)
			}
		})
	}
}
