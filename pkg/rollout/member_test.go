package rollout_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/rollout"
)

// clusterOf is an OmniCluster of the canary stage that has run well, and been Ready, for an hour at noon.
func clusterOf(changes ...func(*v1alpha1.OmniCluster)) *v1alpha1.OmniCluster {
	cluster := &v1alpha1.OmniCluster{ObjectMeta: metav1.ObjectMeta{
		Name: "c", Namespace: "fleet", UID: "uid-c", Generation: 2, Labels: map[string]string{"tier": "canary"},
		Annotations: map[string]string{v1alpha1.AnnotationTimeZone: "Asia/Tokyo"},
	}}
	cluster.Spec.Kubernetes.Version, cluster.Spec.Talos.Version = v2, "v1.13.3"
	cluster.Status.ObservedGeneration = 2
	cluster.Status.Omni = &v1alpha1.OmniClusterRemoteStatus{
		Phase: "Running", KubernetesAPIReady: true, ControlPlaneReady: true, KubernetesVersion: v1, TalosVersion: "v1.13.3",
	}
	cluster.Status.Rollout = &v1alpha1.OmniClusterRollout{Policy: "production", Hash: "h", WellSince: seconds(noon.Add(-time.Hour))}
	ready(metav1.ConditionTrue, "Succeeded")(cluster)

	for _, change := range changes {
		change(cluster)
	}

	return cluster
}

func ready(status metav1.ConditionStatus, reason string) func(*v1alpha1.OmniCluster) {
	return func(c *v1alpha1.OmniCluster) {
		c.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: status, Reason: reason, LastTransitionTime: *seconds(noon.Add(-time.Hour))}}
	}
}

// unknownSince is a status that does not say since when the cluster runs well.
func unknownSince(c *v1alpha1.OmniCluster) { c.Status.Rollout.WellSince = nil }

// TestApprovalIsNoProof has a cluster that waits for an approval for ten days, got a version 25 hours ago, and did not run
// well with it until now. With a soak time of a day that proves nothing.
func TestApprovalIsNoProof(t *testing.T) {
	for name, test := range map[string]struct {
		since *metav1.Time
		want  bool
	}{
		"not known":       {},
		"a moment":        {since: seconds(noon)},
		"nearly a day":    {since: seconds(noon.Add(time.Second - 24*time.Hour))},
		"a day":           {since: seconds(noon.Add(-24 * time.Hour)), want: true},
		"since the write": {since: seconds(noon.Add(-25 * time.Hour)), want: true},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := clusterOf(ready(metav1.ConditionFalse, v1alpha1.ReasonAwaitingApproval))
			cluster.Status.Conditions[0].LastTransitionTime = *seconds(noon.Add(-240 * time.Hour))
			cluster.Status.LastSyncTime = seconds(noon.Add(-25 * time.Hour))
			cluster.Status.Omni.KubernetesVersion = v2
			cluster.Status.Rollout = &v1alpha1.OmniClusterRollout{Policy: "production", WellSince: test.since}

			policy := policyOf(func(p *v1alpha1.OmniRolloutPolicy) {
				p.Spec.Stages[0].SoakTime = v1alpha1.Duration("24h")
			})
			result := read(t, policy).Evaluate([]rollout.Member{read(t, policy).MemberOf(cluster, true)}, noon)

			if got := slices.Contains(kubernetes(result.Status.Stages[0]), v2); got != test.want {
				t.Errorf("proved: %t, want %t", got, test.want)
			}
		})
	}
}

