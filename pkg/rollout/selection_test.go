package rollout_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/rollout"
)

// policyFor is a policy for the clusters with a value of the label team; one of an empty value cannot be read.
func policyFor(name, team string) v1alpha1.OmniRolloutPolicy {
	return *policyOf(func(p *v1alpha1.OmniRolloutPolicy) {
		p.Name, p.UID, p.Generation = name, "uid", 1

		selector := v1alpha1.ClusterSelectorRequirement{Key: "team", Operator: metav1.LabelSelectorOpIn}
		if team != "" {
			selector.Values = []string{team}
		}

		p.Spec.ClusterSelector = &v1alpha1.ClusterSelector{MatchExpressions: []v1alpha1.ClusterSelectorRequirement{selector}}
	})
}

// TestSelection looks for the policies of a cluster of team a, in either order of the cache. The changes of the cluster are
// held by the policy that a case names.
func TestSelection(t *testing.T) {
	const unreadable = ""

	for name, test := range map[string]struct {
		teams map[string]string // of the policies
		held  string

		want      string
		conflict  int
		left      bool
		unusable  bool
		untouched bool // no policy concerns the cluster
	}{
		"none":                        {untouched: true},
		"of another team":             {teams: map[string]string{"fleet": "b"}, untouched: true},
		"one":                         {teams: map[string]string{"fleet": "a", "other": "b"}, want: "fleet"},
		"one that cannot be read":     {teams: map[string]string{"fleet": unreadable}, want: "fleet", unusable: true},
		"two":                         {teams: map[string]string{"fleet": "a", "another": "a"}, want: "another", conflict: 2},
		"two, one held before":        {teams: map[string]string{"fleet": "a", "another": "a"}, held: "fleet", want: "fleet", conflict: 2},
		"two, one that is gone held":  {teams: map[string]string{"fleet": "a", "another": "a"}, held: "gone", want: "another", conflict: 2},
		"two, one cannot be read":     {teams: map[string]string{"fleet": "a", "another": unreadable}, want: "another", conflict: 2},
		"it was left":                 {teams: map[string]string{"fleet": "b"}, held: "fleet", want: "fleet", left: true},
		"it was left for another one": {teams: map[string]string{"fleet": "b", "other": "a"}, held: "fleet", want: "other"},
		"what held is gone":           {teams: map[string]string{"fleet": "b"}, held: "gone", untouched: true},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := &v1alpha1.OmniCluster{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"team": "a"}}}
			if test.held != "" {
				cluster.Status.Rollout = &v1alpha1.OmniClusterRollout{Policy: test.held, State: v1alpha1.RolloutHeld}
			}

			var policies, reversed []v1alpha1.OmniRolloutPolicy
			for name, team := range test.teams {
				policies = append(policies, policyFor(name, team))
				reversed = append([]v1alpha1.OmniRolloutPolicy{policyFor(name, team)}, reversed...)
			}

			found, other := rollout.SelectionOf(policies, cluster), rollout.SelectionOf(reversed, cluster)
			if found.Name != other.Name || found.Revision != other.Revision {
				t.Errorf("the order of the policies counts: %+v, %+v", found, other)
			}

			if found.Name != test.want || len(found.Conflict) != test.conflict || found.Left != test.left {
				t.Errorf("%+v", found)
			}

			if (found.Unreadable != nil) != test.unusable || (found.Revision == "") != test.untouched {
				t.Errorf("%+v", found)
			}

			if (found.Object != nil) != (test.want != "") || found.Object != nil && found.Object.Name != test.want {
				t.Errorf("the policy: %+v", found.Object)
			}

			if usable := test.want != "" && test.conflict == 0 && !test.unusable; (found.Policy != nil) != usable {
				t.Errorf("%+v", found)
			}
		})
	}
}

// A policy that selected a cluster once, and holds nothing of it, does not concern it any more.
func TestSelectionOfAPolicyThatHoldsNothing(t *testing.T) {
	cluster := &v1alpha1.OmniCluster{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"team": "a"}}}
	cluster.Status.Rollout = &v1alpha1.OmniClusterRollout{Policy: "fleet", Governed: true}

	if found := rollout.SelectionOf([]v1alpha1.OmniRolloutPolicy{policyFor("fleet", "b")}, cluster); found.Name != "" || found.Left || found.Revision != "" {
		t.Errorf("%+v", found)
	}
}
