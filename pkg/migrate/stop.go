package migrate

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// splitName splits namespace/name.
func splitName(text string) (namespace, name string, err error) {
	namespace, name, found := strings.Cut(text, "/")
	if !found || namespace == "" || name == "" {
		return "", "", fmt.Errorf("--deployment: %q is not NAMESPACE/NAME", text)
	}

	return namespace, name, nil
}

// readState reads the state of the hub, with the Deployments that the options name.
func (m *Migration) readState(ctx context.Context) (*state, error) {
	s, err := m.hub.readState(ctx)
	if err != nil {
		return nil, err
	}

	for _, text := range m.options.Deployments {
		namespace, name, err := splitName(text)
		if err != nil {
			return nil, err
		}

		found, err := m.hub.get(ctx, deploymentsResource, namespace, name)
		if err != nil {
			return nil, err
		}

		if found != nil && sameName(s.Deployments, found) == nil {
			s.Deployments = append(s.Deployments, *found)
		}
	}

	s.Namespaces, err = m.hub.namespaceWarnings(ctx, s.Deployments)

	return s, err
}

// check refuses a state that cannot be migrated. The first run decides. For a later run, with the old operator
// stopped, it only checks that nobody changed the objects into something that is refused.
func (m *Migration) check(ctx context.Context) error {
	s, err := m.readState(ctx)
	if err != nil {
		return err
	}

	plan := planOf(s, m.backup)

	switch err := plan.Error(); {
	case err == nil:
	case m.backup != nil: // plan knows of no backup, and would refuse what this migration has changed
		return errors.Join(err, plan.refusals())
	default:
		return fmt.Errorf("%w. `migrate plan` says more", err)
	}

	if len(s.Deployments) == 0 && !m.options.WithoutDeployment && (m.backup == nil || len(m.backup.Deployments) == 0) {
		return fmt.Errorf("no Deployment has the labels %s: name that of the old operator (--deployment NAMESPACE/NAME), "+
			"or say that it has none any more (--without-deployment)", operatorSelector)
	}

	return nil
}

// save writes the backup, or adds what users changed since the first run.
func (m *Migration) save(ctx context.Context) error {
	s, err := m.readState(ctx)
	if err != nil {
		return err
	}

	next := backupOf(s, m.now())
	if m.backup != nil {
		next = m.backup.merge(s, m.now())

		for i := range m.backup.Objects {
			if old := &m.backup.Objects[i]; sameName(next.Objects, old) == nil {
				m.say("      %s was deleted while the old operator ran: it is not moved, and no longer in the backup", idOf(old))
			}
		}
	}

	if err := next.write(ctx, m.options.Backup); err != nil {
		return err
	}

	m.backup = next
	m.say("      %d definitions, %d objects in %s", len(next.Definitions), len(next.Objects), m.options.Backup)

	return nil
}

// stop scales every Deployment of the old operator to zero, and waits until no Pod is left and none returns for a
// moment.
func (m *Migration) stop(ctx context.Context) error {
	if err := m.scaleDown(ctx); err != nil {
		return err
	}

	calm := time.Time{}

	return m.wait(ctx, "the old operator to stop", func(ctx context.Context) (string, error) {
		running, err := m.running(ctx)

		switch {
		case err != nil || running != "":
			calm = time.Time{}

			return running, err
		case calm.IsZero():
			calm = m.now()
		}

		if left := m.options.QuietTime - m.now().Sub(calm); left > 0 {
			return fmt.Sprintf("it has no Pod, and none may come back for %s", m.options.QuietTime), nil
		}

		return "", nil
	})
}

func (m *Migration) scaleDown(ctx context.Context) error {
	s, err := m.readState(ctx)
	if err != nil {
		return err
	}

	for i := range s.Deployments {
		at := &s.Deployments[i]
		if replicas(at) == 0 {
			continue
		}

		m.say("      %s: %d replicas, now 0", idOf(at), replicas(at))

		if err := m.scale(ctx, at, 0); err != nil {
			return err
		}
	}

	return nil
}

// running names the parts of the old operator that run; empty if there are none. For a Deployment that was scaled up
// again it returns an error that names who did it.
func (m *Migration) running(ctx context.Context) (string, error) {
	s, err := m.readState(ctx)
	if err != nil {
		return "", err
	}

	for i := range s.Deployments {
		if replicas(&s.Deployments[i]) > 0 {
			return "", startedAgain(&s.Deployments[i])
		}
	}

	for i := range s.Deployments {
		pods, err := m.podsOf(ctx, &s.Deployments[i])
		if err != nil {
			return "", err
		}

		if len(pods) > 0 {
			return "Pod " + strings.Join(pods, ", ") + " is there", nil
		}
	}

	return "", nil
}

