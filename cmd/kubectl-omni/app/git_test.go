package app

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

func approved(hash string) func(*session) (got, want any) {
	return func(s *session) (got, want any) { return s.cluster("edge-01").Spec.ApprovedPlan, hash }
}

func annotated(key, value string) func(*session) (got, want any) {
	return func(s *session) (got, want any) { return s.cluster("edge-01").Annotations[key], value }
}

func policyOf(s *session) *v1alpha1.OmniRolloutPolicy {
	s.t.Helper()

	policy, err := s.client.OmniV1alpha1().OmniRolloutPolicies("fleet").Get(s.t.Context(), "production", metav1.GetOptions{})
	if err != nil {
		s.t.Fatal(err)
	}

	return policy
}

// What Git owns is told, and not written.
func TestGitIsNotFought(t *testing.T) {
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))

	for name, test := range map[string]struct {
		args   []string
		fields string
		commit string
	}{
		"suspend": {args: []string{"suspend", "edge-01"}, fields: `{"f:spec":{"f:suspend":{}}}`, commit: "spec.suspend: true"},
		"approve": {
			args: []string{"approve", "edge-01", "--yes", "--hash", "5d0e"}, fields: `{"f:spec":{"f:approvedPlan":{}}}`,
			commit: `spec.approvedPlan: "5d0e"`,
		},
		"override": {
			args:   []string{"override", "edge-01", "--reason", "the outage of tonight", "--yes", "--hash", "9f3c"},
			fields: `{"f:metadata":{"f:annotations":{".":{},"f:omni.texashpc.com/rollout-override":{}}}}`,
			commit: `metadata.annotations.omni.texashpc.com/rollout-override: "9f3c the outage of tonight"`,
		},
		"promote": {
			args:   []string{"promote", "production", "prod", "--yes"},
			fields: `{"f:metadata":{"f:annotations":{".":{},"f:omni.texashpc.com/promote-prod":{}}}}`,
			commit: `metadata.annotations.omni.texashpc.com/promote-prod: "2026-11-24T12:00:00Z"`,
		},
		"release a hold": {args: []string{"hold", "production", "--release"}, fields: `{"f:spec":{"f:hold":{}}}`, commit: "spec.hold: false"},
	} {
		for manager, refuses := range map[string]bool{"kustomize-controller": true, "argocd-controller": true, "kubectl-edit": false} {
			s := newSession(t)
			s.hold(strings.HasPrefix(name, "release"))
			s.own(manager, test.fields)

			_, _, err := s.run(test.args...)
			if !refuses {
				if err != nil || len(s.writes()) != 1 {
					t.Errorf("%s, %s: %v, writes %v", name, manager, err, s.writes())
				}

				continue
			}

			if err == nil || !strings.Contains(err.Error(), "comes from Git ("+manager+"): commit it there instead:\n  "+test.commit) || len(s.writes()) > 0 {
				t.Errorf("%s, %s: %v, writes %v", name, manager, err, s.writes())
			}
		}
	}
}

// Flux takes the fields of a manager over whose name begins so, and removes what Git does not set: kustomize-controller v1.9.3
// (kustomization_controller.go, fieldManagers), and for a ResourceSet flux-operator (resourceset_controller.go).
func TestFluxLeavesWhatWeWrite(t *testing.T) {
	for _, manager := range []string{fieldManager, v1alpha1.FieldManagerByHand} {
		for _, taken := range []string{"kubectl", "before-first-apply", "kustomize-controller", "flux", "helm"} {
			if strings.HasPrefix(manager, taken) {
				t.Errorf("Flux takes away what %s has written, as its name begins with %s", manager, taken)
			}
		}
	}
}

