package validation

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// The shared part of the status has the same rules in every kind.
func TestValidateStatusUpdates(t *testing.T) {
	checkStatus(t, validConnection, ValidateStatusUpdate[*v1alpha1.OmniConnection])
	checkStatus(t, validCluster, ValidateOmniClusterStatusUpdate)
	checkStatus(t, validControlPlane, ValidateStatusUpdate[*v1alpha1.OmniControlPlane])
	checkStatus(t, validWorkers, ValidateStatusUpdate[*v1alpha1.OmniWorkers])
	checkStatus(t, validMachine, ValidateStatusUpdate[*v1alpha1.OmniMachine])
	checkStatus(t, validExport, ValidateStatusUpdate[*v1alpha1.OmniKubeconfigExport])
	checkStatus(t, validSync, ValidateStatusUpdate[*v1alpha1.OmniSecretSync])
	checkStatus(t, validRelease, ValidateOmniHelmReleaseStatusUpdate)
}

// withStatus is a pointer to any of our kinds.
type withStatus[T any] interface {
	*T
	metav1.Object
	GetReconcileStatus() *v1alpha1.ReconcileStatus
}

func checkStatus[T any, P withStatus[T]](t *testing.T, valid func() *T, validate func(obj, old *T) field.ErrorList) {
	t.Helper()

	set := func(change func(*v1alpha1.ReconcileStatus)) func(*T) {
		return func(obj *T) { change(P(obj).GetReconcileStatus()) }
	}
	conditions := func(list ...metav1.Condition) func(*T) {
		return set(func(s *v1alpha1.ReconcileStatus) { s.Conditions = list })
	}
	observed := func(generation int64) func(*T) {
		return set(func(s *v1alpha1.ReconcileStatus) { s.ObservedGeneration = generation })
	}
	ready := metav1.Condition{
		Type: "Ready", Status: metav1.ConditionTrue, Reason: "Succeeded", ObservedGeneration: 3,
		LastTransitionTime: metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)),
	}
	with := func(change func(*metav1.Condition)) func(*T) {
		changed := ready
		change(&changed)

		return conditions(changed)
	}

	checkUpdates(t, valid, validate, []updateRow[T]{
		{name: "nothing changed"},
		{"not observed", nil, observed(-1), nil},
		{"observed", nil, observed(3), nil},
		{"ahead of the generation", nil, observed(4), []string{"status.observedGeneration: Invalid value"}},
		{"before all", nil, observed(-2), []string{"status.observedGeneration: Invalid value"}},
		{"no resource version", nil, func(obj *T) { P(obj).SetResourceVersion("") }, []string{"metadata.resourceVersion: Invalid value"}},
		{"condition", nil, conditions(ready), nil},
		{"condition twice", nil, conditions(ready, ready), []string{"status.conditions[1]: Duplicate value"}},
		{"no reason", nil, with(func(c *metav1.Condition) { c.Reason = "" }), []string{"status.conditions[0].reason: Required value"}},
		{"reason with a blank", nil, with(func(c *metav1.Condition) { c.Reason = "a b" }), []string{"status.conditions[0].reason: Invalid value"}},
		{"unknown status", nil, with(func(c *metav1.Condition) { c.Status = "true" }), []string{"status.conditions[0].status: Unsupported value"}},
		{"no time", nil, with(func(c *metav1.Condition) { c.LastTransitionTime = metav1.Time{} }),
			[]string{"status.conditions[0].lastTransitionTime: Required value"}},
		{"message too long", nil, with(func(c *metav1.Condition) { c.Message = strings.Repeat("a", 32769) }),
			[]string{"status.conditions[0].message: Too long"}},
		{"condition ahead of the generation", nil, with(func(c *metav1.Condition) { c.ObservedGeneration = 4 }),
			[]string{"status.conditions[0].observedGeneration: Invalid value"}},
		{"condition before all", nil, with(func(c *metav1.Condition) { c.ObservedGeneration = -1 }),
			[]string{"status.conditions[0].observedGeneration: Invalid value"}},
	})
}

// The API server logs a marked error that generated rules do not find as an error of its own.
func TestConditionErrorsAreNotMarkedAsGenerated(t *testing.T) {
	cluster := validCluster()
	cluster.ResourceVersion = "1"
	cluster.Status.Conditions = []metav1.Condition{{Type: "X", Status: "Maybe"}, {Type: "X"}}

	errs := ValidateOmniClusterStatusUpdate(cluster, cluster)
	if len(errs) < 4 {
		t.Errorf("got only %v", errs)
	}

	for _, err := range errs {
		if err.CoveredByDeclarative {
			t.Errorf("%v is marked", err)
		}
	}
}
