package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// strict decodes into one of our types and refuses fields that it does not have.
func strict(t *testing.T, data []byte, into any) {
	t.Helper()

	decoder := json.NewDecoder(strings.NewReader(string(data)))
	decoder.DisallowUnknownFields()

	if err := decoder.Decode(into); err != nil {
		t.Errorf("%v in %s", err, data)
	}
}

func TestObjectsAreOurs(t *testing.T) {
	var cluster v1alpha1.OmniCluster

	strict(t, encode(clusterObject(ourGroup, "a", "b")), &cluster)

	if cluster.Spec.Labels["step"] != "b" || len(cluster.Spec.Patches) != 2 || len(cluster.Spec.Kubernetes.Manifests) != 1 {
		t.Errorf("%+v", cluster.Spec)
	}

	strict(t, statusPatch("x"), &v1alpha1.OmniCluster{})
	strict(t, labelPatch("x"), &v1alpha1.OmniCluster{})
}

func TestFleetCluster(t *testing.T) {
	objects := fleetCluster("cluster-0007", "omni-2", [3]string{"m0", "m1", "m2"})

	var names []string

	for _, o := range objects {
		names = append(names, o.resource+"/"+o.name())
	}

	want := []string{"omniclusters/cluster-0007", "omnicontrolplanes/cluster-0007", "omniworkers/cluster-0007-a", "omniworkers/cluster-0007-b"}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Error(diff)
	}

	var cluster v1alpha1.OmniCluster

	strict(t, encode(objects[0].object), &cluster)

	if cluster.Spec.ConnectionRef.Name != "omni-2" {
		t.Errorf("%+v", cluster.Spec)
	}

	var plane v1alpha1.OmniControlPlane

	strict(t, encode(objects[1].object), &plane)

	if plane.Spec.ClusterRef.Name != "cluster-0007" || len(plane.Spec.Machines) != 1 || plane.Spec.Machines[0] != "m0" || len(plane.Spec.Patches) != 1 {
		t.Errorf("%+v", plane.Spec)
	}

	var workers v1alpha1.OmniWorkers

	strict(t, encode(objects[3].object), &workers)

	if workers.Spec.Machines[0] != "m2" || workers.Spec.UpdateStrategy == nil {
		t.Errorf("%+v", workers.Spec)
	}
}

func TestConnectionObjects(t *testing.T) {
	secret, connection := connectionObjects("omni", "https://127.0.0.1:1", "key", []byte("pem"))

	var decoded v1alpha1.OmniConnection

	strict(t, encode(connection), &decoded)

	if string(decoded.Spec.CABundle) != "pem" || decoded.Spec.Auth.ServiceAccountSecretRef.Name != "omni-key" || secret["kind"] != "Secret" {
		t.Errorf("%+v", decoded.Spec)
	}
}

func TestFleetName(t *testing.T) {
	if got := fleetName(7); got != "cluster-0007" {
		t.Error(got)
	}
}
