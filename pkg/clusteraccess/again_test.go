package clusteraccess

import (
	"strings"
	"sync/atomic"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/hubs"
)

// TestMakeAgain: what is gone is made again only while this process sees in Omni that no other hub has the cluster.
func TestMakeAgain(t *testing.T) {
	var requests atomic.Int32

	access, release := visit{system: "U", hub: "hub-1"}.come(t, &requests)
	access.Owners = hubs.NewOwners()

	parent := &v1alpha1.OmniCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "demo"}}
	if err := access.Client.Get(t.Context(), client.ObjectKeyFromObject(parent), parent); err != nil {
		t.Fatal(err)
	}

	var opened *Opened

	for opened == nil {
		var err error
		if opened, _, err = access.Open(t.Context(), RequesterOf(release, nil)); err != nil {
			t.Fatal(err)
		}
	}
	defer opened.Done()

	outcome := opened.MakeAgain("release apps/app")
	if outcome.Continues() || outcome.Stalls() || outcome.Reason() != v1alpha1.ReasonClusterNotInOmni {
		t.Errorf("not seen: %+v", outcome)
	}

	for _, words := range []string{"release apps/app was made by this object and is gone", `the conditions of OmniCluster "demo"`, "OmniConnection", "deletionPolicy to Orphan"} {
		if !strings.Contains(outcome.Message(), words) {
			t.Errorf("%q does not say %q", outcome.Message(), words)
		}
	}

	if access.Owners.Note(parent); !opened.MakeAgain("release apps/app").Continues() {
		t.Error("seen, and it is not made again")
	}

	// Nobody has wired the notes: nothing is known to have been seen.
	if access.Owners = nil; opened.MakeAgain("release apps/app").Continues() {
		t.Error("made again without notes")
	}
}
