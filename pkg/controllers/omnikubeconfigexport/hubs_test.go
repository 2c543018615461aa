package omnikubeconfigexport

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// A mark from before it named a hub gets the hub in one write, which changes nothing else and asks for no kubeconfig.
func TestAnOldMarkIsCompletedOnce(t *testing.T) {
	f := newFixture(t)
	f.ready()

	want := f.secret("target")
	if want.Labels[v1alpha1.MarkHub] != thisHub {
		t.Fatalf("labels %v", want.Labels)
	}

	f.editSecret("target", func(s *corev1.Secret) { delete(s.Labels, v1alpha1.MarkHub) })

	writes := len(f.writes)
	f.ready()
	f.ready()

	if diff := cmp.Diff([]string{"update *v1.Secret target"}, f.writes[writes:]); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}

	got := f.secret("target")
	if want.ResourceVersion = got.ResourceVersion; cmp.Diff(want, got) != "" {
		t.Errorf("the Secret (-want +got):\n%s", cmp.Diff(want, got))
	}

	if f.asked() != 1 || f.told("MarkCompleted", `"target"`) != 1 || f.told("SecretCorrected") != 0 {
		t.Errorf("Omni was asked %d times; events %q", f.asked(), f.events.All())
	}
}

// A Secret that carries the mark of another hub is not written, also when its kubeconfig is due, and not deleted: with the
// export, or when the target moves. Once a person says on the connection that the hub is gone, it is taken over.
func TestASecretOfAnotherHub(t *testing.T) {
	there := func(t *testing.T) (*fixture, *corev1.Secret) {
		t.Helper()

		f := newFixture(t)
		f.ready()
		f.editSecret("target", func(s *corev1.Secret) { s.Labels[v1alpha1.MarkHub] = "hub-2" })

		return f, f.secret("target")
	}
	unchanged := func(f *fixture, before *corev1.Secret) {
		f.t.Helper()

		if diff := cmp.Diff(before, f.secret("target")); diff != "" {
			f.t.Errorf("the Secret changed:\n%s", diff)
		}
	}

	t.Run("it is due", func(t *testing.T) {
		f, before := there(t)
		f.now = f.now.Add(23 * time.Hour)
		f.expect(metav1.ConditionFalse, v1alpha1.ReasonOwnedByOtherHub, "another hub, hub-2 (this hub is "+thisHub+")", "previous-hub: hub-2", `OmniConnection "main"`)
		unchanged(f, before)

		if f.asked() != 1 {
			t.Errorf("Omni was asked %d times", f.asked())
		}
	})

	t.Run("deleted", func(t *testing.T) {
		f, before := there(t)
		f.must(f.client.Delete(t.Context(), f.get()))
		f.run()
		unchanged(f, before)

		if f.told("Warning SecretLeft", `"target" was left behind`, "hub-2", "valid until") != 1 {
			t.Errorf("events %q", f.events.All())
		}
	})

	t.Run("the target moves", func(t *testing.T) {
		f, before := there(t)
		f.edit(func(s *v1alpha1.OmniKubeconfigExportSpec) { s.TargetSecretRef.Name = "new" })
		f.run()
		unchanged(f, before)
	})

	t.Run("taken over", func(t *testing.T) {
		f, before := there(t)
		f.previous("hub-2")
		f.ready()
		f.ready()

		before.Labels[v1alpha1.MarkHub], before.ResourceVersion = thisHub, f.secret("target").ResourceVersion
		unchanged(f, before)

		if f.asked() != 1 || f.told("TakenOver", `"target"`, "hub-2") != 1 {
			t.Errorf("Omni was asked %d times; events %q", f.asked(), f.events.All())
		}
	})

	t.Run("taken over when it is due", func(t *testing.T) {
		f, _ := there(t)
		f.previous("hub-2")
		f.now = f.now.Add(23 * time.Hour)
		f.ready()

		if got := f.secret("target").Labels[v1alpha1.MarkHub]; got != thisHub || f.asked() != 2 || f.told("TakenOver") != 1 || f.told("KubeconfigIssued") != 2 {
			t.Errorf("hub %q; Omni was asked %d times; events %q", got, f.asked(), f.events.All())
		}
	})

	t.Run("taken over by the deletion", func(t *testing.T) {
		f, _ := there(t)
		f.previous("hub-2")
		f.must(f.client.Delete(t.Context(), f.get()))
		f.run()

		if f.secret("target") != nil {
			t.Error("the Secret is still there")
		}
	})

	t.Run("another hub was the previous one", func(t *testing.T) {
		f, before := there(t)
		f.previous("hub-3")
		f.expect(metav1.ConditionFalse, v1alpha1.ReasonOwnedByOtherHub, "hub-2")
		f.previous(thisHub)
		f.expect(metav1.ConditionFalse, v1alpha1.ReasonOwnedByOtherHub, "hub-2")
		unchanged(f, before)
	})
}

