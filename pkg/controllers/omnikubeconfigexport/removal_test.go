package omnikubeconfigexport

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// Between the look and the deletion somebody changes the Secret, or puts another one in its place. What is there then
// was never looked at: it stays, and the next run looks at it.
func TestOnlyWhatWasLookedAtIsDeleted(t *testing.T) {
	meddlings := map[string]func(b *bench){
		"changed": func(b *bench) {
			b.editSecret("target", func(s *corev1.Secret) { s.Labels[v1alpha1.LabelExportUID] = "another" })
		},
		"made again": func(b *bench) {
			theirs := b.secret("target")
			b.must(b.client.Delete(b.t.Context(), theirs))

			theirs.ResourceVersion, theirs.UID, theirs.Labels = "", "theirs", map[string]string{v1alpha1.LabelExportUID: "another"}
			b.must(b.client.Create(b.t.Context(), theirs))
		},
	}

	deletions := map[string]func(b *bench){
		"deletion of the export": func(b *bench) { b.must(b.client.Delete(b.t.Context(), b.get())) },
		"former target":          func(b *bench) { b.edit(func(s *v1alpha1.OmniKubeconfigExportSpec) { s.TargetSecretRef.Name = "new" }) },
		"another type":           func(b *bench) { b.editSecret("target", func(s *corev1.Secret) { s.Immutable = new(true) }) },
	}

	for how, meddle := range meddlings {
		for what, prepare := range deletions {
			t.Run(what+", "+how, func(t *testing.T) {
				b := newBench(t)
				b.ready()
				prepare(b)

				b.looked = func() {
					b.looked = nil
					meddle(b)
				}

				b.run()

				if b.looked != nil {
					t.Error("nothing was about to be deleted")
				}

				b.run() // it looks again

				if left := b.secret("target"); left == nil || left.Labels[v1alpha1.LabelExportUID] != "another" {
					t.Errorf("the Secret of somebody else is gone: %v", left)
				}
			})
		}
	}
}

// told counts the events so far that say something.
func (b *bench) told(words ...string) int {
	count := 0

	for _, event := range b.seen {
		found := true
		for _, word := range words {
			found = found && strings.Contains(event, word)
		}

		if found {
			count++
		}
	}

	return count
}

// A Secret whose label somebody took off is nobody's and stays, with a token that is valid: an event says so.
func TestSecretWithoutItsLabelIsToldOf(t *testing.T) {
	for _, policy := range []v1alpha1.DeletionPolicy{v1alpha1.DeletionDelete, v1alpha1.DeletionOrphan} {
		t.Run(string(policy), func(t *testing.T) {
			b := newBench(t)
			b.edit(func(s *v1alpha1.OmniKubeconfigExportSpec) { s.DeletionPolicy = policy })
			b.ready()

			until := shownTime(b.get().Status.ExpirationTime.Time)
			b.editSecret("target", func(s *corev1.Secret) { s.Labels = nil })
			b.must(b.client.Delete(t.Context(), b.get()))
			b.run()

			if b.secret("target") == nil || b.told("SecretLeft", "its label", "valid until "+until) != 1 {
				t.Errorf("events: %q", b.seen)
			}
		})
	}
}

// A repair without a new kubeconfig is told of, once.
func TestRepairIsToldOf(t *testing.T) {
	b := newBench(t)
	b.ready()
	b.editSecret("target", func(s *corev1.Secret) { s.Data["value"] = []byte("evil") })
	b.ready()
	b.ready()

	if b.told("SecretCorrected") != 1 || b.told("KubeconfigIssued") != 1 {
		t.Errorf("events: %q", b.seen)
	}

	b.editSecret("target", func(s *corev1.Secret) { s.Data["kubeconfig"] = []byte("evil") })
	b.ready()

	if b.told("SecretCorrected") != 1 || b.told("KubeconfigIssued") != 2 {
		t.Errorf("events: %q", b.seen)
	}
}
