package rollout_test

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/rollout"
)

// Versions that the tests roll out.
const (
	v1 = "v1.35.1"
	v2 = "v1.36.1"
	v3 = "v1.37.0"
)

// noon is a Wednesday; all clusters have been healthy for a long time.
var noon = time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)

func at(t *testing.T, text string) time.Time {
	t.Helper()

	read, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}

	return read
}

func seconds(t time.Time) *metav1.Time { return &metav1.Time{Time: t} }

// policyOf makes a policy with the stages canary, stage and prod that has been evaluated.
func policyOf(changes ...func(*v1alpha1.OmniRolloutPolicy)) *v1alpha1.OmniRolloutPolicy {
	tier := func(value string) *v1alpha1.ClusterSelector {
		return &v1alpha1.ClusterSelector{MatchLabels: map[string]string{"tier": value}}
	}
	object := &v1alpha1.OmniRolloutPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "production", Namespace: "fleet", Generation: 3},
		Spec: v1alpha1.OmniRolloutPolicySpec{
			ClusterSelector: &v1alpha1.ClusterSelector{},
			Stages: []v1alpha1.RolloutStage{
				{Name: "canary", ClusterSelector: tier("canary")}, {Name: "stage", ClusterSelector: tier("stage")}, {Name: "prod"},
			},
		},
	}
	object.Status.ObservedGeneration = 3

	for _, change := range changes {
		change(object)
	}

	return object
}

func read(t testing.TB, object *v1alpha1.OmniRolloutPolicy) *rollout.Policy {
	t.Helper()

	policy, err := rollout.New(object)
	if err != nil {
		t.Fatal(err)
	}

	return policy
}

// after returns the policy with the status that Evaluate computed.
func after(t testing.TB, object *v1alpha1.OmniRolloutPolicy, members []rollout.Member, now time.Time) (*v1alpha1.OmniRolloutPolicy, rollout.Result) {
	t.Helper()

	result := read(t, object).Evaluate(members, now)
	object = object.DeepCopy()
	object.Status = result.Status

	return object, result
}

// memberOf makes a cluster that has run v1 and been healthy for a long time, and has no changes.
func memberOf(name string, stage int, changes ...func(*rollout.Member)) rollout.Member {
	m := rollout.Member{
		Name: name, UID: "uid-" + name, Stage: stage, Healthy: true, Ready: true, Since: noon.Add(-1000 * time.Hour),
		WantedKubernetes: v1, Kubernetes: v1, WantedTalos: "v1.13.3", Talos: "v1.13.3",
		Rollout: v1alpha1.OmniClusterRollout{Governed: true, Policy: "production"},
	}
	for _, change := range changes {
		change(&m)
	}

	return m
}

// unseen has a status that this process has not compared with Omni.
func unseen(m *rollout.Member) { m.Unseen = true }

// wants sets a version that the cluster's objects ask for and that it does not run yet.
func wants(version string) func(*rollout.Member) {
	return func(m *rollout.Member) {
		m.WantedKubernetes = version
		held("hash-"+version, v1alpha1.ChangeKubernetesVersion)(m)
	}
}

// runs sets a version that the cluster's objects ask for and that it has run since some time before noon.
func runs(version string, ago time.Duration) func(*rollout.Member) {
	return func(m *rollout.Member) {
		m.WantedKubernetes, m.Kubernetes, m.Since = version, version, noon.Add(-ago)
	}
}

// held sets changes that have waited for an hour at noon.
func held(hash string, kinds ...v1alpha1.ChangeKind) func(*rollout.Member) {
	return func(m *rollout.Member) {
		m.Rollout.State, m.Rollout.Hash, m.Rollout.Kinds = v1alpha1.RolloutHeld, hash, kinds
		m.Rollout.HeldSince = seconds(noon.Add(-time.Hour))
	}
}

func heldSince(since time.Time) func(*rollout.Member) {
	return func(m *rollout.Member) { m.Rollout.HeldSince = seconds(since) }
}

// atWork are changes that have begun.
func atWork(hash string, kinds ...v1alpha1.ChangeKind) func(*rollout.Member) {
	return func(m *rollout.Member) {
		m.Rollout.State, m.Rollout.Hash, m.Rollout.Kinds = v1alpha1.RolloutAdmitted, hash, kinds
		m.Healthy, m.Ready = false, false
	}
}

// failed are changes that failed here.
func failed(hash string) func(*rollout.Member) {
	return func(m *rollout.Member) {
		m.Rollout.Failure = &v1alpha1.RolloutFailure{Hash: hash, Time: *seconds(noon.Add(-time.Hour)), Message: "UpgradeFailed: no image"}
		m.Healthy, m.Ready = false, false
	}
}

func dead(m *rollout.Member)     { m.Healthy, m.Ready = false, false }
func paused(m *rollout.Member)   { m.Paused = true }
func left(m *rollout.Member)     { m.HasLeft = true }
func deleting(m *rollout.Member) { m.Deleting = true }
func conflict(m *rollout.Member) { m.Conflict = true }

func lastly(hash string, result v1alpha1.RolloutOutcome, when time.Time) func(*rollout.Member) {
	return func(m *rollout.Member) {
		m.Rollout.Last = &v1alpha1.RolloutResult{Hash: hash, Result: result, Time: *seconds(when)}
	}
}

// ticket is a ticket that the policy has given an hour before noon.
func ticket(cluster, stage, hash string) func(*v1alpha1.OmniRolloutPolicy) {
	return func(object *v1alpha1.OmniRolloutPolicy) {
		object.Status.Admitted = append(object.Status.Admitted, v1alpha1.RolloutTicket{
			Cluster: cluster, UID: "uid-" + cluster, Stage: stage, Hash: hash, Since: *seconds(noon.Add(-time.Hour)),
		})
	}
}

// proved is a version that a stage has proved.
func proved(version string, stages ...string) func(*v1alpha1.OmniRolloutPolicy) {
	return func(object *v1alpha1.OmniRolloutPolicy) {
		for _, name := range stages {
			object.Status.Stages = append(object.Status.Stages, v1alpha1.RolloutStageStatus{
				Name: name, Clusters: 2, Qualified: []v1alpha1.QualifiedVersion{{Kubernetes: version, Since: *seconds(noon.Add(-time.Hour))}},
			})
		}
	}
}

func spec(change func(*v1alpha1.OmniRolloutPolicySpec)) func(*v1alpha1.OmniRolloutPolicy) {
	return func(object *v1alpha1.OmniRolloutPolicy) { change(&object.Spec) }
}

// one is the only stage of a policy.
func one(stage v1alpha1.RolloutStage) func(*v1alpha1.OmniRolloutPolicy) {
	return func(object *v1alpha1.OmniRolloutPolicy) {
		stage.Name = "prod"
		object.Spec.Stages = []v1alpha1.RolloutStage{stage}
	}
}

func share(value string) *intstr.IntOrString {
	parsed := intstr.Parse(value)

	return &parsed
}

// many are clusters of a stage, named in order.
func many(number, stage int, changes ...func(*rollout.Member)) []rollout.Member {
	var members []rollout.Member
	for i := range number {
		members = append(members, memberOf(fmt.Sprintf("c%03d", i), stage, changes...))
	}

	return members
}

// admitted are the clusters that have a ticket.
func admitted(status v1alpha1.OmniRolloutPolicyStatus) []string {
	names := []string{}
	for _, one := range status.Admitted {
		names = append(names, one.Cluster)
	}

	return names
}