// A client-side apply that sets a field to the value that it has makes nobody its owner: what was applied last names it.
func TestGitAppliedLast(t *testing.T) {
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))

	const applied = `{"f:metadata":{"f:annotations":{".":{},"f:kubectl.kubernetes.io/last-applied-configuration":{}}}}`

	for name, test := range map[string]struct {
		manager, last string
		refuses       bool
	}{
		"Git names it":               {"argocd-controller", `{"spec":{"suspend":false}}`, true},
		"Git does not":               {"argocd-controller", `{"spec":{"talos":{}}}`, false},
		"no object":                  {"argocd-controller", `"`, false},
		"something else than a map":  {"argocd-controller", `{"spec":[]}`, false},
		"a person's kubectl applies": {"kubectl-client-side-apply", `{"spec":{"suspend":false}}`, false},
	} {
		s := newSession(t)
		s.own(test.manager, applied)

		cluster := s.cluster("edge-01").DeepCopy()
		cluster.Annotations = map[string]string{corev1.LastAppliedConfigAnnotation: test.last}
		s.put("omniclusters", cluster)

		_, _, err := s.run("suspend", "edge-01")
		if test.refuses != (err != nil && strings.Contains(err.Error(), "comes from Git (argocd-controller): commit it there instead:\n  spec.suspend: true")) {
			t.Errorf("%s: %v", name, err)
		}

		if test.refuses == (len(s.writes()) > 0) {
			t.Errorf("%s: writes %v", name, s.writes())
		}
	}
}

// Where Git owns other fields of an object, nothing keeps a command from writing its own.
func TestOtherFieldsOfGit(t *testing.T) {
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))

	for _, args := range [][]string{
		{"override", "edge-01", "--reason", "the outage of tonight", "--yes", "--hash", "9f3c"}, {"promote", "production", "prod", "--yes"},
		{"hold", "production", "--release"}, {"suspend", "edge-01"}, {"approve", "edge-01", "--yes", "--hash", "5d0e"},
	} {
		s := newSession(t)
		s.hold(slices.Contains(args, "--release"))
		s.own("kustomize-controller", `{"f:metadata":{"f:annotations":{".":{},"f:team":{}}},"f:spec":{"f:stages":{}}}`)

		if _, _, err := s.run(args...); err != nil || len(s.writes()) != 1 {
			t.Errorf("%v: %v, writes %v", args, err, s.writes())
		}
	}
}

// In an emergency nobody waits for a commit: a hold is written, and the user is told to commit it, too.
func TestHoldBeforeGit(t *testing.T) {
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))

	for manager, warns := range map[string]bool{"kustomize-controller": true, "argocd-controller": true, "kubectl-edit": false} {
		s := newSession(t)
		s.own(manager, `{"f:spec":{"f:hold":{}}}`)

		output, _, err := s.run("hold", "production")
		if err != nil || !policyOf(s).Spec.Hold || strings.Contains(output, "comes from Git ("+manager+")") != warns {
			t.Errorf("%s: %v\n%s", manager, err, output)
		}

		// Then there is nothing to write, and nothing to commit.
		output, _, err = s.run("hold", "production")
		if err != nil || !strings.Contains(output, "on hold already") || strings.Contains(output, "Git") || len(s.writes()) != 1 {
			t.Errorf("%s, again: %v, writes %v\n%s", manager, err, s.writes(), output)
		}
	}
}

// hold puts the policy on hold, or releases it.
func (s *session) hold(on bool) {
	s.t.Helper()

	policy := policyOf(s).DeepCopy()
	policy.Spec.Hold = on
	s.put("omnirolloutpolicies", policy)
}

// own makes a manager own fields of the cluster and of the policy.
func (s *session) own(manager, fields string) {
	s.t.Helper()

	owned := []metav1.ManagedFieldsEntry{{
		Manager: manager, Operation: metav1.ManagedFieldsOperationApply, APIVersion: "omni.texashpc.com/v1alpha1", FieldsType: "FieldsV1",
		FieldsV1: metav1.NewFieldsV1(fields),
	}}

	cluster, policy := s.cluster("edge-01").DeepCopy(), policyOf(s).DeepCopy()
	cluster.ManagedFields, policy.ManagedFields = owned, owned
	s.put("omniclusters", cluster)
	s.put("omnirolloutpolicies", policy)
}
