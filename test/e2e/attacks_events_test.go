package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// Each flip changes the condition Ready of all failing objects.
const failingObjects, flips = 2000, 4

// Thousands of events: objects that fail, and then all of them again and again, because the tenant turns the key of their connection
// on and off. There is at most one event for each time that a condition changes, the controller keeps little, and another tenant's
// clusters and events come meanwhile.
func TestAttackEvents(t *testing.T) {
	attackOnly(t)

	hub := startAttacked(t)
	well := fleetIn(spaceOn(t, hub, "well"))
	tenant := tenantOn(t, hub)
	check := watchPrograms(t, hub)
	last := fmt.Sprintf("failing-%d", failingObjects-1)

	tenant.createFailing(failingObjects)
	tenant.waitCondition("ocl", last, v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonConnectionNotFound)

	for flip := range flips {
		secret, connected := "key", metav1.ConditionTrue
		if flip%2 > 0 {
			secret, connected = "no-such-key", metav1.ConditionFalse
		}

		tenant.apply(connectionManifest("none", tenant.omni.Endpoint(), secret, string(tenant.omni.CAPEM())))

		begun := time.Now()
		well.demandOne(flip)
		well.waitCondition("ocl", demanded(flip), v1alpha1.ConditionReady, metav1.ConditionTrue, "")
		well.waitEvents(demanded(flip), v1alpha1.ReasonRunning)
		t.Logf("a cluster of another tenant was Ready, with its event, within %s", time.Since(begun).Round(time.Millisecond))

		tenant.waitCondition("ocl", last, v1alpha1.ConditionConnectionReady, connected, "")
	}

	events := must(hub.Client().CoreV1().Events(tenant.name).List(t.Context(), metav1.ListOptions{}))(t).Items
	t.Logf("%d events", len(events))

	of := map[string]int{}

	for _, event := range events {
		if name := event.InvolvedObject.Name; strings.HasPrefix(name, "failing-") {
			of[name]++
		}
	}

	// A state between two others has an event, too.
	for name, count := range of {
		if count > 2*flips+1 {
			t.Errorf("%s has %d events", name, count)
		}
	}

	if len(of) < failingObjects*9/10 {
		t.Errorf("%d of %d objects have an event", len(of), failingObjects)
	}

	check(fmt.Sprintf("%d objects that fail, and whose condition changes %d times", failingObjects, flips), "")
}
