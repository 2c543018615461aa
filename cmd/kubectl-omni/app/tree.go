package app

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/generated/clientset/versioned"
)

// object is what all kinds have.
type object interface {
	runtime.Object
	metav1.Object
	v1alpha1.Reconcilable
}

// member is an object that belongs to a cluster. One that cannot be read has a problem instead of an object.
type member struct {
	kind, name string
	object     object
	problem    string
	children   []member
}

// familyOf reads an OmniCluster, and all that it names or that names it. An error means that there is no such cluster to show;
// what else cannot be read is a member with a problem.
func familyOf(ctx context.Context, client versioned.Interface, namespace, name string) (member, error) {
	api := client.OmniV1alpha1()

	cluster, err := api.OmniClusters(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return member{}, err
	}

	root := member{kind: "OmniCluster", name: name, object: cluster}
	add := func(found ...member) { root.children = append(root.children, found...) }

	connection, err := api.OmniConnections(namespace).Get(ctx, cluster.Spec.ConnectionRef.Name, metav1.GetOptions{})
	add(memberOf("OmniConnection", cluster.Spec.ConnectionRef.Name, connection, err))

	options := metav1.ListOptions{FieldSelector: "spec.clusterRef.name=" + name}
	list := func(kind string, items runtime.Object, err error) []member { return membersOf(kind, name, items, err) }

	controlPlanes, err := api.OmniControlPlanes(namespace).List(ctx, options)
	sets := list("OmniControlPlane", controlPlanes, err)
	workers, err := api.OmniWorkers(namespace).List(ctx, options)
	sets = append(sets, list("OmniWorkers", workers, err)...)
	machines, err := api.OmniMachines(namespace).List(ctx, options)
	add(inSets(sets, list("OmniMachine", machines, err))...)

	exports, err := api.OmniKubeconfigExports(namespace).List(ctx, options)
	add(list("OmniKubeconfigExport", exports, err)...)
	syncs, err := api.OmniSecretSyncs(namespace).List(ctx, options)
	add(list("OmniSecretSync", syncs, err)...)
	releases, err := api.OmniHelmReleases(namespace).List(ctx, options)
	add(list("OmniHelmRelease", releases, err)...)

	if rollout := cluster.Status.Rollout; rollout != nil && rollout.Policy != "" {
		policy, err := api.OmniRolloutPolicies(namespace).Get(ctx, rollout.Policy, metav1.GetOptions{})
		add(memberOf("OmniRolloutPolicy", rollout.Policy, policy, err))
	}

	return root, nil
}

// memberOf is one object that was asked for by name.
func memberOf(kind, name string, found object, err error) member {
	if err != nil {
		return member{kind: kind, name: name, problem: problemOf(err)}
	}

	return member{kind: kind, name: name, object: found}
}

// membersOf are the objects of a list that name the cluster, by name. The server has selected them; an older one may have
// sent others, too.
func membersOf(kind, cluster string, list runtime.Object, err error) []member {
	if err != nil {
		return []member{{kind: kind, problem: problemOf(err)}}
	}

	var found []member

	_ = apimeta.EachListItem(list, func(item runtime.Object) error {
		if one, ours := item.(object); ours && v1alpha1.ClusterRefOf(one) == cluster {
			found = append(found, member{kind: kind, name: one.GetName(), object: one})
		}

		return nil
	})

	slices.SortFunc(found, func(a, b member) int { return strings.Compare(a.name, b.name) })

	return found
}

// inSets puts the machines below the sets that list them; the others stay beside the sets.
func inSets(sets, machines []member) []member {
	for _, machine := range machines {
		o, known := machine.object.(*v1alpha1.OmniMachine)
		if !known {
			sets = append(sets, machine)

			continue
		}

		i := slices.IndexFunc(sets, func(set member) bool { return slices.Contains(machinesOf(set.object), o.EffectiveMachineID()) })
		if i < 0 {
			sets = append(sets, machine)
		} else {
			sets[i].children = append(sets[i].children, machine)
		}
	}

	return sets
}

func machinesOf(set object) []string {
	switch o := set.(type) {
	case *v1alpha1.OmniControlPlane:
		return o.Spec.MachineIDs()
	case *v1alpha1.OmniWorkers:
		return o.Spec.MachineIDs()
	default:
		return nil
	}
}

// problemOf says in a word why something could not be read.
func problemOf(err error) string {
	switch {
	case isUnknownKind(err):
		return "UnknownKind"
	case apierrors.IsNotFound(err):
		return "NotFound"
	case apierrors.IsForbidden(err):
		return "Forbidden"
	default:
		return fmt.Sprintf("%v", err)
	}
}

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
