package migrate

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// verdict is what verify knows of an object.
type verdict struct {
	over    bool
	outcome Outcome
	text    string // why, or what it waits for
	again   bool   // what this command gave the object for the takeover is taken away by another run
}

func waits(format string, args ...any) verdict {
	return verdict{text: fmt.Sprintf(format, args...), outcome: Waiting}
}

// verification is what the clusters of one run have in common.
type verification struct {
	*Migration

	all   []*Converted
	token string // of the requests for plans
}

// verify waits for each cluster's plan, and takes over the clusters whose plan is empty. The others stay observed.
// Then it waits for the objects that depend on the clusters.
func (m *Migration) verify(ctx context.Context) error {
	all := m.converted()
	v := &verification{Migration: m, all: all, token: "migrate-" + m.now().UTC().Format("20060102T150405.000")}

	if err := m.settle(ctx, only(all, func(c *Converted) bool { return c.Kind == "OmniCluster" }), v.verifyCluster); err != nil {
		return err
	}

	if err := m.settle(ctx, only(all, func(c *Converted) bool { return c.Kind != "OmniCluster" }), m.verifyOther); err != nil {
		return err
	}

	for _, c := range all {
		if err := m.letGo(ctx, c); err != nil {
			return err
		}
	}

	return errors.Join(m.notMade, m.report.problem())
}

func only(all []*Converted, want func(*Converted) bool) []*Converted {
	var some []*Converted

	for _, c := range all {
		if want(c) {
			some = append(some, c)
		}
	}

	return some
}

// settle repeats the checks until every object has a verdict, or the time is over.
func (m *Migration) settle(ctx context.Context, objects []*Converted, ask func(context.Context, *Converted) (verdict, error)) error {
	found := map[string]verdict{}

	err := m.wait(ctx, "the objects to be looked at", func(ctx context.Context) (string, error) {
		missing := ""

		for _, c := range objects {
			if found[c.ID()].over {
				continue
			}

			v, err := ask(ctx, c)
			if err != nil {
				v = waits("%v", err)
			}

			if found[c.ID()] = v; !v.over && missing == "" {
				missing = c.ID() + ": " + v.text
			}
		}

		return missing, nil
	})

	for _, c := range objects {
		m.report.add(c, found[c.ID()])
	}

	if ctx.Err() != nil {
		return err // stopped, and not only late: what is late is in the report
	}

	return nil
}

// verifyCluster takes one cluster to its next step.
func (v *verification) verifyCluster(ctx context.Context, c *Converted) (verdict, error) {
	obj, err := v.live(ctx, c)
	if err != nil {
		return verdict{}, err
	}

	if obj == nil {
		return verdict{over: true, outcome: Missing, text: v.whyMissing(c) + "; the cluster in Omni is left alone"}, nil
	}

	live, err := typed[v1alpha1.OmniCluster](obj)
	if err != nil {
		return verdict{}, err
	}

	switch {
	case live.Spec.ChangePolicy != v1alpha1.ChangePolicyObserve:
		return ofTakeover(live), nil
	case !onlyWeWrote(obj, "spec", "changePolicy"):
		return verdict{over: true, outcome: Observed, text: "spec.changePolicy: Observe was set by " + othersThanUs(obj, "spec", "changePolicy") + ", and stays"}, nil
	case c.Object == nil:
		return verdict{over: true, outcome: Observed, text: fmt.Sprintf("this version cannot convert the saved object (%v): its policies are yours to write", c.Refusals)}, nil
	}

	if unmade, err := v.unmadeDocument(ctx, c); unmade != "" || err != nil {
		return verdict{over: true, outcome: Waiting, text: unmade + " was not imported, and the plan is made without it: make it, and run this again"}, err
	}

	return v.verifyPlan(ctx, c, obj, live)
}

// verifyPlan waits for a plan that includes all documents of the cluster, and takes the cluster over if the plan is
// empty.
func (v *verification) verifyPlan(ctx context.Context, c *Converted, obj *unstructured.Unstructured, live *v1alpha1.OmniCluster) (verdict, error) {
	if unseen, err := v.unseenDocument(ctx, c); unseen != "" || err != nil {
		return waits("%s has not been looked at yet: is its namespace served?", unseen), err
	}

	if live.Annotations[v1alpha1.AnnotationReconcileRequestedAt] != v.token {
		body := map[string]any{"metadata": map[string]any{"annotations": map[string]any{v1alpha1.AnnotationReconcileRequestedAt: v.token}}}

		return waits("its plan is asked for"), v.patchOurs(ctx, c, body)
	}

	planned := apimeta.FindStatusCondition(live.Status.Conditions, v1alpha1.ConditionPlanned)

	switch {
	case live.Status.LastHandledReconcileAt != v.token:
		return waits("no controller has looked at it yet: is its namespace served?"), nil
	case planned == nil || planned.Status != metav1.ConditionTrue || planned.ObservedGeneration != live.Generation:
		return waits("%s", whyNot(live.Status.Conditions, planned)), nil
	case !planIsEmpty(live.Status.Plan):
		return verdict{over: true, outcome: Observed, text: planText(live.Status.Plan)}, nil
	}

	return waits("its plan is empty; it is taken over"), v.takeOver(ctx, c, obj)
}

