package e2e

import (
	"errors"
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/test/omnisim"
)

// A key that ends while its connection is in use is noticed long before the next look that nothing
// triggers (five minutes): the watches that are open go on, so only the clock tells, or a call.
func TestKeyThatEndsInUse(t *testing.T) {
	t.Parallel()

	t.Run("expired", func(t *testing.T) {
		t.Parallel()

		const lifetime = 40 * time.Second

		f := newFleetIn(t, "expired")

		short, err := f.omni.CreateServiceAccount("short", omnisim.RoleOperator, lifetime)
		if err != nil {
			t.Fatal(err)
		}

		f.apply(secretManifest("short", short, f.omni.Endpoint()), connectionManifest("short", f.omni.Endpoint(), "short", string(f.omni.CAPEM())))

		var expires time.Time

		f.wait("the time of the end", func() error {
			account := get[v1alpha1.OmniConnection](f.space, "oconn", "short").Status.ServiceAccount
			if account == nil || account.ExpirationTime == nil {
				return errors.New("the status does not tell it")
			}

			expires = account.ExpirationTime.Time

			return nil
		})

		time.Sleep(time.Until(expires))
		f.waitCondition("oconn", "short", v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonKeyExpired)

		// What wakes it later does not make the key good again.
		f.run("annotate", "oconn", "short", v1alpha1.AnnotationReconcileRequestedAt+"=later")
		f.wait("the next look", func() error {
			if at := get[v1alpha1.OmniConnection](f.space, "oconn", "short").Status.LastHandledReconcileAt; at != "later" {
				return fmt.Errorf("looked at %q", at)
			}

			return nil
		})
		f.waitCondition("oconn", "short", v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonKeyExpired)
	})

	t.Run("revoked", func(t *testing.T) {
		t.Parallel()

		f := newFleetIn(t, "revoked")
		f.apply(clusterManifest("c"), controlPlaneManifest("c-cp", "c", f.machines[0]))
		f.ready("c")

		if err := f.omni.RevokeKey(f.key); err != nil {
			t.Fatal(err)
		}

		// The first call that is refused is the cluster's own.
		f.merge(`{"spec":{"labels":{"after":"revocation"}}}`)
		f.waitCondition("oconn", "omni", v1alpha1.ConditionReachable, metav1.ConditionFalse, v1alpha1.ReasonUnauthenticated)

		f.newKey()
		f.ready("c")
	})
}