func TestMemberOf(t *testing.T) {
	base := rollout.Member{
		Name: "c", UID: "uid-c", Zone: "Asia/Tokyo", Stage: 0, Healthy: true, Ready: true, Since: noon.Add(-time.Hour),
		WantedKubernetes: v2, WantedTalos: "v1.13.3", Kubernetes: v1, Talos: "v1.13.3",
		Rollout: v1alpha1.OmniClusterRollout{Policy: "production", Hash: "h", WellSince: seconds(noon.Add(-time.Hour))},
	}
	unwell := func(m *rollout.Member) { m.Healthy, m.Ready = false, false }
	waits := func(m *rollout.Member) { m.Ready = false }

	for name, test := range map[string]struct {
		cluster func(*v1alpha1.OmniCluster)
		want    func(*rollout.Member)
	}{
		"as it is":    {func(*v1alpha1.OmniCluster) {}, func(*rollout.Member) {}},
		"suspended":   {func(c *v1alpha1.OmniCluster) { c.Spec.Suspend = true }, paused},
		"observed":    {func(c *v1alpha1.OmniCluster) { c.Spec.ChangePolicy = v1alpha1.ChangePolicyObserve }, paused},
		"to be gone":  {func(c *v1alpha1.OmniCluster) { c.DeletionTimestamp = seconds(noon) }, func(m *rollout.Member) { paused(m); deleting(m) }},
		"other stage": {func(c *v1alpha1.OmniCluster) { c.Labels["tier"] = "edge" }, func(m *rollout.Member) { m.Stage = 2 }},
		"behind":      {func(c *v1alpha1.OmniCluster) { c.Generation++ }, func(m *rollout.Member) { m.Behind = true }},
		"never seen": {func(c *v1alpha1.OmniCluster) { c.Status = v1alpha1.OmniClusterStatus{} }, func(m *rollout.Member) {
			unwell(m)
			m.Behind, m.Since, m.Kubernetes, m.Talos, m.Rollout = true, time.Time{}, "", "", v1alpha1.OmniClusterRollout{}
		}},
		"before a policy selected it": {unknownSince, func(m *rollout.Member) { m.Rollout.WellSince = nil }},
		"before a policy selected it, written since": {
			func(c *v1alpha1.OmniCluster) { unknownSince(c); c.Status.LastSyncTime = seconds(noon) },
			func(m *rollout.Member) { m.Since, m.Rollout.WellSince = noon, nil },
		},
		"before a policy selected it, written before": {
			func(c *v1alpha1.OmniCluster) {
				unknownSince(c)
				c.Status.LastSyncTime = seconds(noon.Add(-2 * time.Hour))
			},
			func(m *rollout.Member) { m.Rollout.WellSince = nil },
		},
		"before a policy selected it, and an approval": {
			func(c *v1alpha1.OmniCluster) {
				ready(metav1.ConditionFalse, v1alpha1.ReasonAwaitingApproval)(c)
				unknownSince(c)
			},
			func(m *rollout.Member) { waits(m); unseen(m); m.Since, m.Rollout.WellSince = time.Time{}, nil },
		},
		"an approval, and manifests that are not applied": {
			func(c *v1alpha1.OmniCluster) {
				ready(metav1.ConditionFalse, v1alpha1.ReasonAwaitingApproval)(c)
				unknownSince(c)
			},
			func(m *rollout.Member) { unwell(m); m.Since, m.Rollout.WellSince = time.Time{}, nil },
		},
		"a label written since": {func(c *v1alpha1.OmniCluster) { c.Status.LastSyncTime = seconds(noon) }, func(*rollout.Member) {}},
		"Ready again after Omni was away": {func(c *v1alpha1.OmniCluster) {
			c.Status.Conditions[0].LastTransitionTime = *seconds(noon)
		}, func(*rollout.Member) {}},
		"locked in Omni": {ready(metav1.ConditionFalse, v1alpha1.ReasonRemoteLocked), func(m *rollout.Member) { unwell(m); paused(m) }},
		"second writer":  {ready(metav1.ConditionFalse, v1alpha1.ReasonSecondWriter), func(m *rollout.Member) { unwell(m); paused(m) }},
		"at work":        {ready(metav1.ConditionFalse, "KubernetesUpgrading"), unwell},
		"unknown":        {ready(metav1.ConditionUnknown, "NotConnected"), unwell},
		"an approval":    {ready(metav1.ConditionFalse, v1alpha1.ReasonAwaitingApproval), waits},
		"settling":       {ready(metav1.ConditionFalse, v1alpha1.ReasonWaitingToSettle), waits},
		"a refusal":      {ready(metav1.ConditionFalse, v1alpha1.ReasonRefused), waits},
		"a refusal, and not well": {func(c *v1alpha1.OmniCluster) {
			ready(metav1.ConditionFalse, v1alpha1.ReasonRefused)(c)
			c.Status.Omni.Phase = "ScalingUp"
		}, unwell},
		"an approval, and not well": {func(c *v1alpha1.OmniCluster) {
			ready(metav1.ConditionFalse, v1alpha1.ReasonAwaitingApproval)(c)
			c.Status.Omni.ControlPlaneReady = false
		}, unwell},
		"an approval, and no API": {func(c *v1alpha1.OmniCluster) {
			ready(metav1.ConditionFalse, v1alpha1.ReasonAwaitingApproval)(c)
			c.Status.Omni.KubernetesAPIReady = false
		}, unwell},
		"an approval, and nothing is known of it in Omni": {func(c *v1alpha1.OmniCluster) {
			ready(metav1.ConditionFalse, v1alpha1.ReasonAwaitingApproval)(c)
			c.Status.Omni = nil
		}, func(m *rollout.Member) { unwell(m); m.Kubernetes, m.Talos = "", "" }},
		"an approval, and its sets are ready": {func(c *v1alpha1.OmniCluster) {
			ready(metav1.ConditionFalse, v1alpha1.ReasonAwaitingApproval)(c)
			c.Status.Omni.MachineSets = []v1alpha1.MachineSetStatus{{Name: "control-planes", Ready: true}, {Name: "workers", Ready: true}}
		}, waits},
		"an approval, and a set that is not": {func(c *v1alpha1.OmniCluster) {
			ready(metav1.ConditionFalse, v1alpha1.ReasonAwaitingApproval)(c)
			c.Status.Omni.MachineSets = []v1alpha1.MachineSetStatus{{Name: "control-planes", Ready: true}, {Name: "workers"}}
		}, unwell},
		"an approval, and an upgrade": {func(c *v1alpha1.OmniCluster) {
			ready(metav1.ConditionFalse, v1alpha1.ReasonAwaitingApproval)(c)
			c.Status.Omni.Upgrades.Talos = &v1alpha1.UpgradeStatus{Phase: "Upgrading"}
		}, unwell},
		"an approval, and an upgrade that has not begun": {func(c *v1alpha1.OmniCluster) {
			ready(metav1.ConditionFalse, v1alpha1.ReasonAwaitingApproval)(c)
			c.Status.Omni.Upgrades.Kubernetes = &v1alpha1.UpgradeStatus{Phase: "Done", Version: "v1.34.8"}
		}, unwell},
		"an approval, and an upgrade that is done": {func(c *v1alpha1.OmniCluster) {
			ready(metav1.ConditionFalse, v1alpha1.ReasonAwaitingApproval)(c)
			c.Status.Omni.Upgrades.Kubernetes = &v1alpha1.UpgradeStatus{Phase: "Done", Version: v1}
		}, waits},
		"an approval, and a set that is not ready": {func(c *v1alpha1.OmniCluster) {
			ready(metav1.ConditionFalse, v1alpha1.ReasonAwaitingApproval)(c)
			c.Status.Omni.MachineSets = []v1alpha1.MachineSetStatus{{}}
		}, unwell},
	} {
		t.Run(name, func(t *testing.T) {
			want := base
			test.want(&want)

			if diff := cmp.Diff(want, read(t, policyOf()).MemberOf(clusterOf(test.cluster), !want.Unseen)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