// whyNot says why there is no plan: the message of Planned if it is False, else that of Ready.
func whyNot(conditions []metav1.Condition, planned *metav1.Condition) string {
	if planned != nil && planned.Status == metav1.ConditionFalse {
		return planned.Reason + ": " + planned.Message
	}

	if ready := apimeta.FindStatusCondition(conditions, v1alpha1.ConditionReady); ready != nil {
		return ready.Reason + ": " + ready.Message
	}

	return "it has no plan yet"
}

// takeOver sets the policies of the old object: from here on the controller applies what the documents say.
func (m *Migration) takeOver(ctx context.Context, c *Converted, obj *unstructured.Unstructured) error {
	wanted, ok := c.Object.(*v1alpha1.OmniCluster)
	if !ok {
		return fmt.Errorf("%s is no OmniCluster", c.ID())
	}

	return m.patchOurs(ctx, c, map[string]any{
		"metadata": map[string]any{
			"resourceVersion": obj.GetResourceVersion(), // of the plan that was judged
			"annotations":     map[string]any{v1alpha1.AnnotationReconcileRequestedAt: nil},
		},
		"spec": map[string]any{"changePolicy": v1alpha1.ChangePolicyApply, "deletePolicy": map[string]any{
			"orphan": wanted.Spec.DeletePolicy.Orphan, "destroyMachines": wanted.Spec.DeletePolicy.DestroyMachines,
		}},
	})
}

// ofTakeover is the verdict on a cluster that is being taken over: it waits until the cluster has our mark.
func ofTakeover(live *v1alpha1.OmniCluster) verdict {
	synced := apimeta.FindStatusCondition(live.Status.Conditions, v1alpha1.ConditionSynced)
	done := synced != nil && synced.Status == metav1.ConditionTrue && synced.ObservedGeneration == live.Generation

	switch {
	case live.Spec.Suspend:
		return verdict{over: true, outcome: Suspended, text: "spec.suspend is set: it is taken over when you resume it"}
	case !done || live.Status.Adopting:
		return waits("%s", whyNot(live.Status.Conditions, synced))
	case live.Spec.DeletePolicy.Orphan:
		return verdict{over: true, outcome: TakenOver, text: "taken over, and without changes. Its deletion lets the cluster go (deletePolicy.orphan)"}
	}

	return verdict{over: true, outcome: TakenOver, text: "taken over, and without changes"}
}

// verifyOther waits for the objects that were Ready before.
func (m *Migration) verifyOther(ctx context.Context, c *Converted) (verdict, error) {
	obj, err := m.live(ctx, c)
	if err != nil {
		return verdict{}, err
	}

	if obj == nil {
		return verdict{over: true, outcome: Missing, text: m.whyMissing(c)}, nil
	}

	status, message := readyOf(obj)

	switch {
	case status == string(metav1.ConditionTrue):
		return verdict{over: true, outcome: Ready, text: "Ready"}, m.endPermission(ctx, c, obj)
	case strings.HasPrefix(message, v1alpha1.ReasonClusterSuspended+":"):
		return verdict{over: true, outcome: Suspended, text: "its cluster is suspended: Helm upgrades it once when you resume that" + whilePermitted(c, obj)}, nil
	case !m.wasReady(c):
		return verdict{over: true, again: permits(c, obj), outcome: NotReady, text: "not Ready, nor was it before: " + message + whilePermitted(c, obj)}, nil
	default:
		return waits("%s", message), nil
	}
}

// letGo gives up this command's ownership of the fields of a finished object. Otherwise a field that Git later
// removes from a manifest would stay in the object. One that is not Ready and has its permission is not finished: the next
// run has to see whose that is.
func (m *Migration) letGo(ctx context.Context, c *Converted) error {
	obj, err := m.live(ctx, c)
	if err != nil || obj == nil || !lastWriters(obj)[fieldManager] || m.report.outcomeOf(c) == Observed || m.report.outcomeOf(c) == Waiting {
		return err
	}

	if m.report.outcomeOf(c) == NotReady && permits(c, obj) {
		return nil
	}

	kept := withoutUs(obj)
	if len(kept) == 0 {
		kept = append(kept, metav1.ManagedFieldsEntry{}) // an empty list would mean: as before
	}

	return m.patchOurs(ctx, c, map[string]any{"metadata": map[string]any{"resourceVersion": obj.GetResourceVersion(), "managedFields": kept}})
}

