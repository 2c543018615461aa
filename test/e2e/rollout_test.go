package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	omnires "github.com/siderolabs/omni/client/pkg/omni/resources/omni"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// One commit, and the clusters take it one after the other.

// rolloutPolicy is a policy of two stages: canary, by the label tier, and the rest.
func rolloutPolicy(extra ...string) string {
	return `apiVersion: omni.texashpc.com/v1alpha1
kind: OmniRolloutPolicy
metadata:
  name: fleet
spec:
  clusterSelector: {matchExpressions: [{key: tier, operator: Exists}]}
  stages:
    - {name: canary, clusterSelector: {matchLabels: {tier: canary}}, soakTime: 1s}
    - {name: prod, soakTime: 1s}
` + strings.Join(extra, "\n")
}

// tiered is a cluster manifest with a label, at a version of Kubernetes.
func tiered(name, tier, kubernetes string, extra ...string) string {
	manifest := strings.Replace(clusterManifest(name, extra...), "  name: "+name+"\n", "  name: "+name+"\n  labels: {tier: "+tier+"}\n", 1)

	return strings.Replace(manifest, "v1.35.1", kubernetes, 1)
}

// tiers makes clusters of one machine, a tier each, and waits until they are Ready.
func (f *fleet) tiers(clusters map[string]string) {
	f.t.Helper()

	machine := 0

	for name, tier := range clusters {
		f.apply(tiered(name, tier, "v1.35.1"), controlPlaneManifest(name+"-cp", name, f.machines[machine]))
		machine++
	}

	for name := range clusters {
		f.waitCondition("ocl", name, v1alpha1.ConditionReady, metav1.ConditionTrue, "")
	}

	f.waitCondition("orp", "fleet", v1alpha1.ConditionReady, metav1.ConditionTrue, "")
}

// clusterWrites are the updates of Clusters that Omni took, in their order.
func (f *fleet) clusterWrites() []string {
	var names []string

	for _, write := range f.omni.Writes() {
		if write.Type == omnires.ClusterType && write.Verb == "Update" {
			names = append(names, write.ID)
		}
	}

	return names
}

func TestRollout(t *testing.T) {
	t.Parallel()

	f := newFleet(t)
	f.apply(rolloutPolicy())
	f.tiers(map[string]string{"canary": "canary", "prod-a": "prod", "prod-b": "prod"})
	f.omni.ForgetRequests()

	// The worst order of arrival: production first.
	f.apply(tiered("prod-a", "prod", "v1.36.1", "  labels: {team: a}"), tiered("prod-b", "prod", "v1.36.1"))

	f.waitCondition("ocl", "prod-b", v1alpha1.ConditionHeld, metav1.ConditionTrue, v1alpha1.ReasonWaitingForStage)
	f.wait("the message of production", func() error {
		message, err := f.condition("ocl", "prod-a", v1alpha1.ConditionHeld, metav1.ConditionTrue, v1alpha1.ReasonWaitingForStage)
		if want := "1 of 1 changes waits (KubernetesVersion v1.35.1 -> v1.36.1): KubernetesVersion v1.36.1: stage \"canary\""; err == nil && !strings.HasPrefix(message, want) {
			err = errors.New(message)
		}

		return err
	})

	// The label was written at once; nothing else was.
	if diff := f.clusterWrites(); !slices.Equal(diff, []string{"prod-a"}) {
		t.Errorf("writes while production waits: %v", diff)
	}

	f.waitCondition("ocl", "prod-a", v1alpha1.ConditionReady, metav1.ConditionTrue, "")
	f.waitCondition("ocl", "prod-a", v1alpha1.ConditionSynced, metav1.ConditionFalse, v1alpha1.ReasonHeld)
	f.waitKstatus("ocl", "prod-a", status.CurrentStatus)
	f.waitKstatus("ocp", "prod-a-cp", status.CurrentStatus)

	if out := f.run("get", "ocl", "prod-a", "-o", "wide"); !strings.Contains(out, "h1") || !strings.Contains(out, "WaitingForStage") {
		t.Error(out)
	}

	f.waitShows("the policy to hold both", "orp", "fleet", "{.status.held}", "2")

	if out, err := f.try("delete", "orp", "fleet", "--timeout=5s"); err == nil || !strings.Contains(err.Error(), "holds changes of 2 clusters") {
		t.Errorf("deleting the policy: %s %v", out, err)
	}

	f.apply(tiered("canary", "canary", "v1.36.1"))

	for _, name := range []string{"canary", "prod-a", "prod-b"} {
		f.waitShows(name+" to run v1.36.1", "ocl", name, "{.status.rollout.last.result}", "Done")
		f.waitCondition("ocl", name, v1alpha1.ConditionSynced, metav1.ConditionTrue, "")
	}

	// Each alone: its turn was over before the next one began.
	if got := f.clusterWrites(); !slices.Equal(got, []string{"prod-a", "canary", "prod-a", "prod-b"}) {
		t.Errorf("writes: %v", got)
	}

	f.waitShows("the policy to be idle", "orp", "fleet", "{.status.held}{.status.admitted}", "0")
	f.run("delete", "orp", "fleet")
}

