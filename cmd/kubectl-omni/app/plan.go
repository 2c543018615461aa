package app

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/printers"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/generated/clientset/versioned"
	"omni.texashpc.com/omni-cluster-operator/pkg/rollout"
)

func (t *tool) planCommand() *cobra.Command {
	var (
		format *string
		files  []string
	)

	command := &cobra.Command{
		Use:   planName + " CLUSTER | plan -f FILE",
		Short: "Show what would change in Omni, and what each change waits for",
		Long: `plan shows the changes that the controller has planned for a cluster and not made yet. As with kubectl diff the status
is 1 if there are any, and 2 after an error, so that a script can ask. It is an error, too, if the controller has no plan of the
cluster and its documents as they are now: the message says why.

With -f it sends files to the API server as a dry run instead, and shows in which fields their objects differ from those that are
there: not what Omni would do. Rules of the API are checked, and nothing is changed; it needs the right to write the objects.`,
		Example: `  # What is left to do for edge-01
  kubectl omni plan edge-01 -n fleet

  # The same for a program: what status.plan of the OmniCluster has
  kubectl omni plan edge-01 -n fleet -o yaml

  # In which fields the objects of a folder differ from those that are there
  kubectl omni plan -f fleet/clusters

  # The same for a folder with a kustomization.yaml
  kubectl kustomize fleet/clusters | kubectl omni plan -f -`,
		GroupID: groupLook,
		Args: func(command *cobra.Command, args []string) error {
			return cobra.ExactArgs(1-min(len(files), 1))(command, args)
		},
		ValidArgsFunction: t.completeClusters,
		RunE: func(command *cobra.Command, args []string) error {
			if len(files) > 0 {
				return t.planFiles(command.Context(), files, *format)
			}

			return t.planCluster(command.Context(), args[0], *format)
		},
	}
	format = addFormat(command.Flags())
	command.Flags().StringSliceVarP(&files, "filename", "f", nil, "Files or folders with objects, instead of a cluster.")

	return command
}

// planCluster shows what is left to do for a cluster; errChanges says that there is something.
func (t *tool) planCluster(ctx context.Context, name, format string) error {
	client, namespace, err := t.api()
	if err != nil {
		return err
	}

	cluster, err := client.OmniV1alpha1().OmniClusters(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}

	plan, err := currentPlan(cluster)
	if err == nil && len(plan.Changes) == 0 {
		err = countsDocuments(ctx, client, cluster)
	}

	if err != nil {
		return err
	}

	done, err := t.encode(format, plan)
	if !done {
		err = t.showPlan(ctx, cluster)
	}

	if err == nil && len(plan.Changes) > 0 {
		return errChanges
	}

	return err
}

// currentPlan is the plan of an object as it is now, never nil. An error says why there is none: what the status has then is
// of an earlier run.
func currentPlan(cluster *v1alpha1.OmniCluster) (*v1alpha1.OmniClusterPlan, error) {
	status := &cluster.Status
	planned := apimeta.FindStatusCondition(status.Conditions, v1alpha1.ConditionPlanned)

	switch {
	case status.ObservedGeneration != cluster.Generation:
		return nil, notSeen(fmt.Sprintf("generation %d of cluster %s", cluster.Generation, cluster.Name))
	case planned == nil || planned.Status != metav1.ConditionTrue || planned.ObservedGeneration != cluster.Generation:
		return nil, fmt.Errorf("cluster %s has no current plan, so what is left to do is not known: %s", cluster.Name, whyUnplanned(cluster))
	case status.Plan == nil:
		return &v1alpha1.OmniClusterPlan{}, nil
	default:
		return status.Plan, nil
	}
}

// notSeen says that a plan is of the time before something changed.
func notSeen(what string) error {
	return fmt.Errorf("the controller has not looked at %s yet, so what is left to do is not known: "+
		"try again in a moment, and if that lasts look whether omni-controller runs", what)
}

