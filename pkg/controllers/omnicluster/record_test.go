package omnicluster

import (
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestRecords(t *testing.T) {
	var records records

	cluster, other := newCluster(), newCluster()
	other.Name = "other"

	if records.forget(client.ObjectKeyFromObject(cluster)); records.of(cluster).used != nil {
		t.Error("a new record is not empty")
	}

	records.of(cluster).used = new("first")
	records.of(other).used = new("other")

	if *records.of(cluster).used != "first" || *records.of(other).used != "other" {
		t.Error("the records are not kept apart")
	}

	again := cluster.DeepCopy()
	if again.UID = "another"; records.of(again).used != nil {
		t.Error("another object of the name has the record of the one before")
	}

	if records.forget(client.ObjectKeyFromObject(cluster)); len(records.entries) != 1 {
		t.Errorf("%d records are left", len(records.entries))
	}
}
