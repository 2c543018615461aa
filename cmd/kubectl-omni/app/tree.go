package app

import (
	"time"

	"github.com/spf13/cobra"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

func (t *tool) treeCommand() *cobra.Command {
	var format *string

	command := &cobra.Command{
		Use:   "tree CLUSTER",
		Short: "Show what belongs to a cluster, and how each object is",
		Example: `  # All objects that belong to the OmniCluster edge-01
  kubectl omni tree edge-01 -n fleet

  # The same for a program: kind, name, ready, reason and children of each
  kubectl omni tree edge-01 -n fleet -o json`,
		GroupID: groupLook,
		Args:    cobra.ExactArgs(1), ValidArgsFunction: t.completeClusters,
		RunE: func(command *cobra.Command, args []string) error {
			client, namespace, err := t.api()
			if err != nil {
				return err
			}

			root, err := familyOf(command.Context(), client, namespace, args[0])
			if err != nil {
				return err
			}

			if done, err := t.encode(*format, nodeOf(root)); done {
				return err
			}

			return treeOf(root, t.now(), t.colour).write(t.Out)
		},
	}
	format = addFormat(command.Flags())

	return command
}

// node is an object of a tree, for programs.
type node struct {
	Kind   string `json:"kind"`
	Name   string `json:"name,omitempty"`
	Ready  string `json:"ready,omitempty"`
	Reason string `json:"reason,omitempty"`
	// Problem is why the object is not shown: it is not there, or may not be read.
	Problem  string `json:"problem,omitempty"`
	Children []node `json:"children,omitempty"`
}

func nodeOf(one member) node {
	found := node{Kind: one.kind, Name: one.name, Problem: one.problem}

	if one.object != nil {
		ready, reason, _ := stateOf(one.object)
		found.Ready, found.Reason = string(ready), reason
	}

	for _, child := range one.children {
		found.Children = append(found.Children, nodeOf(child))
	}

	return found
}

// treeOf draws a cluster and what belongs to it.
func treeOf(root member, now time.Time, colour bool) *table {
	drawn := &table{colour: colour}
	drawn.add(plain, "OBJECT", "READY", "REASON", "AGE")
	branch(drawn, root, "", "", now)

	return drawn
}

func branch(drawn *table, one member, first, rest string, now time.Time) {
	name := one.kind
	if one.name != "" {
		name += "/" + one.name
	}

	if one.object == nil {
		drawn.add(red, first+name, "", one.problem, "")
	} else {
		ready, reason, stalled := stateOf(one.object)
		drawn.add(colourOf(ready, stalled), first+name, string(ready), reason, age(one.object.GetCreationTimestamp().Time, now))
	}

	for i, child := range one.children {
		if i == len(one.children)-1 {
			branch(drawn, child, rest+"└── ", rest+"    ", now)
		} else {
			branch(drawn, child, rest+"├── ", rest+"│   ", now)
		}
	}
}

// stateOf is Ready with its reason. What waits for its turn, or is suspended, says so beside it.
func stateOf(o object) (ready metav1.ConditionStatus, reason string, stalled bool) {
	conditions := o.GetReconcileStatus().Conditions
	stalled = apimeta.IsStatusConditionTrue(conditions, v1alpha1.ConditionStalled)

	found := apimeta.FindStatusCondition(conditions, v1alpha1.ConditionReady)
	if found == nil {
		return metav1.ConditionUnknown, "", stalled
	}

	reason = found.Reason

	for _, mark := range []string{v1alpha1.ConditionHeld, v1alpha1.ConditionSuspended} {
		if condition := apimeta.FindStatusCondition(conditions, mark); condition != nil && condition.Status == metav1.ConditionTrue {
			reason += ", " + mark
			if condition.Reason != mark {
				reason += " " + condition.Reason
			}
		}
	}

	return found.Status, reason, stalled
}
