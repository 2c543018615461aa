package deploy

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"
)

// installation is what is rendered, by what refers to each other.
type installation struct {
	objects  []*unstructured.Unstructured
	pods     map[string]corev1.PodTemplateSpec // by workload
	claims   map[string][]string               // by workload
	problems []string
}

func (in *installation) problem(format string, args ...any) {
	in.problems = append(in.problems, fmt.Sprintf(format, args...))
}

// inconsistencies lists what does not fit together in one installation.
func inconsistencies(t *testing.T, files map[string]string) []string {
	t.Helper()

	in := &installation{pods: map[string]corev1.PodTemplateSpec{}, claims: map[string][]string{}}

	for name, text := range files {
		for _, document := range strings.Split(text, "\n---\n") {
			// Strict: a key that is there twice has one value in one tool and the other in the next.
			if err := yaml.UnmarshalStrict([]byte(document), &map[string]any{}); err != nil {
				in.problem("%s: %v", name, err)
			}
		}
	}

	in.objects = decode(t, stream(files))
	seen := map[string]bool{}

	for _, object := range in.objects {
		if seen[identity(object)] {
			in.problem("%s is there twice", identity(object))
		}

		seen[identity(object)] = true

		in.readWorkload(object)
	}

	in.checkPods()

	for _, object := range in.objects {
		in.checkSelector(object)
		in.checkSubjects(object)
	}

	return in.problems
}

// readWorkload takes note of a workload's Pod, which its selector has to find.
func (in *installation) readWorkload(object *unstructured.Unstructured) {
	if kind := object.GetKind(); kind != "Deployment" && kind != "StatefulSet" {
		return
	}

	raw, _, _ := unstructured.NestedMap(object.Object, "spec", "template")

	var pod corev1.PodTemplateSpec
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(raw, &pod, true); err != nil {
		in.problem("%s: %v", identity(object), err)
	}

	selector, _, _ := unstructured.NestedStringMap(object.Object, "spec", "selector", "matchLabels")
	for other, template := range in.pods {
		if labels.SelectorFromSet(selector).Matches(labels.Set(template.Labels)) {
			in.problem("%s also selects the Pods of %s", identity(object), other)
		}
	}

	in.pods[object.GetName()] = pod

	claims, _, _ := unstructured.NestedSlice(object.Object, "spec", "volumeClaimTemplates")
	for _, claim := range claims {
		name, _, _ := unstructured.NestedString(claim.(map[string]any), "metadata", "name")
		in.claims[object.GetName()] = append(in.claims[object.GetName()], name)
	}
}

// checkPods: mounts have volumes, probes have ports, accounts exist, and no flag is there twice.
func (in *installation) checkPods() {
	for workload, pod := range in.pods {
		container := pod.Spec.Containers[0]
		volumes := slices.Clone(in.claims[workload])

		for _, volume := range pod.Spec.Volumes {
			volumes = append(volumes, volume.Name)
		}

		for _, mount := range container.VolumeMounts {
			if !slices.Contains(volumes, mount.Name) {
				in.problem("%s mounts %s, which is no volume", workload, mount.Name)
			}
		}

		for _, probe := range []*corev1.Probe{container.StartupProbe, container.LivenessProbe, container.ReadinessProbe} {
			if !slices.ContainsFunc(container.Ports, func(port corev1.ContainerPort) bool { return port.Name == probe.HTTPGet.Port.String() }) {
				in.problem("%s is probed at port %s, which it does not have", workload, probe.HTTPGet.Port.String())
			}
		}

		if !in.has("ServiceAccount", pod.Spec.ServiceAccountName) {
			in.problem("%s runs as %s, which is not made", workload, pod.Spec.ServiceAccountName)
		}

		in.checkFlags(workload, container.Args)
	}
}

func (in *installation) checkFlags(workload string, args []string) {
	seen := map[string]bool{}

	for _, arg := range args {
		name, _, _ := strings.Cut(arg, "=")
		if seen[name] || !strings.HasPrefix(name, "--") {
			in.problem("%s has the argument %s", workload, arg)
		}

		seen[name] = true
	}
}

// checkSelector: what selects Pods selects some, and a budget leaves a drain a way.
func (in *installation) checkSelector(object *unstructured.Unstructured) {
	path := map[string][]string{
		"Service": {"spec"}, "Deployment": {"spec", "selector"}, "StatefulSet": {"spec", "selector"},
		"PodDisruptionBudget": {"spec", "selector"}, "NetworkPolicy": {"spec", "podSelector"},
	}[object.GetKind()]
	if path == nil {
		return
	}

	selector, err := selectorAt(object, path)
	if err != nil || selector.Empty() {
		in.problem("%s selects everything: %v", identity(object), err)

		return
	}

	for _, pod := range in.pods {
		if selector.Matches(labels.Set(pod.Labels)) {
			return
		}
	}

	in.problem("%s selects no Pod by %v", identity(object), selector)
}

// selectorAt is the selector of an object; the one of a Service has labels only.
func selectorAt(object *unstructured.Unstructured, path []string) (labels.Selector, error) {
	fields, _, err := unstructured.NestedMap(object.Object, path...)
	if err != nil {
		return nil, err
	}

	if object.GetKind() == "Service" {
		fields = map[string]any{"matchLabels": fields["selector"]}
	}

	var selector metav1.LabelSelector
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(fields, &selector, true); err != nil {
		return nil, err
	}

	return metav1.LabelSelectorAsSelector(&selector)
}

// checkSubjects: a binding is for an account that is made here.
func (in *installation) checkSubjects(object *unstructured.Unstructured) {
	subjects, _, _ := unstructured.NestedSlice(object.Object, "subjects")
	for _, subject := range subjects {
		fields := subject.(map[string]any)
		if !in.has("ServiceAccount", fmt.Sprint(fields["name"])) || fields["namespace"] != namespace {
			in.problem("%s is for %v", identity(object), fields)
		}
	}
}

func (in *installation) has(kind, name string) bool {
	return slices.ContainsFunc(in.objects, func(object *unstructured.Unstructured) bool {
		return object.GetKind() == kind && object.GetName() == name && object.GetNamespace() == namespace
	})
}

// TestSecretsAreLabelled: every Secret of the installation says that it is the installation's, also those that
// cert-manager makes.
func TestSecretsAreLabelled(t *testing.T) {
	const label, ours = "app.kubernetes.io/part-of", "omni-cluster-operator"

	count := 0

	for _, object := range decode(t, stream(mustRender(t, valueSets(t)["everything"]))) {
		got := object.GetLabels()[label]

		switch object.GetKind() {
		case "Secret":
		case "Certificate":
			got, _, _ = unstructured.NestedString(object.Object, "spec", "secretTemplate", "labels", label)
		default:
			continue
		}

		count++

		if got != ours {
			t.Errorf("the Secret of %s has %q as %s", identity(object), got, label)
		}
	}

	if count != 4 {
		t.Errorf("there are %d Secrets", count)
	}
}
