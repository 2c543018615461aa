package e2e

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Admission policies of the hub that need more than the object: parameters, and the rights of the caller.

// A policy reads its parameters through omni-apiserver, which needs the right to watch their kind: without it the
// policy cannot be evaluated and does what its failurePolicy says (docs/concepts/security.md).
func TestPolicyWithParameters(t *testing.T) {
	t.Parallel()

	s := newSpace(t)
	k := subjects[3]
	s.grantParameters()
	s.apply("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: limits}\ndata: {most: \"4\"}")
	s.applyCluster(strings.NewReplacer("PARAMS", "ConfigMap", "FAILURE", "Fail").Replace(parameterPolicy),
		"validatingadmissionpolicy", "validatingadmissionpolicybinding")

	create := func(size string) error {
		object := k.object(t, "w")
		setPath(t, object, "/spec/machineClass/size", size)
		_, err := k.admin(t, s.name).Create(t.Context(), object, metav1.CreateOptions{DryRun: dryRun})

		return err
	}

	s.wait("the policy to know its parameter", func() error { return refusedWith(create("5"), "at most 4 machines") })

	if err := create("4"); err != nil {
		t.Error(err)
	}

	s.apply("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: limits}\ndata: {most: \"6\"}")
	s.wait("the new parameter", func() error { return create("5") })
	expectRefusal(t, create("7"), "at most 6 machines")
}

func TestPolicyWithParametersThatMayNotBeRead(t *testing.T) {
	t.Parallel()

	s := newSpace(t)
	k := subjects[0]
	manifest := strings.NewReplacer("PARAMS", "PodTemplate", "FAILURE", "Fail").Replace(parameterPolicy)
	s.applyCluster(manifest, "validatingadmissionpolicy", "validatingadmissionpolicybinding")

	create := func() error {
		_, err := k.admin(t, s.name).Create(t.Context(), k.object(t, "x"), metav1.CreateOptions{DryRun: dryRun})

		return err
	}

	s.wait("the policy to fail", func() error { return refusedWith(create(), "not yet synced to use for admission") })
	s.apply(strings.ReplaceAll(strings.Replace(manifest, "failurePolicy: Fail", "failurePolicy: Ignore", 1), "SPACE", s.name))
	s.wait("the policy to be ignored", create)

	// Readiness is that of the API of everybody else, and no matter of a policy.
	if status, text := s.answer(clientOf(), stack.OmniAPIServer.URL()+"/readyz", nil); status != 200 {
		t.Errorf("not ready: status %d: %s", status, text)
	}
}

// A policy may ask what else the caller is allowed to do; the hub answers about the caller, not about omni-apiserver.
func TestPolicyAsksForRights(t *testing.T) {
	t.Parallel()

	s := newSpace(t)
	s.applyCluster(rightsPolicy, "validatingadmissionpolicy", "validatingadmissionpolicybinding")
	bind(t, s.name, "edit", subjectUser(s.user("editor")))
	s.grant(s.user("maker"), "omniconnections", "create")

	create := func(user string) error {
		client := dynamicFor(t, must(stack.RESTConfigFor(s.user(user)))(t)).Resource(subjects[0].gvr()).Namespace(s.name)
		_, err := client.Create(t.Context(), subjects[0].object(t, "x"), metav1.CreateOptions{DryRun: dryRun})

		return err
	}

	s.wait("the policy and the rights", func() error {
		return errors.Join(refusedWith(create("maker"), "may not make ConfigMaps here"), create("editor"))
	})
}

const rightsPolicy = `apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: SPACE}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [omni.texashpc.com], apiVersions: ["*"], operations: [CREATE], resources: ["*"]}]}
  validations:
  - expression: "authorizer.group('').resource('configmaps').namespace(request.namespace).name('precious').check('create').allowed()"
    message: may not make ConfigMaps here
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: SPACE}
spec: {policyName: SPACE, validationActions: [Deny], matchResources: {namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: SPACE}}}}`

// grantParameters lets omni-apiserver watch ConfigMaps, as docs/concepts/security.md tells an administrator to do.
func (s *space) grantParameters() {
	s.t.Helper()

	var manifest string

	for block := range strings.SplitSeq(string(must(os.ReadFile("../../docs/concepts/security.md"))(s.t)), "```yaml\n") {
		if text, _, closed := strings.Cut(block, "```"); closed && strings.Contains(text, "resources: [configmaps]") {
			manifest = text
		}
	}

	if manifest == "" {
		s.t.Fatal("the page has no role for parameters")
	}

	s.apply(manifest)
	s.t.Cleanup(func() {
		if _, _, err := stack.KubectlInput(context.WithoutCancel(s.t.Context()), strings.NewReader(manifest), "delete", "-f", "-"); err != nil {
			s.t.Error(err)
		}
	})
}

const parameterPolicy = `apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: SPACE}
spec:
  failurePolicy: FAILURE
  paramKind: {apiVersion: v1, kind: PARAMS}
  matchConstraints: {resourceRules: [{apiGroups: [omni.texashpc.com], apiVersions: ["*"], operations: [CREATE], resources: ["*"]}]}
  validations:
  - expression: "!has(object.spec.machineClass) || object.spec.machineClass.size <= int(params.data.most)"
    messageExpression: "'at most ' + params.data.most + ' machines'"
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: SPACE}
spec:
  policyName: SPACE
  validationActions: [Deny]
  paramRef: {name: limits, parameterNotFoundAction: Deny}
  matchResources: {namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: SPACE}}}`
