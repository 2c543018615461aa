package deploy

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// podsOf are the Pods of both programs.
func podsOf(t *testing.T, values string) map[string]corev1.PodSpec {
	t.Helper()

	pods := map[string]corev1.PodSpec{}

	for _, object := range decode(t, stream(mustRender(t, values))) {
		if kind := object.GetKind(); kind != "StatefulSet" && kind != "Deployment" {
			continue
		}

		raw, _, _ := unstructured.NestedMap(object.Object, "spec", "template")

		var template corev1.PodTemplateSpec
		if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(raw, &template, true); err != nil {
			t.Fatal(err)
		}

		pods[object.GetLabels()["app.kubernetes.io/name"]] = template.Spec
	}

	return pods
}

// TestSecurityContexts: the defaults are those of the restricted Pod Security Standard; each may be changed, taken away and
// added to, in both programs alike.
func TestSecurityContexts(t *testing.T) {
	yes, no, user := true, false, int64(65532)
	onRootMismatch := corev1.FSGroupChangeOnRootMismatch
	runtimeDefault := &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}
	dropAll := &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}

	standard := &corev1.PodSecurityContext{
		RunAsNonRoot: &yes, RunAsUser: &user, RunAsGroup: &user, FSGroup: &user, FSGroupChangePolicy: &onRootMismatch, SeccompProfile: runtimeDefault,
	}
	container := &corev1.SecurityContext{AllowPrivilegeEscalation: &no, ReadOnlyRootFilesystem: &yes, Capabilities: dropAll}

	for values, want := range map[string]struct {
		pod       *corev1.PodSecurityContext
		container *corev1.SecurityContext
	}{
		`{}`: {standard, container},
		// What docs/how-to/install.md says for OpenShift.
		`podSecurityContext: {runAsUser: null, runAsGroup: null, fsGroup: null}`: {
			&corev1.PodSecurityContext{RunAsNonRoot: &yes, FSGroupChangePolicy: &onRootMismatch, SeccompProfile: runtimeDefault}, container,
		},
		`{podSecurityContext: {supplementalGroups: [5]}, securityContext: {seccompProfile: {type: RuntimeDefault}}}`: {
			&corev1.PodSecurityContext{
				RunAsNonRoot: &yes, RunAsUser: &user, RunAsGroup: &user, FSGroup: &user, FSGroupChangePolicy: &onRootMismatch,
				SeccompProfile: runtimeDefault, SupplementalGroups: []int64{5},
			},
			&corev1.SecurityContext{AllowPrivilegeEscalation: &no, ReadOnlyRootFilesystem: &yes, Capabilities: dropAll, SeccompProfile: runtimeDefault},
		},
		`{podSecurityContext: null, securityContext: null}`: {nil, nil},
	} {
		pods := podsOf(t, values)
		if len(pods) != 2 {
			t.Fatalf("%s: there are the Pods of %v", values, slices.Collect(maps.Keys(pods)))
		}

		for program, pod := range pods {
			if diff := cmp.Diff(want.pod, pod.SecurityContext); diff != "" {
				t.Errorf("%s: Pod of %s; -want +got:\n%s", values, program, diff)
			}

			if diff := cmp.Diff(want.container, pod.Containers[0].SecurityContext); diff != "" {
				t.Errorf("%s: container of %s; -want +got:\n%s", values, program, diff)
			}
		}
	}

	for _, wrong := range []string{`podSecurityContext: {runasuser: 1}`, `securityContext: {fsGroup: 1}`, `securityContext: {capabilitys: {}}`} {
		if _, err := render(wrong); err == nil || !strings.Contains(err.Error(), "/"+strings.Split(wrong, ":")[0]) {
			t.Errorf("%s: %v", wrong, err)
		}
	}
}

// TestHealthProbe: how often, how long and how many times, and where the controllers answer.
func TestHealthProbe(t *testing.T) {
	type timing struct{ period, timeout, failures int32 }

	for values, want := range map[string]map[string][3]timing{
		`{}`: {
			"omni-apiserver":  {{2, 5, 150}, {10, 15, 6}, {2, 5, 15}},
			"omni-controller": {{5, 5, 132}, {20, 10, 3}, {10, 5, 3}},
		},
		valueSets(t)["external-etcd"]: {"omni-apiserver": {{2, 5, 150}, {10, 15, 6}, {2, 5, 1}}},
		`apiserver: {healthProbe: {startup: {failureThreshold: 300}, liveness: {periodSeconds: 30}, readiness: {timeoutSeconds: 9, failureThreshold: 2}}}`: {
			"omni-apiserver": {{2, 5, 300}, {30, 15, 6}, {2, 9, 2}},
		},
		`controller: {healthProbe: {port: 9091, startup: {periodSeconds: 6}, liveness: {timeoutSeconds: 11}, readiness: {failureThreshold: 4}}}`: {
			"omni-controller": {{6, 5, 132}, {20, 11, 3}, {10, 5, 4}},
		},
	} {
		for program, timings := range want {
			container := podsOf(t, values)[program].Containers[0]

			for i, probe := range []*corev1.Probe{container.StartupProbe, container.LivenessProbe, container.ReadinessProbe} {
				if got := (timing{probe.PeriodSeconds, probe.TimeoutSeconds, probe.FailureThreshold}); got != timings[i] {
					t.Errorf("%s: probe %d of %s is %+v, want %+v", values, i, program, got, timings[i])
				}
			}
		}
	}

	container := podsOf(t, `controller: {healthProbe: {port: 9091}}`)["omni-controller"].Containers[0]
	if !slices.Contains(container.Args, "--health-probe-bind-address=:9091") || container.Ports[1].ContainerPort != 9091 {
		t.Errorf("another port: %v, %v", container.Args, container.Ports)
	}

	for values, want := range map[string]string{
		`controller: {healthProbe: {port: 8080}}`:                   "/controller/healthProbe/port",
		`controller: {healthProbe: {port: 81}}`:                     "/controller/healthProbe/port",
		`apiserver: {healthProbe: {port: 81}}`:                      "/apiserver/healthProbe",
		`apiserver: {healthProbe: {liveness: {periodSeconds: 0}}}`:  "periodSeconds",
		`controller: {healthProbe: {startup: {initialDelay: 1}}}`:   "initialDelay",
		`controller: {healthProbe: {startup: {periodSeconds: 5s}}}`: "periodSeconds",
	} {
		if _, err := render(values); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", values, err, want)
		}
	}
}
