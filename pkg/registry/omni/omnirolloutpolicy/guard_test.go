package omnirolloutpolicy

import (
	"context"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/registry/internal/kittest"
)

// clusters is a store of OmniClusters.
type clusters struct {
	items []v1alpha1.OmniCluster
	err   error
}

func (c clusters) List(context.Context, *metainternalversion.ListOptions) (runtime.Object, error) {
	return &v1alpha1.OmniClusterList{Items: c.items}, c.err
}

// cluster is in a state by the policy of a name.
func cluster(policy string, state v1alpha1.RolloutState, changes ...func(*v1alpha1.OmniCluster)) v1alpha1.OmniCluster {
	o := v1alpha1.OmniCluster{Status: v1alpha1.OmniClusterStatus{Rollout: &v1alpha1.OmniClusterRollout{Policy: policy, State: state}}}
	for _, change := range changes {
		change(&o)
	}

	return o
}

// selected has the label of the policy, and no word of it in its status yet.
func selected(changes ...func(*v1alpha1.OmniCluster)) v1alpha1.OmniCluster {
	o := cluster("", "", changes...)
	o.Status.Rollout, o.Labels = nil, map[string]string{"fleet": "a"}

	return o
}

func TestGuardedDeletion(t *testing.T) {
	kittest.RunGuard(t, kittest.Guard[*v1alpha1.OmniRolloutPolicy]{
		Descriptor: Descriptor(now, clusters{items: []v1alpha1.OmniCluster{cluster("foo", v1alpha1.RolloutHeld)}}),
		Valid:      valid,
		Confirm: func(o *v1alpha1.OmniRolloutPolicy) {
			o.Annotations = map[string]string{"omni.texashpc.com/confirm-deletion": o.Name}
		},
	})
}

// TestConfirmDeletion: the policy's own number and the clusters both count. The number is out of date in the second
// after the first change was held.
func TestConfirmDeletion(t *testing.T) {
	now := metav1.Now()
	suspended := func(o *v1alpha1.OmniCluster) { o.Spec.Suspend = true }
	observed := func(o *v1alpha1.OmniCluster) { o.Spec.ChangePolicy = v1alpha1.ChangePolicyObserve }
	listed := func(o *v1alpha1.OmniCluster) { o.Status.Rollout.Changes = []string{"a"} }
	deleted := func(o *v1alpha1.OmniCluster) { o.DeletionTimestamp = &now }
	behind := func(o *v1alpha1.OmniCluster) { o.Generation, o.Status.ObservedGeneration = 2, 1 }
	ready := func(o *v1alpha1.OmniCluster) {
		o.Status.Conditions = []metav1.Condition{{Type: "Ready", Status: "True", Reason: "Running"}}
	}
	never := func(o *v1alpha1.OmniCluster) { o.Generation, o.Status.ObservedGeneration = 1, -1 }
	adopted := func(o *v1alpha1.OmniCluster) { o.Spec.Adopt = true }

	for name, test := range map[string]struct {
		held     int32
		clusters []v1alpha1.OmniCluster
		want     string
	}{
		"nothing":                      {},
		"its status":                   {held: 3, want: "changes of 3 clusters"},
		"clusters that it holds":       {clusters: []v1alpha1.OmniCluster{cluster("a", v1alpha1.RolloutHeld), cluster("a", v1alpha1.RolloutHeld)}, want: "changes of 2 clusters"},
		"held, and not to be made now": {clusters: []v1alpha1.OmniCluster{cluster("a", "", listed)}, want: "changes of 1 clusters"},
		"clusters at work":             {clusters: []v1alpha1.OmniCluster{cluster("a", v1alpha1.RolloutAdmitted)}, want: "changes of 1 clusters"},
		"both, and more in its status": {held: 3, clusters: []v1alpha1.OmniCluster{cluster("a", v1alpha1.RolloutHeld)}, want: "changes of 3 clusters"},
		"clusters of others":           {clusters: []v1alpha1.OmniCluster{cluster("b", v1alpha1.RolloutHeld), cluster("", v1alpha1.RolloutHeld), {}}},
		"clusters with nothing to do":  {clusters: []v1alpha1.OmniCluster{cluster("a", ""), cluster("a", v1alpha1.RolloutFailed)}},
		"clusters that are paused": {clusters: []v1alpha1.OmniCluster{
			cluster("a", v1alpha1.RolloutHeld, suspended), cluster("a", v1alpha1.RolloutHeld, observed), cluster("a", v1alpha1.RolloutHeld, deleted),
		}},
		"changed, and not looked at since": {clusters: []v1alpha1.OmniCluster{selected(behind), selected(behind, ready), selected(ready)}, want: "changes of 2 clusters"},
		"changed, and no longer selected":  {clusters: []v1alpha1.OmniCluster{cluster("a", "", behind)}},
		"changed, of others":               {clusters: []v1alpha1.OmniCluster{cluster("b", "", behind), cluster("", "", behind)}},
		"changed, and paused":              {clusters: []v1alpha1.OmniCluster{selected(behind, suspended), selected(behind, deleted)}},
		"new, which waits for nothing":     {clusters: []v1alpha1.OmniCluster{selected(never)}},
		"new, and adopted":                 {clusters: []v1alpha1.OmniCluster{selected(never, adopted)}, want: "changes of 1 clusters"},
		"held and changed, counted once": {clusters: []v1alpha1.OmniCluster{
			selected(behind, func(o *v1alpha1.OmniCluster) { o.Status = cluster("a", v1alpha1.RolloutHeld).Status }),
		}, want: "changes of 1 clusters"},
	} {
		t.Run(name, func(t *testing.T) {
			policy := valid()
			policy.Name, policy.Status.Held = "a", test.held
			policy.Spec.ClusterSelector = &v1alpha1.ClusterSelector{MatchLabels: map[string]string{"fleet": "a"}}

			err := confirmDeletion(t.Context(), policy, clusters{items: test.clusters})
			if test.want == "" && err != nil {
				t.Errorf("refused: %v", err)
			}

			if test.want != "" && (!apierrors.IsForbidden(err) || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), "omni.texashpc.com/confirm-deletion=a")) {
				t.Errorf("got %v, want Forbidden: %s", err, test.want)
			}

			policy.Annotations = map[string]string{"omni.texashpc.com/confirm-deletion": "a"}
			if err := confirmDeletion(t.Context(), policy, clusters{items: test.clusters}); err != nil {
				t.Errorf("confirmed: %v", err)
			}
		})
	}
}

// TestClustersCannotBeRead: then nobody knows, and the client tries again.
func TestClustersCannotBeRead(t *testing.T) {
	policy := valid()
	policy.Name = "a"

	busy := apierrors.NewTooManyRequests("busy", 1)
	if err := confirmDeletion(t.Context(), policy, clusters{err: busy}); !apierrors.IsTooManyRequests(err) {
		t.Errorf("got %v", err)
	}
}
