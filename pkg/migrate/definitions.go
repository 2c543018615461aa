package migrate

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// ErrNotInstalled says that the next step is the user's: the API of this operator is not registered yet.
var ErrNotInstalled = errors.New("the old operator's definitions are gone, and this operator is not installed yet")

// deleteDefinitions deletes the definitions, and their objects with them: no finalizer holds an object any more, and
// no operator acts on its deletion.
func (m *Migration) deleteDefinitions(ctx context.Context) error {
	for {
		s, err := m.readState(ctx)
		if err != nil {
			return err
		}

		next, err := m.nextDefinition(s)
		if err != nil {
			return err
		}

		if next == nil {
			return m.waitUntilGone(ctx)
		}

		// This is checked before each deletion: somebody may start the old operator at any moment.
		running, err := m.running(ctx)
		if err != nil {
			return err
		}

		if running != "" {
			return fmt.Errorf("the old operator runs again: %s. Stop what starts it, and run this again", running)
		}

		m.say("      %s", idOf(next))

		if err := m.hub.remove(ctx, definitionsResource, next); err != nil {
			return err
		}
	}
}

// nextDefinition returns a definition that is not being deleted; nil if there is none. It fails if an operator could
// act on the deletion, or the deletion would remove something that the backup does not have.
func (m *Migration) nextDefinition(s *state) (*unstructured.Unstructured, error) {
	for i := range s.Objects {
		obj := &s.Objects[i]
		if obj.GetDeletionTimestamp() != nil {
			continue // its definition is going
		}

		if err := m.isSavedAsItIs(obj); err != nil {
			return nil, err
		}

		if len(obj.GetFinalizers()) > 0 || !isHarmless(obj) {
			return nil, fmt.Errorf("%s is held again, or would be destroyed (finalizers %s): somebody wrote it since. Stop that, and run this again",
				idOf(obj), strings.Join(obj.GetFinalizers(), ", "))
		}
	}

	for i := range s.Definitions {
		if s.Definitions[i].GetDeletionTimestamp() == nil {
			return &s.Definitions[i], nil
		}
	}

	return nil, nil //nolint:nilnil // there is none
}

// isSavedAsItIs fails for an object that the backup does not have, or has with another content: its definition takes it
// along, so what a user wrote last has to be in the backup by then.
func (m *Migration) isSavedAsItIs(obj *unstructured.Unstructured) error {
	if err := m.isSaved(obj); err != nil {
		return err
	}

	saved := sameName(m.backup.Objects, obj)
	if later := laterObject(saved, obj); !equality.Semantic.DeepEqual(byUsers(saved), byUsers(&later)) {
		return fmt.Errorf("%s was written after the backup: run this again", idOf(obj))
	}

	return nil
}

// byUsers returns what users write of an object.
func byUsers(obj *unstructured.Unstructured) map[string]any {
	content := obj.DeepCopy()
	content.SetResourceVersion("")
	content.SetGeneration(0)
	content.SetManagedFields(nil)
	delete(content.Object, "status")

	return content.Object
}

// waitUntilGone waits until kube-apiserver has removed the definitions and its own APIService of the group: while
// that one exists, kube-apiserver would overwrite the APIService that is installed in its place.
func (m *Migration) waitUntilGone(ctx context.Context) error {
	return m.wait(ctx, "the definitions to go", func(ctx context.Context) (string, error) {
		s, err := m.readState(ctx)
		if err != nil {
			return "", err
		}

		if len(s.Definitions) > 0 {
			return stillThere(s), nil
		}

		if s.Registration != nil && !s.registered() {
			return "kube-apiserver's own APIService " + registration + " is there", nil
		}

		return "", nil
	})
}

func stillThere(s *state) string {
	for i := range s.Objects {
		if held := s.Objects[i].GetFinalizers(); len(held) > 0 {
			return fmt.Sprintf("%s has the finalizer %s. Do not start the old operator to help; run this again", idOf(&s.Objects[i]), strings.Join(held, ", "))
		}
	}

	return idOf(&s.Definitions[0]) + " is there"
}

// waitForAPI waits until the user has installed the API.
func (m *Migration) waitForAPI(ctx context.Context) error {
	return m.wait(ctx, "APIService "+registration, func(ctx context.Context) (string, error) {
		s := &state{}

		if err := m.hub.lookDefinitions(ctx, s); err != nil {
			return "", err
		}

		if len(s.Definitions) > 0 {
			return "", fmt.Errorf("%s was made again: suspend what makes it, and run this again", idOf(&s.Definitions[0]))
		}

		var err error
		if s.Registration, err = m.hub.get(ctx, apiServicesResource, "", registration); err != nil {
			return "", err
		}

		if !s.registered() {
			return "", m.notInstalled(ctx)
		}

		if message, available := isAvailable(s.Registration); !available {
			return message, nil
		}

		// The condition Available is what the aggregator saw a moment ago; only an answer of the API counts.
		return m.hub.served(ctx), nil
	})
}

// notInstalled says what the user does next.
func (m *Migration) notInstalled(ctx context.Context) error {
	uninstall := "helm uninstall of its releases; keep the namespace of the key's Secret"

	warnings, err := m.hub.namespaceWarnings(ctx, m.backup.Deployments)
	if err != nil {
		return err
	}

	if len(warnings) > 0 {
		uninstall = strings.Join(warnings, ". ")
	}

	return fmt.Errorf("%w. Uninstall what is left of the old one (%s), "+
		"install this one (docs/how-to/install.md), and run this again:\n  helm install omni-cluster-operator artifacts/chart/omni-cluster-operator --namespace omni-cluster-operator-system\n"+
		"  kubectl wait apiservice %s --for=condition=Available --timeout=5m", ErrNotInstalled, uninstall, registration)
}

// served says why our API does not answer; empty if it does.
func (h *hub) served(ctx context.Context) string {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()

	resource := v1alpha1.SchemeGroupVersion.WithResource("omniconnections")
	if _, err := h.objects.Resource(resource).List(ctx, metav1.ListOptions{Limit: 1}); err != nil {
		return err.Error()
	}

	return ""
}

// isAvailable returns the condition Available of an APIService.
func isAvailable(registration *unstructured.Unstructured) (message string, available bool) {
	conditions, _, _ := unstructured.NestedSlice(registration.Object, "status", "conditions")
	for _, condition := range conditions {
		fields, _ := condition.(map[string]any)
		if fields["type"] == "Available" {
			return fmt.Sprintf("it is not Available: %v: %v", fields["reason"], fields["message"]), fields["status"] == "True"
		}
	}

	return "it is not Available yet", false
}
