package deploy

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v4/pkg/action"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"omni.texashpc.com/omni-cluster-operator/test/env"
)

// hooks are what `helm test` runs.
func hooks(t *testing.T, values string) []*unstructured.Unstructured {
	t.Helper()

	files, err := render(values)
	if err != nil {
		t.Fatal(err)
	}

	maps.DeleteFunc(files, func(name, _ string) bool { return !strings.HasPrefix(name, testsPrefix) })

	return decode(t, stream(files))
}

// TestHelmTestPods: one for each controller, with its account, our image and no other, where the controller runs, and
// nothing that Services and policies of the programs would take for one of theirs.
func TestHelmTestPods(t *testing.T) {
	for set, want := range map[string]map[string]string{
		"default":        {"omni-controller-check": "omni-controller --namespace=" + namespace},
		"all-namespaces": {"omni-controller-check": "omni-controller --all-namespaces --leader-election-namespace=" + namespace + " --role-binding=omni-controller"},
		"everything": {
			"omni-controller-team-a-check": "omni-controller-team-a --namespace=team-a --role-binding=omni-controller --export-namespaces=argocd,flux-system --hub-id=id-of-hub-1",
			"omni-controller-team-b-check": "omni-controller-team-b --namespace=team-b --role-binding=omni-controller --export-namespaces=flux-system --hub-id=id-of-hub-1",
		},
	} {
		programs := podsOf(t, valueSets(t)[set])
		got := map[string]string{}

		for _, object := range hooks(t, valueSets(t)[set]) {
			var pod corev1.Pod
			if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(object.Object, &pod, true); err != nil {
				t.Fatal(err)
			}

			container, controller := pod.Spec.Containers[0], programs["omni-controller"]
			got[pod.Name] = pod.Spec.ServiceAccountName + " " + strings.Join(container.Args[1:len(container.Args)-1], " ")

			if pod.Annotations["helm.sh/hook"] != "test" || container.Args[0] != "check" || container.Image != controller.Containers[0].Image {
				t.Errorf("%s: %s: %v, %+v", set, pod.Name, pod.Annotations, container)
			}

			if fmt.Sprint(pod.Spec.NodeSelector, pod.Spec.Tolerations) != fmt.Sprint(controller.NodeSelector, controller.Tolerations) {
				t.Errorf("%s: %s runs elsewhere than the controller", set, pod.Name)
			}

			if diff := cmp.Diff(controller.Containers[0].Resources, container.Resources); diff != "" {
				t.Errorf("%s: resources of %s; -controller +got:\n%s", set, pod.Name, diff)
			}

			if name := pod.Labels["app.kubernetes.io/name"]; programs[name].ServiceAccountName != "" {
				t.Errorf("%s: %s looks like a Pod of %s", set, pod.Name, name)
			}
		}

		if !maps.Equal(got, want) {
			t.Errorf("%s: got %v, want %v", set, got, want)
		}
	}
}

// TestHelmTestPodsTakeMore: labels and annotations for the Pods of controllers are for these Pods, too, but for those that
// Helm needs.
func TestHelmTestPodsTakeMore(t *testing.T) {
	const values = `controller: {podLabels: {example.com/tier: control}, podAnnotations: {example.com/owner: platform, helm.sh/hook: pre-install}}`

	for _, pod := range hooks(t, values) {
		if got := pod.GetLabels()["example.com/tier"]; got != "control" {
			t.Errorf("%s has the labels %v", pod.GetName(), pod.GetLabels())
		}

		if got := pod.GetAnnotations(); got["example.com/owner"] != "platform" || got["helm.sh/hook"] != "test" || len(got) != 3 {
			t.Errorf("%s has the annotations %v", pod.GetName(), got)
		}
	}
}

// test is `helm test`, once of an installation that works, and once without one right of the controller.
func (h *helmClient) test(t *testing.T, hub *env.Hub, binaries env.Binaries) {
	t.Helper()

	if log, err := h.runTest(t, hub, binaries); err != nil || strings.Count(log, "ok      ") != 5 {
		t.Errorf("helm test: %v\n%s", err, log)
	}

	binding := kubectl(t, hub, "", "get", "clusterrolebinding", "omni-controller-crd-check", "-o", "json")
	kubectl(t, hub, "", "delete", "clusterrolebinding", "omni-controller-crd-check")

	if log, err := h.runTest(t, hub, binaries); err == nil || !strings.Contains(log, "FAILED  ") || !strings.Contains(log, "it may not get namespaces kube-system") {
		t.Errorf("helm test without a right: %v\n%s", err, log)
	}

	object := decode(t, binding)[0]
	for _, field := range []string{"resourceVersion", "uid", "creationTimestamp"} {
		unstructured.RemoveNestedField(object.Object, "metadata", field)
	}

	kubectl(t, hub, toJSON(t, object), "create", "-f", "-")
}

// runTest runs `helm test`, and the Pod that it makes, as a kubelet would.
func (h *helmClient) runTest(t *testing.T, hub *env.Hub, binaries env.Binaries) (log string, err error) {
	t.Helper()

	ctx, cancel := context.WithCancel(t.Context())
	logs := make(chan string, 1)

	kubeconfig := tokenKubeconfig(t, hub, "omni-controller")

	go func() { logs <- runCheckPod(ctx, hub, binaries.OmniController, kubeconfig) }()

	testing := action.NewReleaseTesting(h.config)
	testing.Namespace, testing.Timeout = namespace, eventuallyTimeout

	_, shutdown, err := testing.Run(release)
	err = errors.Join(err, shutdown())

	cancel()

	return <-logs, err
}

// runCheckPod waits for the Pod of the release, runs its container, says how it ended, and returns what it printed.
func runCheckPod(ctx context.Context, hub *env.Hub, binary, kubeconfig string) string {
	const name = "omni-controller-check"

	pods := hub.Client().CoreV1().Pods(namespace)

	var pod *corev1.Pod

	if err := env.Eventually(ctx, eventuallyTimeout, "the Pod of helm test", func(ctx context.Context) (err error) {
		if pod, err = pods.Get(ctx, name, metav1.GetOptions{}); err == nil && pod.Status.Phase != corev1.PodPending {
			err = fmt.Errorf("it is %s", pod.Status.Phase)
		}

		return err
	}); err != nil {
		return err.Error()
	}

	args := append(slices.Clone(pod.Spec.Containers[0].Args), "--timeout=30s", "--kubeconfig="+kubeconfig)
	output, err := exec.CommandContext(ctx, binary, args...).CombinedOutput()

	pod.Status.Phase = corev1.PodSucceeded
	if err != nil {
		pod.Status.Phase = corev1.PodFailed
	}

	if _, err := pods.UpdateStatus(ctx, pod, metav1.UpdateOptions{}); err != nil {
		return fmt.Sprintf("%s\n%v", output, err)
	}

	return string(output)
}
