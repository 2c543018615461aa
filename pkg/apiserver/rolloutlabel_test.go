package apiserver_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	sigsyaml "sigs.k8s.io/yaml"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/apiserver"
)

// oneRight is what the administrator may do, while it is true, with a resource of ours in a namespace, and nothing else.
type oneRight struct {
	atomic.Bool

	verb, resource, namespace string
}

func (r *oneRight) Authorize(_ context.Context, asked authorizer.Attributes) (authorizer.Decision, string, error) {
	if r.Load() && asked.IsResourceRequest() && asked.GetVerb() == r.verb && asked.GetAPIGroup() == v1alpha1.GroupName &&
		asked.GetResource() == r.resource && asked.GetNamespace() == r.namespace && asked.GetUser().GetName() == "administrator" {
		return authorizer.DecisionAllow, "", nil
	}

	return authorizer.DecisionNoOpinion, "", nil
}

// The example protects the label by which stages select clusters, evaluated by this server's own plugin.
func TestRolloutLabelIsProtected(t *testing.T) {
	admin := &oneRight{verb: "update", resource: "omnirolloutpolicies", namespace: "fleet"}
	s := startServer(t, withConfig(func(config *apiserver.Config) {
		config.Generic.AdmissionControl = admission.NewChainHandler(policyPlugin(t, admin, "rollout-label.yaml", "fleet", "other"))
	}))

	for _, namespace := range []string{"fleet", "other"} {
		for name, labels := range map[string]map[string]string{"labelled": {"tier": "prod"}, "bare": nil} {
			cluster := &v1alpha1.OmniCluster{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
			cluster.Spec.ConnectionRef.Name, cluster.Spec.Kubernetes.Version, cluster.Spec.Talos.Version = "main", "v1.34.1", "v1.11.2"

			if _, err := s.client.OmniV1alpha1().OmniClusters(namespace).Create(t.Context(), cluster, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
		}
	}

	patch := func(namespace, name, text string, subresources ...string) error {
		_, err := s.client.OmniV1alpha1().OmniClusters(namespace).Patch(t.Context(), name, types.MergePatchType, []byte(text),
			metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}}, subresources...)

		return err
	}

	protected := map[string][2]string{
		"change": {"labelled", `{"metadata":{"labels":{"tier":"canary"}}}`}, "remove": {"labelled", `{"metadata":{"labels":{"tier":null}}}`},
		"remove all": {"labelled", `{"metadata":{"labels":null}}`}, "empty": {"labelled", `{"metadata":{"labels":{"tier":""}}}`},
		"set": {"bare", `{"metadata":{"labels":{"tier":"prod"}}}`}, "set to nothing": {"bare", `{"metadata":{"labels":{"tier":""}}}`},
		"take over": {"bare", `{"spec":{"adopt":true}}`},
	}

	// Out of the policy by way of a release, and anew without the label.
	adopting := &v1alpha1.OmniCluster{ObjectMeta: metav1.ObjectMeta{Name: "anew"}}
	adopting.Spec.ConnectionRef.Name, adopting.Spec.Kubernetes.Version, adopting.Spec.Talos.Version = "main", "v1.34.1", "v1.11.2"
	adopting.Spec.Adopt = true

	create := func() error {
		_, err := s.client.OmniV1alpha1().OmniClusters("fleet").Create(t.Context(), adopting, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})

		return err
	}

	if err := create(); !apierrors.IsForbidden(err) {
		t.Errorf("made anew, to take over: %v", err)
	}

	for name, one := range protected {
		err := patch("fleet", one[0], one[1])
		if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "only who may update omnirolloutpolicies may change it") {
			t.Errorf("%s: %v", name, err)
		}

		if err = patch("other", one[0], one[1]); err != nil {
			t.Errorf("%s, in another namespace: %v", name, err)
		}
	}

	for name, one := range map[string][]string{
		"another label": {"labelled", `{"metadata":{"labels":{"team":"a"}}}`}, "the same": {"labelled", `{"metadata":{"labels":{"tier":"prod"}}}`},
		"the spec": {"bare", `{"spec":{"suspend":true}}`}, "the status": {"labelled", `{"metadata":{"labels":{"tier":"x"}},"status":{}}`, "status"},
	} {
		if err := patch("fleet", one[0], one[1], one[2:]...); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}

	admin.Store(true)

	if err := create(); err != nil {
		t.Errorf("made anew, to take over, by an admin: %v", err)
	}

	for name, one := range protected {
		if err := patch("fleet", one[0], one[1]); err != nil {
			t.Errorf("%s, by an admin: %v", name, err)
		}
	}
}

// policyPlugin is the plugin of the hub's ValidatingAdmissionPolicies, on a hub that has those of an example, and namespaces.
func policyPlugin(t *testing.T, who authorizer.UnconditionalAuthorizer, example string, namespaces ...string) *validating.Plugin {
	t.Helper()

	plugin, err := validating.NewPlugin(nil)
	if err != nil {
		t.Fatal(err)
	}

	objects := policiesOf(t, filepath.Join("../../artifacts/examples/admission", example))
	for _, name := range namespaces {
		objects = append(objects, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelMetadataName: name}}})
	}

	hub := fake.NewClientset(objects...)
	factory := informers.NewSharedInformerFactory(hub, 0)

	plugin.SetExternalKubeInformerFactory(factory)
	plugin.SetExternalKubeClientSet(hub)
	plugin.SetDynamicClient(dynamicfake.NewSimpleDynamicClient(runtime.NewScheme()))
	plugin.SetRESTMapper(meta.NewDefaultRESTMapper(nil))
	plugin.SetDrainedNotification(t.Context().Done())
	plugin.SetUnconditionalAuthorizer(who)

	if err = plugin.ValidateInitialization(); err != nil {
		t.Fatal(err)
	}

	factory.StartWithContext(t.Context())

	if !plugin.WaitForReady() {
		t.Fatal("the plugin does not get to know its policies")
	}

	return plugin
}

// policiesOf decodes the policies and bindings of a file, and sets the defaults of kube-apiserver. A field that the API does
// not know fails the test.
func policiesOf(t *testing.T, file string) []runtime.Object {
	t.Helper()

	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}

	var objects []runtime.Object

	documents := yaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text)))

	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return objects
		}

		if err != nil {
			t.Fatal(err)
		}

		policy, binding := &admissionregistrationv1.ValidatingAdmissionPolicy{}, &admissionregistrationv1.ValidatingAdmissionPolicyBinding{}

		var object runtime.Object = policy
		if bytes.Contains(document, []byte("\nkind: ValidatingAdmissionPolicyBinding\n")) {
			object = binding
		}

		if err = sigsyaml.UnmarshalStrict(document, object); err != nil {
			t.Fatal(err)
		}

		setDefaults(policy.Spec.MatchConstraints)
		setDefaults(binding.Spec.MatchResources)

		objects = append(objects, object)
	}
}

func setDefaults(match *admissionregistrationv1.MatchResources) {
	if match == nil {
		return
	}

	match.MatchPolicy = new(admissionregistrationv1.Equivalent)

	for _, selector := range []**metav1.LabelSelector{&match.NamespaceSelector, &match.ObjectSelector} {
		if *selector == nil {
			*selector = &metav1.LabelSelector{}
		}
	}

	for i := range match.ResourceRules {
		match.ResourceRules[i].Scope = new(admissionregistrationv1.AllScopes)
	}
}