func startedAgain(deployment *unstructured.Unstructured) error {
	text := idOf(deployment) + " has replicas again"
	if by := heldBy(deployment); by != "" {
		text += ": " + by + " keeps it. Suspend that (its suspend, or its automated sync)"
	} else if who := slices.Sorted(maps.Keys(lastWriters(deployment, "spec", "replicas"))); len(who) > 0 {
		text += ", written by " + strings.Join(who, ", ") + ". Stop that"
	}

	return errors.New(text + ", and run this again")
}

// podsOf returns the Pods that a Deployment selects and that have not ended. No ReplicaSet removes a Pod that was evicted.
func (m *Migration) podsOf(ctx context.Context, deployment *unstructured.Unstructured) ([]string, error) {
	raw, _, _ := unstructured.NestedStringMap(deployment.Object, "spec", "selector", "matchLabels")
	if len(raw) == 0 {
		return nil, fmt.Errorf("%s selects its Pods by no label: scale it to 0 yourself, and name another with --deployment", idOf(deployment))
	}

	found, err := m.hub.list(ctx, podsResource, deployment.GetNamespace(), metav1.FormatLabelSelector(&metav1.LabelSelector{MatchLabels: raw}))
	if err != nil {
		return nil, err
	}

	var names []string
	for i := range found {
		switch phase, _, _ := unstructured.NestedString(found[i].Object, "status", "phase"); phase {
		case "Succeeded", "Failed":
		default:
			names = append(names, found[i].GetNamespace()+"/"+found[i].GetName())
		}
	}

	return names, nil
}

// deleteWebhooks deletes the old operator's webhook configurations: without the operator nobody answers them, and
// they fail closed.
func (m *Migration) deleteWebhooks(ctx context.Context) error {
	s, err := m.readState(ctx)
	if err != nil {
		return err
	}

	for i := range s.Webhooks {
		at := &s.Webhooks[i]
		if sameName(m.backup.Webhooks, at) == nil {
			return fmt.Errorf("%s is not in the backup: somebody made it since. Suspend what makes it, delete it, and run this again", idOf(at))
		}

		resource := validatingResource
		if at.GetKind() == "MutatingWebhookConfiguration" {
			resource = mutatingResource
		}

		m.say("      %s", idOf(at))

		if err := m.hub.remove(ctx, resource, at); err != nil {
			return err
		}
	}

	return nil
}

// policyField is the field of the spec that says what a deletion does; empty for a kind without such a field.
func policyField(kind string) string {
	switch kind {
	case "OmniCluster":
		return "deletePolicy"
	case "OmniKubeconfigExport", "OmniSecretSync", "OmniHelmRelease":
		return "deletionPolicy"
	default:
		return ""
	}
}

// harmless is the policy with which the old operator deletes an object and leaves what the object made.
func harmless(kind string) any {
	switch policyField(kind) {
	case "deletePolicy":
		return map[string]any{"orphan": true}
	case "deletionPolicy":
		return "Orphan"
	default:
		return nil
	}
}

// harmlessPath is the path of the one field that harmless sets; nil for a kind without a policy.
func harmlessPath(kind string) []string {
	switch field := policyField(kind); field {
	case "":
		return nil
	case "deletePolicy":
		return []string{"spec", field, "orphan"}
	default:
		return []string{"spec", field}
	}
}

// madeHarmless reports whether this command has set the policy with which an object lets go, and nobody else has since.
// It asks for the one field that it sets: undo writes another part of the same policy.
func madeHarmless(obj *unstructured.Unstructured) bool {
	path := harmlessPath(obj.GetKind())
	if path == nil {
		return false
	}

	value, _, _ := unstructured.NestedFieldNoCopy(obj.Object, path...)

	return (value == true || value == "Orphan") && onlyWeWrote(obj, path...)
}

// isHarmless reports whether deleting an object of the old operator destroys nothing, whichever operator handles it.
func isHarmless(obj *unstructured.Unstructured) bool {
	switch field := policyField(obj.GetKind()); field {
	case "":
		return true
	case "deletePolicy":
		orphan, _, _ := unstructured.NestedBool(obj.Object, "spec", field, "orphan")
		destroy, _, _ := unstructured.NestedBool(obj.Object, "spec", field, "destroyMachines")

		return orphan && !destroy
	default:
		policy, _, _ := unstructured.NestedString(obj.Object, "spec", field)

		return policy == "Orphan"
	}
}

// holds reports whether an object has the old operator's finalizer.
func holds(obj *unstructured.Unstructured) bool {
	for _, finalizer := range obj.GetFinalizers() {
		if finalizer == theirFinalizer {
			return true
		}
	}

	return false
}