// previous sets the annotation on the connection.
func (f *fixture) previous(hub string) {
	f.t.Helper()

	connection := &v1alpha1.OmniConnection{}
	f.must(f.client.Get(f.t.Context(), types.NamespacedName{Namespace: namespace, Name: "main"}, connection))
	connection.Annotations = map[string]string{v1alpha1.AnnotationPreviousHub: hub}
	f.must(f.client.Update(f.t.Context(), connection))
}

// An owner that does not exist is named as far as it is known, with a way out.
func TestSecretOfAnOwnerThatIsGone(t *testing.T) {
	const (
		remedy  = "set spec.adopt: true; or delete it"
		byLabel = "set its label " + v1alpha1.LabelExportUID + " to uid-automation; or delete it"
	)

	for name, test := range map[string]struct {
		labels, annotations map[string]string
		says                []string
		taken               bool // the remedy works
	}{
		"restored under another UID": {
			map[string]string{v1alpha1.LabelExportUID: "old-1"},
			map[string]string{v1alpha1.AnnotationExportName: "automation", v1alpha1.AnnotationExportSecret: namespace + "/target"},
			[]string{"an earlier OmniKubeconfigExport of this name (UID old-1)", "any more", remedy}, true,
		},
		"of another name": {
			map[string]string{v1alpha1.LabelExportUID: "old-1"}, map[string]string{v1alpha1.AnnotationExportName: "former"},
			[]string{`OmniKubeconfigExport "former" (UID old-1)`, remedy}, true,
		},
		"of the operator with CRDs": {
			map[string]string{v1alpha1.LabelExportUID: "old-1"}, map[string]string{formerName: "automation", formerNamespace: "flux-system"},
			[]string{`the operator with CRDs for its OmniKubeconfigExport "flux-system/automation" (UID old-1)`, byLabel}, true,
		},
		"named by its UID only": {
			map[string]string{v1alpha1.LabelExportUID: "old-1"}, nil, []string{"only the UID is known (UID old-1)", remedy}, true,
		},
		"in another hub": {
			map[string]string{v1alpha1.LabelExportUID: "old-1", v1alpha1.MarkHub: "hub-2"}, map[string]string{v1alpha1.AnnotationExportName: "automation"},
			[]string{"(UID old-1) in another hub, hub-2", chooseAnother}, false,
		},
		"a copy of its Secret": {
			map[string]string{v1alpha1.LabelExportUID: "old-1"}, map[string]string{v1alpha1.AnnotationExportSecret: "elsewhere/target"},
			[]string{"(UID old-1)", chooseAnother}, false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.must(f.client.Create(t.Context(), &corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "target", Labels: test.labels, Annotations: test.annotations},
				Data:       map[string][]byte{"kubeconfig": []byte("theirs")},
			}))
			f.expect(metav1.ConditionFalse, v1alpha1.ReasonConflict, test.says...)

			if !test.taken {
				return
			}

			if slices.Contains(test.says, remedy) {
				f.edit(func(spec *v1alpha1.OmniKubeconfigExportSpec) { spec.Adopt = true })
			} else {
				f.editSecret("target", func(s *corev1.Secret) { s.Labels[v1alpha1.LabelExportUID] = "uid-automation" })
			}

			f.ready()
		})
	}
}
