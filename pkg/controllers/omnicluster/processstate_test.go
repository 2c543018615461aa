package omnicluster

import (
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestRecords(t *testing.T) {
	var states processStates

	cluster, other := newCluster(), newCluster()
	other.Name = "other"

	if states.forget(client.ObjectKeyFromObject(cluster)); states.of(cluster).used != nil {
		t.Error("a new state is not empty")
	}

	states.of(cluster).used = new("first")
	states.of(other).used = new("other")

	if *states.of(cluster).used != "first" || *states.of(other).used != "other" {
		t.Error("the states are not kept apart")
	}

	again := cluster.DeepCopy()
	if again.UID = "another"; states.of(again).used != nil {
		t.Error("another object of the name has the state of the one before")
	}

	if states.forget(client.ObjectKeyFromObject(cluster)); len(states.entries) != 1 {
		t.Errorf("%d states are left", len(states.entries))
	}
}