// readyOf returns the condition Ready of an object if it is about the newest generation.
func readyOf(obj *unstructured.Unstructured) (status, message string) {
	ready := conditionReady(obj)
	if seen, _ := ready["observedGeneration"].(int64); ready == nil || seen != 0 && seen != obj.GetGeneration() {
		return "", "no controller has looked at it yet: is its namespace served?"
	}

	return fmt.Sprint(ready["status"]), strings.TrimSpace(fmt.Sprintf("%v: %v", ready["reason"], ready["message"]))
}

// conditionReady returns the condition Ready of an object, whatever generation it is about; nil if there is none.
func conditionReady(obj *unstructured.Unstructured) map[string]any {
	conditions, _, _ := unstructured.NestedSlice(obj.Object, "status", "conditions")
	for _, condition := range conditions {
		if fields, _ := condition.(map[string]any); fields["type"] == "Ready" {
			return fields
		}
	}

	return nil
}

// wasReady reports whether the object was Ready according to the old operator. When this command has made it let go, that was
// for the generation before.
func (m *Migration) wasReady(c *Converted) bool {
	old := m.saved(c)
	if old == nil {
		return false
	}

	ready := conditionReady(old)

	return ready != nil && ready["status"] == string(metav1.ConditionTrue)
}

// clusterType is the type of the only resource in Omni with the ownership mark.
const clusterType = "Clusters.omni.sidero.dev"

// planIsEmpty reports whether a plan changes nothing but the ownership mark of a cluster that is taken over.
func planIsEmpty(plan *v1alpha1.OmniClusterPlan) bool {
	if plan == nil {
		return true
	}

	if plan.Creates > 0 || plan.Destroys > 0 || plan.OmittedChanges > 0 || plan.Destructive > 0 || plan.Updates > 1 {
		return false
	}

	if plan.Updates == 0 {
		return len(plan.Changes) == 0
	}

	return len(plan.Changes) == 1 && plan.Changes[0].Type == clusterType && plan.Changes[0].Action == v1alpha1.ActionUpdate && onlyMarks(plan.Diff)
}

// onlyMarks reports whether the diff of a Cluster adds our annotations and changes nothing else. The diff has one
// line for each line of YAML; its first line names the resource.
func onlyMarks(diff string) bool {
	marks := 0

	for line := range strings.Lines(diff) {
		text := strings.TrimSpace(strings.TrimPrefix(line, "+"))

		switch {
		case strings.HasPrefix(line, "-"), strings.HasPrefix(line, "~"), strings.HasPrefix(line, "..."):
			return false
		case !strings.HasPrefix(line, "+"):
		case strings.HasPrefix(text, v1alpha1.GroupName+"/"):
			marks++
		case text != "annotations:":
			return false
		}
	}

	return marks > 0
}

// planText formats a plan that is not empty for people.
func planText(plan *v1alpha1.OmniClusterPlan) string {
	var text strings.Builder

	fmt.Fprintf(&text, "%d to create, %d to update, %d to destroy (%d of them take machines or objects away)\n",
		plan.Creates, plan.Updates, plan.Destroys, plan.Destructive)
	text.WriteString(strings.TrimRight(plan.Diff, "\n"))

	return text.String()
}

// permits reports whether an object still has the permission of the takeover that this command gave it.
func permits(c *Converted, obj *unstructured.Unstructured) bool {
	if c.Permission == "" {
		return false
	}

	set, _, _ := unstructured.NestedBool(obj.Object, "spec", c.Permission)

	return set && weOwn(obj, "spec", c.Permission)
}

// endPermission takes the permission away from an object that is Ready, which means that it has taken over what it
// names. With the permission, its next change could write over what somebody else made, and its deletion would delete
// that. A permission that others have written, too, is theirs and stays.
func (m *Migration) endPermission(ctx context.Context, c *Converted, obj *unstructured.Unstructured) error {
	if !permits(c, obj) {
		return nil
	}

	writers := lastWriters(obj, "spec", c.Permission)
	delete(writers, fieldManager)

	if len(writers) > 0 {
		m.say("      %s: spec.%s stays true, because %s wrote it, too. It is not needed any more: take it out there",
			c.ID(), c.Permission, strings.Join(slices.Sorted(maps.Keys(writers)), ", "))

		return nil
	}

	return m.patchOurs(ctx, c, map[string]any{
		"metadata": map[string]any{"resourceVersion": obj.GetResourceVersion()}, // of the object that is Ready
		"spec":     map[string]any{c.Permission: false},
	})
}

// whilePermitted says what has to be done about the permission of an object that is not Ready; empty if it has none.
func whilePermitted(c *Converted, obj *unstructured.Unstructured) string {
	if !permits(c, obj) {
		return ""
	}

	return fmt.Sprintf("\nspec.%s stays true until it is Ready: run this again then, or set it to false", c.Permission)
}
