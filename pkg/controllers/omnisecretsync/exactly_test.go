package omnisecretsync

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// Between the look and the deletion somebody changes the Secret, or puts another one in its place. What is there then
// was never looked at: it stays, and the next run looks at it.
func TestOnlyWhatWasLookedAtIsDeleted(t *testing.T) {
	meddlings := map[string]func(store *secretStore, name string){
		"changed": func(store *secretStore, name string) {
			theirs := store.secrets[name].DeepCopy()
			theirs.Labels[labelOwnerUID] = "another"
			store.put(theirs)
		},
		"made again": func(store *secretStore, name string) {
			theirs := store.secrets[name].DeepCopy()
			theirs.Labels = nil
			delete(store.secrets, name)
			store.put(theirs)
		},
	}

	deletions := map[string]func(m *mover){
		"deletion of the object": func(m *mover) {
			if outcome, err := m.r.cleanUp(m.Context(), &scope{sync: m.sync, opened: m.opened()}, m.cluster); err != nil || !outcome.Blocks() {
				m.Errorf("the deletion: %+v, %v", outcome, err)
			}

			m.remove() // it looks again
		},
		"former target": func(m *mover) {
			m.to("apps", "b")
			m.settle()
		},
		"another type": func(m *mover) {
			m.store.secrets["apps/a"].Type = corev1.SecretTypeBasicAuth
			m.sync.Status.LastSyncTime = nil // it was written long ago

			if outcome := m.run(); outcome.Reason() != v1alpha1.ReasonConflict || !strings.Contains(outcome.Message(), "meanwhile") {
				m.Errorf("got %+v", outcome)
			}

			if outcome := m.run(); outcome.Reason() != v1alpha1.ReasonForeignTarget {
				m.Errorf("got %+v", outcome)
			}
		},
	}

	for how, meddle := range meddlings {
		for what, do := range deletions {
			t.Run(what+", "+how, func(t *testing.T) {
				m := newMover(t)
				m.to("apps", "a")
				m.settle()

				m.store.looked = func(name string) {
					if name == "apps/a" {
						m.store.looked = nil
						meddle(m.store, name)
					}
				}
				do(m)

				if left := m.store.secrets["apps/a"]; left == nil || left.Labels[labelOwnerUID] == uid {
					t.Errorf("the Secret of somebody else is gone; the cluster has %q", m.store.names())
				}
			})
		}
	}
}