// countsDocuments fails unless an empty plan was made of the documents of a cluster as they are now: its status has, of each
// document that counts, the generation of which nothing is left to do.
func countsDocuments(ctx context.Context, client versioned.Interface, cluster *v1alpha1.OmniCluster) error {
	api, options := client.OmniV1alpha1(), metav1.ListOptions{FieldSelector: "spec.clusterRef.name=" + cluster.Name}
	status := &cluster.Status

	var controlPlane []v1alpha1.AppliedReference
	if status.ControlPlaneRef != nil {
		controlPlane = append(controlPlane, *status.ControlPlaneRef)
	}

	for _, kind := range []struct {
		name string
		list func(context.Context, metav1.ListOptions) (runtime.Object, error)
		refs []v1alpha1.AppliedReference
	}{
		{"OmniControlPlane", untyped(api.OmniControlPlanes(cluster.Namespace).List), controlPlane},
		{"OmniWorkers", untyped(api.OmniWorkers(cluster.Namespace).List), status.WorkersRefs},
		{"OmniMachine", untyped(api.OmniMachines(cluster.Namespace).List), status.MachineRefs},
	} {
		list, err := kind.list(ctx, options)
		if err != nil {
			return fmt.Errorf("whether an %s has changed since, and so what is left to do, is not known: %s", kind.name, problemOf(err))
		}

		if unseen := unseenOf(kind.name, membersOf(kind.name, cluster.Name, list, nil), kind.refs); unseen != "" {
			return notSeen(unseen)
		}
	}

	return nil
}

func untyped[L runtime.Object](list func(context.Context, metav1.ListOptions) (L, error)) func(context.Context, metav1.ListOptions) (runtime.Object, error) {
	return func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		return list(ctx, options)
	}
}

// unseenOf names the change of a document that the references of a cluster's status do not know; empty if there is none.
func unseenOf(kind string, documents []member, refs []v1alpha1.AppliedReference) string {
	counted := map[string]v1alpha1.AppliedReference{}
	for _, ref := range refs {
		counted[ref.UID] = ref
	}

	for _, document := range documents {
		o := document.object
		if !o.GetDeletionTimestamp().IsZero() {
			continue // it counts no more
		}

		ref, counts := counted[string(o.GetUID())]
		if counts && ref.Generation != o.GetGeneration() || !counts && !isLeftOut(o) {
			return fmt.Sprintf("generation %d of %s %s", o.GetGeneration(), kind, document.name)
		}

		delete(counted, ref.UID)
	}

	for _, ref := range refs {
		if _, gone := counted[ref.UID]; gone {
			return fmt.Sprintf("the deletion of %s %s", kind, ref.Name)
		}
	}

	return ""
}

// isLeftOut reports whether a document, as it is now, does not count for its cluster, such as a machine that no set lists.
func isLeftOut(document object) bool {
	accepted := apimeta.FindStatusCondition(document.GetReconcileStatus().Conditions, v1alpha1.ConditionAccepted)

	return accepted != nil && accepted.Status == metav1.ConditionFalse && accepted.ObservedGeneration == document.GetGeneration()
}

// whyUnplanned says what keeps the controller from making a plan: the step that failed. Ready says the same, but not while
// the object is suspended, and more while it is being deleted.
func whyUnplanned(cluster *v1alpha1.OmniCluster) string {
	conditions := cluster.Status.Conditions

	for _, name := range []string{v1alpha1.ConditionConnectionReady, v1alpha1.ConditionAssembled, v1alpha1.ConditionValidated, v1alpha1.ConditionPlanned} {
		if apimeta.IsStatusConditionFalse(conditions, name) {
			return explained(apimeta.FindStatusCondition(conditions, name))
		}
	}

	if ready := apimeta.FindStatusCondition(conditions, v1alpha1.ConditionReady); ready != nil {
		return explained(ready)
	}

	return "the controller has not looked at it yet"
}

func explained(condition *metav1.Condition) string {
	if condition.Message == "" {
		return condition.Reason
	}

	return fmt.Sprintf("%s (%s)", condition.Message, condition.Reason)
}

