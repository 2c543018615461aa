package e2e

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	omnires "github.com/siderolabs/omni/client/pkg/omni/resources/omni"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// versionsOf are the resource versions of the objects of some kinds: they change with every write.
func (s *space) versionsOf(kinds string) string {
	s.t.Helper()

	return s.run("get", kinds, "-o", `jsonpath={range .items[*]}{.kind}/{.metadata.name}={.metadata.resourceVersion} {end}`)
}

// callsToOmni are the requests but for those that ask whether Omni is there.
func (f *fleet) callsToOmni() []string {
	var calls []string

	for request, count := range f.omni.Requests() {
		if request.Method != "Watch" {
			calls = append(calls, fmt.Sprintf("%d %s %s", count, request.Method, request.Type))
		}
	}

	return slices.Sorted(slices.Values(calls))
}

// TestHeldCostsNothing has clusters wait for their turn over one of their intervals: every one is looked at, nothing is
// written to the API, and Omni is asked nothing but whether it is there.
func TestHeldCostsNothing(t *testing.T) {
	slow(t)
	t.Parallel()

	f := newFleet(t)
	f.apply(fmt.Sprintf(oneByOne, true))
	f.tiers(map[string]string{"a": "x", "b": "x", "c": "x", "d": "x"})

	for _, name := range []string{"a", "b", "c", "d"} {
		f.apply(tiered(name, "x", "v1.36.1", "  syncInterval: 30s"))
		f.waitCondition("ocl", name, v1alpha1.ConditionHeld, metav1.ConditionTrue, v1alpha1.ReasonPolicyOnHold)
	}

	f.waitShows("the policy to count all", "orp", "fleet", "{.status.held}", "4")
	time.Sleep(settleTime)

	before := f.versionsOf("ocl,ocp,orp")

	f.omni.ForgetRequests()
	time.Sleep(v1alpha1.MinSyncInterval + settleTime)

	if after := f.versionsOf("ocl,ocp,orp"); after != before {
		t.Errorf("before: %s\nafter: %s", before, after)
	}

	for _, call := range f.callsToOmni() {
		if !strings.Contains(call, " Get ") {
			t.Errorf("calls to Omni: %v", f.callsToOmni())
		}
	}
}

// took is nil once Omni has taken a write.
func (f *fleet) took(verb, kind string) error {
	for _, write := range f.omni.Writes() {
		if write.Verb == verb && write.Type == kind {
			return nil
		}
	}

	return fmt.Errorf("no %s of a %s", verb, kind)
}

// TestUnselectedClustersAreAsBefore makes the same changes to a cluster without a policy, and to one beside a policy that
// selects others: Omni takes the same writes.
func TestUnselectedClustersAreAsBefore(t *testing.T) {
	t.Parallel()

	writes := map[string][]string{}

	for _, which := range []string{"alone", "beside"} {
		f := newFleetIn(t, "-"+which)
		if which == "beside" {
			f.apply(rolloutPolicy("  hold: true"))
		}

		f.omni.ForgetRequests()
		f.cluster("c")

		manifest := strings.Replace(clusterManifest("c", "  patches: [{name: a, inline: {machine: {env: {A: \"1\"}}}}]"), "v1.35.1", "v1.36.1", 1)
		f.apply(manifest)
		f.waitShows("v1.36.1 in Omni", "ocl", "c", "{.status.omni.kubernetesVersion}", "v1.36.1")
		f.apply(strings.Replace(clusterManifest("c"), "v1.35.1", "v1.36.1", 1))
		f.wait("the patch to go", func() error { return f.took("Teardown", omnires.ConfigPatchType) })
		f.waitCondition("ocl", "c", v1alpha1.ConditionReady, metav1.ConditionTrue, "")

		if status := f.run("get", "ocl", "c", "-o", "jsonpath={.status.rollout}"); status != "" {
			t.Errorf("%s: status.rollout is %s", which, status)
		}

		f.run("delete", "ocl", "c", "--timeout=60s")

		for _, write := range f.omni.Writes() {
			if write.Verb == "Destroy" {
				continue // follows a Teardown, unless the cluster has gone in the meantime
			}

			writes[which] = append(writes[which], write.Verb+" "+write.Type+" "+strings.ReplaceAll(write.ID, f.machines[0], "machine"))
		}

		slices.Sort(writes[which])
	}

	if diff := cmp.Diff(writes["alone"], writes["beside"]); diff != "" || len(writes["alone"]) == 0 {
		t.Errorf("writes to Omni alone, and beside a policy that selects others (%v):\n%s", slices.Collect(maps.Keys(writes)), diff)
	}
}
