package omnikubeconfigexport

import (
	"context"
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// errRefused is what a policy says, errQuota what a full quota, and errLowered what one that was lowered below what there is.
var (
	errRefused = apierrors.NewForbidden(corev1.Resource("secrets"), "target", errors.New("denied by the policy"))
	errQuota   = apierrors.NewForbidden(corev1.Resource("secrets"), "target", errors.New("exceeded quota: compute, requested: count/secrets=1, used: count/secrets=2, limited: count/secrets=2"))
	errLowered = apierrors.NewForbidden(corev1.Resource("secrets"), "target", errors.New("exceeded quota: compute, requested: count/secrets=1, used: count/secrets=2, limited: count/secrets=1"))
)

// immutable is a change of our Secret that no update can take back.
func immutable(secret *corev1.Secret) { secret.Immutable = new(true) }

// An exported Secret that has to be made again gets the kubeconfig that it held, whatever happens between its deletion and the new one.
func TestAReplacedSecretKeepsItsKubeconfig(t *testing.T) {
	for name, test := range map[string]struct {
		tamper      func(*corev1.Secret)
		interceptor func(over *bool) interceptor.Funcs
		meanwhile   func(*fixture)
	}{
		"a finalizer holds it": {
			tamper: func(s *corev1.Secret) {
				immutable(s)
				s.Finalizers = []string{v1alpha1.KubeconfigInUseFinalizer}
			},
			meanwhile: func(f *fixture) { f.editSecret("target", func(s *corev1.Secret) { s.Finalizers = nil }) },
		},
		"the deletion's answer is lost": {tamper: immutable, interceptor: loseDeletion},
		"the creation never arrives":    {tamper: immutable, interceptor: loseCreation},
		"the quota is full":             {tamper: immutable, interceptor: fillQuota},
		"another type": {
			tamper:      func(s *corev1.Secret) { s.Type = corev1.SecretTypeBasicAuth },
			interceptor: loseCreation,
		},
	} {
		t.Run(name, func(t *testing.T) {
			f, over := newFixture(t), false
			f.ready()

			if test.interceptor != nil {
				f.client = interceptor.NewClient(f.client, test.interceptor(&over))
				f.restart()
			}

			before := f.get().Status
			f.editSecret("target", func(s *corev1.Secret) {
				s.Labels["theirs"], s.Annotations["theirs"] = "stays", "stays"
				test.tamper(s)
			})

			if _, err := f.reconcile(); f.told("SecretCorrected") > 0 {
				t.Fatalf("the Secret was replaced at once; error %v", err)
			}

			over, f.now = true, f.now.Add(time.Hour)

			if test.meanwhile != nil {
				test.meanwhile(f)
			}

			f.ready()

			after := f.get().Status
			if f.asked() != 1 || after.KubeconfigHash != before.KubeconfigHash || !after.LastRotationTime.Equal(before.LastRotationTime) {
				t.Errorf("Omni was asked %d times; the kubeconfig was of %s and is of %s", f.asked(), before.LastRotationTime, after.LastRotationTime)
			}

			if secret := f.secret("target"); secret.Immutable != nil || secret.Type != corev1.SecretTypeOpaque {
				t.Errorf("type %s, immutable %v", secret.Type, secret.Immutable)
			}

			if secret := f.secret("target"); secret.Labels["theirs"] != "stays" || secret.Annotations["theirs"] != "stays" {
				t.Errorf("labels %v, annotations %v", secret.Labels, secret.Annotations)
			}

			if f.told("SecretCorrected") != 1 || f.told("KubeconfigIssued") != 1 {
				t.Errorf("events: %q", f.events.All())
			}

			f.must(f.client.Delete(t.Context(), f.secret("target")))
			f.ready()

			if f.asked() != 2 {
				t.Errorf("after somebody deleted the Secret, Omni was asked %d times", f.asked())
			}
		})
	}
}

// loseDeletion loses the answer of each deletion of a Secret until it is over.
func loseDeletion(over *bool) interceptor.Funcs {
	return interceptor.Funcs{Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
		if err := c.Delete(ctx, o, opts...); err != nil || *over {
			return err
		}

		return errAnswerLost
	}}
}

// loseCreation loses each creation of a Secret until it is over, but for dry runs.
func loseCreation(over *bool) interceptor.Funcs {
	return interceptor.Funcs{Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
		if !*over && !isDryRun(opts) {
			return errAnswerLost
		}

		return c.Create(ctx, o, opts...)
	}}
}

// fillQuota refuses each creation of a Secret until it is over: a quota counts what is deleted for a moment longer.
func fillQuota(over *bool) interceptor.Funcs {
	return interceptor.Funcs{Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
		if !*over {
			return errQuota
		}

		return c.Create(ctx, o, opts...)
	}}
}

func isDryRun(options []client.CreateOption) bool {
	return len((&client.CreateOptions{}).ApplyOptions(options).DryRun) > 0
}

// A Secret that could not be made again is not deleted.
func TestARefusedReplacementKeepsTheSecret(t *testing.T) {
	for name, refusal := range map[string]error{"a policy": errRefused, "a quota that was lowered": errLowered} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.ready()

			f.client = interceptor.NewClient(f.client, interceptor.Funcs{
				Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error { return refusal },
			})
			f.restart()
			f.editSecret("target", immutable)

			before := f.secret("target")

			if _, err := f.reconcile(); !apierrors.IsForbidden(err) {
				t.Errorf("error %v", err)
			}

			if after := f.secret("target"); after == nil || after.UID != before.UID || after.ResourceVersion != before.ResourceVersion {
				t.Errorf("the Secret is another, or gone: %t", after == nil)
			}
		})
	}
}

// A Secret with another kubeconfig gets a new one, and the event says why, also if a finalizer holds it for a while.
func TestWhyAReplacedSecretGetsANewKubeconfig(t *testing.T) {
	f := newFixture(t)
	f.ready()
	f.editSecret("target", func(s *corev1.Secret) {
		immutable(s)
		s.Finalizers, s.Data["kubeconfig"] = []string{v1alpha1.KubeconfigInUseFinalizer}, []byte("evil")
	})

	if _, err := f.reconcile(); f.told("KubeconfigIssued") != 1 {
		t.Fatalf("the Secret was replaced at once; error %v", err)
	}

	f.editSecret("target", func(s *corev1.Secret) { s.Finalizers = nil })
	f.ready()

	if f.asked() != 2 || f.told("KubeconfigIssued", "changed by somebody else") != 1 {
		t.Errorf("Omni was asked %d times; events: %q", f.asked(), f.events.All())
	}
}

// A stop does not come between the deletion of a Secret and the new one: no process after it knows what the Secret held.
func TestAStopLeavesNoSecretHalfReplaced(t *testing.T) {
	f := newFixture(t)
	f.ready()

	ctx, stop := context.WithCancel(t.Context())

	f.client = interceptor.NewClient(f.client, interceptor.Funcs{
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			stop()

			return c.Delete(ctx, o, opts...)
		},
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			if ctx.Err() != nil {
				return ctx.Err()
			}

			return c.Create(ctx, o, opts...)
		},
	})
	f.restart()
	f.editSecret("target", immutable)

	_, err := f.loop.Reconcile(ctx, reconcile.Request{NamespacedName: types.NamespacedName{Namespace: namespace, Name: f.export}})
	if secret := f.secret("target"); secret == nil || secret.Immutable != nil || ctx.Err() == nil {
		t.Fatalf("the Secret is gone, or as it was: %v", err)
	}

	f.restart()
	f.ready()

	if f.asked() != 1 {
		t.Errorf("Omni was asked %d times", f.asked())
	}
}
