package omnikubeconfigexport

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/words"
	"omni.texashpc.com/omni-cluster-operator/test/omnisim"
)

// Between the look and the deletion somebody changes the Secret, or puts another one in its place. What is there then
// was never looked at: it stays, and the next run looks at it.
func TestOnlyWhatWasLookedAtIsDeleted(t *testing.T) {
	meddlings := map[string]func(f *fixture){
		"changed": func(f *fixture) {
			f.editSecret("target", func(s *corev1.Secret) { s.Labels[v1alpha1.LabelExportUID] = "another" })
		},
		"made again": func(f *fixture) {
			theirs := f.secret("target")
			f.must(f.client.Delete(f.t.Context(), theirs))

			theirs.ResourceVersion, theirs.UID, theirs.Labels = "", "theirs", map[string]string{v1alpha1.LabelExportUID: "another"}
			f.must(f.client.Create(f.t.Context(), theirs))
		},
	}

	deletions := map[string]func(f *fixture){
		"deletion of the export": func(f *fixture) { f.must(f.client.Delete(f.t.Context(), f.get())) },
		"former target": func(f *fixture) {
			f.edit(func(s *v1alpha1.OmniKubeconfigExportSpec) { s.TargetSecretRef.Name = "new" })
		},
		"another type": func(f *fixture) { f.editSecret("target", func(s *corev1.Secret) { s.Immutable = new(true) }) },
	}

	for how, meddle := range meddlings {
		for what, prepare := range deletions {
			t.Run(what+", "+how, func(t *testing.T) {
				f := newFixture(t)
				f.ready()
				prepare(f)

				f.looked = func() {
					f.looked = nil
					meddle(f)
				}

				f.run()

				if f.looked != nil {
					t.Error("nothing was about to be deleted")
				}

				f.run() // it looks again

				if left := f.secret("target"); left == nil || left.Labels[v1alpha1.LabelExportUID] != "another" {
					t.Errorf("the Secret of somebody else is gone: %v", left)
				}
			})
		}
	}
}

// told counts the events so far that say something.
func (f *fixture) told(words ...string) int {
	count := 0

	for _, event := range f.events.All() {
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

// With Orphan the Secret of a former target stays, and is told of once. It is the export's still: with Delete it goes.
func TestAFormerTargetThatIsToStay(t *testing.T) {
	f := newFixture(t)
	f.edit(func(s *v1alpha1.OmniKubeconfigExportSpec) { s.DeletionPolicy = v1alpha1.DeletionOrphan })
	f.ready()
	f.edit(func(s *v1alpha1.OmniKubeconfigExportSpec) { s.TargetSecretRef.Name = "new" })

	for range 3 {
		f.run()
	}

	if f.secret("target") == nil || f.secret("new") == nil || f.get().Status.TargetSecretRef.Name != "new" ||
		f.told("SecretLeft", `"target"`, "spec.deletionPolicy") != 1 || f.told("SecretDeleted") != 0 {
		t.Errorf("target %+v, events: %q", f.get().Status.TargetSecretRef, f.events.All())
	}

	f.edit(func(s *v1alpha1.OmniKubeconfigExportSpec) { s.DeletionPolicy = v1alpha1.DeletionDelete })
	f.run()

	if f.secret("target") != nil || f.secret("new") == nil {
		t.Errorf("events: %q", f.events.All())
	}
}

// A Secret whose label somebody took off is nobody's and stays, with a token that is valid: an event says so.
func TestSecretWithoutItsLabelIsToldOf(t *testing.T) {
	for _, policy := range []v1alpha1.DeletionPolicy{v1alpha1.DeletionDelete, v1alpha1.DeletionOrphan} {
		t.Run(string(policy), func(t *testing.T) {
			f := newFixture(t)
			f.edit(func(s *v1alpha1.OmniKubeconfigExportSpec) { s.DeletionPolicy = policy })
			f.ready()

			until := words.Time(f.get().Status.ExpirationTime.Time)
			f.editSecret("target", func(s *corev1.Secret) { s.Labels = nil })
			f.must(f.client.Delete(t.Context(), f.get()))
			f.run()

			if f.secret("target") == nil || f.told("SecretLeft", "its label", "valid until "+until) != 1 {
				t.Errorf("events: %q", f.events.All())
			}
		})
	}
}

// A repair without a new kubeconfig is told of, once.
func TestRepairIsToldOf(t *testing.T) {
	f := newFixture(t)
	f.ready()
	f.editSecret("target", func(s *corev1.Secret) { s.Data["value"] = []byte("evil") })
	f.ready()
	f.ready()

	if f.told("SecretCorrected") != 1 || f.told("KubeconfigIssued") != 1 {
		t.Errorf("events: %q", f.events.All())
	}

	f.editSecret("target", func(s *corev1.Secret) { s.Data["kubeconfig"] = []byte("evil") })
	f.ready()

	if f.told("SecretCorrected") != 1 || f.told("KubeconfigIssued") != 2 {
		t.Errorf("events: %q", f.events.All())
	}
}

// A policy that refuses the deletion of a Secret may quote it. Its token is valid still.
func TestARefusedRemovalShowsNoToken(t *testing.T) {
	f := newFixture(t)
	f.ready()

	access, err := readKubeconfig(f.secret("target").Data["kubeconfig"])
	if err != nil {
		t.Fatal(err)
	}

	f.client = interceptor.NewClient(f.client, interceptor.Funcs{
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, _ ...client.DeleteOption) error {
			live := &corev1.Secret{}
			if err := c.Get(ctx, client.ObjectKeyFromObject(o), live); err != nil {
				return err
			}

			return fmt.Errorf("admission webhook denied the request: %s stays", live.Data["kubeconfig"])
		},
	})
	f.restart()
	f.edit(func(s *v1alpha1.OmniKubeconfigExportSpec) { s.TargetSecretRef.Name = "moved" })

	_, err = f.reconcile()
	if shown := fmt.Sprint(err, f.get().Status); err == nil || !strings.Contains(shown, "admission webhook denied") || strings.Contains(shown, access.token) {
		t.Errorf("it shows the token, or nothing: %v", err)
	}
}

// A process that stops ends its calls to Omni. Neither is the kubeconfig in the Secret late because of that, nor the Omni away.
func TestAStopIsNoFailureOfOmni(t *testing.T) {
	for name, due := range map[string]bool{"a renewal": true, "a Secret that was changed": false} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.ready()

			if due {
				f.now = f.get().Status.NextRotationTime.Time
			} else {
				f.editSecret("target", func(s *corev1.Secret) { s.Data["kubeconfig"] = []byte("x") })
			}

			before := f.get().Status
			ctx, stop := context.WithCancel(t.Context())
			f.omni.Inject(omnisim.Fault{Method: "Kubeconfig", Hang: true, OnHit: stop})

			_, err := f.loop.Reconcile(ctx, reconcile.Request{NamespacedName: types.NamespacedName{Namespace: namespace, Name: f.export}})
			if diff := cmp.Diff(before, f.get().Status); diff != "" || !errors.Is(err, context.Canceled) {
				t.Errorf("%v; the status (-before +after):\n%s", err, diff)
			}
		})
	}
}