func TestRolloutOverride(t *testing.T) {
	t.Parallel()

	f := newFleet(t)
	f.apply(rolloutPolicy("  hold: true"))
	f.tiers(map[string]string{"one": "prod"})
	bind(t, f.name, "edit", rbacv1.Subject{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: f.user("edit")})
	bind(t, f.name, "admin", rbacv1.Subject{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: f.user("admin")})

	f.apply(tiered("one", "prod", "v1.36.1"))
	f.waitCondition("ocl", "one", v1alpha1.ConditionHeld, metav1.ConditionTrue, v1alpha1.ReasonPolicyOnHold)

	hash := f.run("get", "ocl", "one", "-o", "jsonpath={.status.rollout.hash}")
	override := func(user, value string) error {
		_, err := f.try("annotate", "ocl", "one", "--overwrite", "omni.texashpc.com/rollout-override="+value, "--as", f.user(user))

		return err
	}

	f.wait("the rights of the users", func() error {
		if err := override("edit", hash+" the outage of tonight"); err == nil || !strings.Contains(err.Error(), "cannot override omniclusters") {
			return fmt.Errorf("a user with the role edit: %w", err)
		}

		return nil
	})

	if err := override("admin", hash+" short"); err == nil || !strings.Contains(err.Error(), "at least 10 characters") {
		t.Errorf("without a reason: %v", err)
	}

	// An old hash opens nothing.
	f.wait("the override with another hash", func() error { return override("admin", strings.Repeat("0", 64)+" the outage of tonight") })
	f.waitCondition("ocl", "one", v1alpha1.ConditionHeld, metav1.ConditionTrue, v1alpha1.ReasonPolicyOnHold)

	if err := override("admin", hash+" the outage of tonight"); err != nil {
		t.Fatal(err)
	}

	f.waitShows("v1.36.1 in Omni", "ocl", "one", "{.status.omni.kubernetesVersion}", "v1.36.1")
	f.waitEvent("RolloutOverridden", f.user("admin"), "the outage of tonight")

	var recorded v1alpha1.RolloutOverride
	if err := json.Unmarshal([]byte(f.run("get", "ocl", "one", "-o", "jsonpath={.status.rollout.override}")), &recorded); err != nil {
		t.Fatal(err)
	}

	if recorded.User != f.user("admin") || recorded.Hash != hash || recorded.Reason != "the outage of tonight" {
		t.Errorf("%+v", recorded)
	}

	// It counts for this turn only.
	f.waitShows("the end of the turn", "ocl", "one", "{.status.rollout.last.result}", "Done")

	if used, ended := f.run("get", "ocl", "one", "-o", "jsonpath={.status.rollout.override.usedTime}"), f.run("get", "ocl", "one", "-o", "jsonpath={.status.rollout.last.time}"); used == "" || used != ended {
		t.Errorf("the override was used at %q, and the turn ended at %q", used, ended)
	}
}

// A change that fails in the canary stops the rollout until Git has a fix.
func TestRolloutFailure(t *testing.T) {
	t.Parallel()

	f := newFleet(t)
	f.apply(rolloutPolicy())
	f.tiers(map[string]string{"canary": "canary", "prod": "prod"})

	// Omni does not know this version.
	f.apply(tiered("canary", "canary", "v1.99.0"), tiered("prod", "prod", "v1.99.0"))
	f.waitCondition("orp", "fleet", v1alpha1.ConditionRolloutStopped, metav1.ConditionTrue, v1alpha1.ReasonTooManyFailed)
	f.waitCondition("ocl", "canary", v1alpha1.ConditionHeld, metav1.ConditionTrue, v1alpha1.ReasonRolloutFailed)
	f.waitCondition("ocl", "prod", v1alpha1.ConditionHeld, metav1.ConditionTrue, "")
	f.waitEvent("RolloutFailed", "1.99.0")

	f.apply(tiered("canary", "canary", "v1.36.1"), tiered("prod", "prod", "v1.36.1"))

	for _, name := range []string{"canary", "prod"} {
		f.waitShows(name+" to run v1.36.1", "ocl", name, "{.status.rollout.last.result}", "Done")
	}

	f.waitShows("the end of the stop", "orp", "fleet", "{.status.conditions[?(@.type==\"RolloutStopped\")].status}", "")
}

// promotedUntil is an hour from now, as the annotation has it.
func promotedUntil() string { return time.Now().Add(time.Hour).UTC().Format(time.RFC3339) }