// showPlan shows the plan that a status has.
func (t *tool) showPlan(ctx context.Context, cluster *v1alpha1.OmniCluster) error {
	plan := cluster.Status.Plan
	if plan == nil || len(plan.Changes) == 0 {
		_, err := fmt.Fprintln(t.Out, "Nothing is left to do.")

		return err
	}

	if err := changesOf(plan.Changes, t.colour).write(t.Out); err != nil {
		return err
	}

	var text strings.Builder

	if plan.OmittedChanges > 0 {
		fmt.Fprintf(&text, "... and %d more\n", plan.OmittedChanges)
	}

	text.WriteString(stopOf(cluster))

	if needsApproval(plan) {
		fmt.Fprintf(&text, "\nWaits for an approval: kubectl omni approve %s -n %s\n", cluster.Name, cluster.Namespace)
	}

	if rollout := cluster.Status.Rollout; plan.Held > 0 && rollout != nil {
		fmt.Fprintf(&text, "\nWaits for its turn (%s, hash %s): %s\n", rollout.Reason, rollout.Hash, messageOf(cluster, v1alpha1.ConditionHeld))
	}

	if missing := t.missingPolicy(ctx, cluster); missing != "" {
		text.WriteString("\n" + missing + "\n")
	}

	if plan.Diff != "" {
		text.WriteString("\n" + plan.Diff)
	}

	_, err := io.WriteString(t.Out, printers.EscapeTerminal(text.String()))

	return err
}

// stopOf says what keeps the object from changing anything; empty if nothing does.
func stopOf(cluster *v1alpha1.OmniCluster) string {
	switch {
	case cluster.Spec.Suspend:
		return fmt.Sprintf("\nSuspended, so nothing is changed: kubectl omni resume %s -n %s\n", cluster.Name, cluster.Namespace)
	case cluster.Spec.ChangePolicy == v1alpha1.ChangePolicyObserve:
		return "\nspec.changePolicy is Observe, so nothing is changed.\n"
	default:
		return ""
	}
}

// missingPolicy says that no OmniRolloutPolicy selects a cluster, so that its changes wait for no turn, or that the user may
// not know; empty if one does. A server that is older than the kind has none, and nobody expects one there.
func (t *tool) missingPolicy(ctx context.Context, cluster *v1alpha1.OmniCluster) string {
	if held := cluster.Status.Rollout; held != nil && held.Reason == v1alpha1.ReasonLeftPolicy {
		return "" // the policy that it has left still holds its changes
	}

	client, _, err := t.api()
	if err != nil {
		return ""
	}

	policies, err := client.OmniV1alpha1().OmniRolloutPolicies(cluster.Namespace).List(ctx, metav1.ListOptions{})

	switch {
	case isUnknownKind(err):
		return ""
	case err != nil:
		return "Whether an OmniRolloutPolicy selects this cluster is not known: " + problemOf(err)
	}

	for i := range policies.Items {
		if policy, _ := rollout.New(&policies.Items[i]); policy.MaySelect(cluster) {
			return ""
		}
	}

	return "No OmniRolloutPolicy selects this cluster."
}

func needsApproval(plan *v1alpha1.OmniClusterPlan) bool {
	for _, change := range plan.Changes {
		if change.NeedsApproval {
			return true
		}
	}

	return false
}

// changesOf lists changes with what each waits for.
func changesOf(changes []v1alpha1.PlannedChange, colour bool) *table {
	drawn := &table{colour: colour}
	drawn.add(plain, "ACTION", "TYPE", "ID", "DESTROYS", "WAITS FOR", "KIND")

	for _, change := range changes {
		var waits []string

		if change.NeedsApproval {
			waits = append(waits, "approval")
		}

		if change.Held {
			waits = append(waits, "turn")
		}

		tone, destroys := plain, ""
		if change.Destructive {
			tone, destroys = red, "yes"
		}

		kind, _, _ := strings.Cut(change.Type, ".")
		drawn.add(tone, string(change.Action), kind, change.ID, destroys, strings.Join(waits, ", "), string(change.Kind))
	}

	return drawn
}
