package migrate

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

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
