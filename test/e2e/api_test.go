package e2e

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

func TestDiscoveryAndExplain(t *testing.T) {
	s := newSpace(t)

	out := s.run("api-resources", "--api-group=omni.texashpc.com", "--no-headers", "-o", "wide")
	for _, row := range []string{
		"omniconnections oconn", "omniclusters ocl", "omnicontrolplanes ocp", "omniworkers ow",
		"omnimachines om", "omnikubeconfigexports oke", "omnisecretsyncs oss", "omnihelmreleases ohr",
	} {
		if !strings.Contains(strings.Join(strings.Fields(out), " "), row) {
			t.Errorf("no %q in\n%s", row, out)
		}
	}

	for field, text := range map[string]string{
		"omnicluster.spec.deletePolicy.requireConfirmation": "confirm-deletion",
		"oconn.spec.caBundle":                               "PEM",
		"ow.spec.machineClass.size":                         "unlimited",
		"ohr.spec.chart.valuesFrom.targetPath":              "dotted path",
		"ocl.spec.patches.inline":                           "fragment",
	} {
		if out := s.run("explain", field); !strings.Contains(out, text) {
			t.Errorf("explain %s: no %q in\n%s", field, text, out)
		}
	}
}

func TestNewObjectsAreNeverTakenForFinished(t *testing.T) {
	s := newSpace(t)

	out, err := s.tryInput(clusterManifest("c", "  suspend: true")+"\nstatus:\n  observedGeneration: 7\n", "create", "-f", "-", "-o",
		"jsonpath={.status.observedGeneration} {.status.conditions[?(@.type=='Ready')].status} {.status.conditions[?(@.type=='Reconciling')].reason}")
	if err != nil || !strings.HasPrefix(out, "-1 Unknown Pending") {
		t.Errorf("got %q %v", out, err)
	}
}

func TestNumbersStayAsWritten(t *testing.T) {
	const block = `{"cluster":{"extraManifests":[]},"machine":{"env":{"B":"1048576"},"sysctls":{"a":"1.0"}}}`

	s := newSpace(t)
	job := `  kubernetes:
    version: v1.35.1
    healthchecks:
    - name: h
      job: {apiVersion: batch/v1, kind: Job, metadata: {name: j}, spec: {activeDeadlineSeconds: 9007199254740993, backoffLimit: 1048576}}`
	manifest := strings.Replace(clusterManifest("c", "  suspend: true", "  patches:", "  - name: p", "    inline: "+block),
		"  kubernetes:\n    version: v1.35.1", job, 1)
	s.kubectlApply(manifest)

	const path = "jsonpath={.spec.kubernetes.healthchecks[0].job.spec}"
	want := `{"activeDeadlineSeconds":9007199254740993,"backoffLimit":1048576}`

	check := func(after string) {
		t.Helper()

		raw := s.run("get", "--raw", "/apis/omni.texashpc.com/v1alpha1/namespaces/"+s.name+"/omniclusters/c")
		if !strings.Contains(raw, want) || !strings.Contains(raw, block) {
			t.Errorf("after %s: %s not in\n%s", after, path, raw)
		}
	}
	check("create")
	s.run("patch", "ocl", "c", "--type=merge", "-p", `{"spec":{"kubernetes":{"version":"v1.35.0"}}}`)
	check("merge patch")
	s.run("patch", "ocl", "c", "--type=json", "-p", `[{"op":"replace","path":"/spec/talos/version","value":"v1.13.2"}]`)
	check("JSON patch")
	s.run("label", "ocl", "c", "a=b")
	check("label")

	apply := func(manifest string) string {
		t.Helper()

		out, err := s.tryInput(manifest, "apply", "--server-side", "--field-manager=other", "--force-conflicts", "-f", "-")
		if err != nil {
			t.Fatal(err)
		}

		return out
	}

	if out := apply(manifest); strings.Contains(out, "quote") {
		t.Errorf("server-side apply of an integer of 64 bits warns: %s", out)
	}

	check("server-side apply")

	if out := apply(strings.Replace(manifest, "9007199254740993", "9223372036854775808", 1)); !strings.Contains(out, "quote") {
		t.Errorf("server-side apply of an integer beyond 64 bits gives no advice: %s", out)
	}
}

func TestGenerationAndServerSideApply(t *testing.T) {
	s := newSpace(t)

	manifest := clusterManifest("c", "  suspend: true")
	if _, err := s.tryInput(manifest, "apply", "--server-side", "-f", "-"); err != nil {
		t.Fatal(err)
	}

	s.run("annotate", "ocl", "c", "note=1")

	if g := get[v1alpha1.OmniCluster](s, "ocl", "c").Generation; g != 1 {
		t.Errorf("generation %d after a change of metadata, want 1", g)
	}

	other := strings.Replace(manifest, "v1.35.1", "v1.35.0", 1)
	if out, err := s.tryInput(other, "apply", "--server-side", "--field-manager=other", "-f", "-"); err == nil || !strings.Contains(err.Error(), "conflict") {
		t.Errorf("no conflict: %s %v", out, err)
	}

	if _, err := s.tryInput(other, "apply", "--server-side", "--field-manager=other", "--force-conflicts", "-f", "-"); err != nil {
		t.Fatal(err)
	}

	if g := get[v1alpha1.OmniCluster](s, "ocl", "c").Generation; g != 2 {
		t.Errorf("generation %d after a change of spec, want 2", g)
	}
	// Unset and empty differ: this is a change.
	s.run("patch", "ocl", "c", "--type=merge", "-p", `{"spec":{"systemExtensions":[]}}`)

	cluster := get[v1alpha1.OmniCluster](s, "ocl", "c")
	if cluster.Generation != 3 || cluster.Spec.SystemExtensions == nil {
		t.Errorf("generation %d, systemExtensions %v; want 3 and an empty list", cluster.Generation, cluster.Spec.SystemExtensions)
	}
}

func TestDryRunStoresNothing(t *testing.T) {
	s := newSpace(t)

	if _, err := s.tryInput(clusterManifest("c"), "apply", "--dry-run=server", "-f", "-"); err != nil {
		t.Fatal(err)
	}

	if out, err := s.try("get", "ocl", "c"); err == nil {
		t.Errorf("was stored: %s", out)
	}
}

func TestFieldSelectors(t *testing.T) {
	s := newSpace(t)
	s.kubectlApply(clusterManifest("a", "  suspend: true"), clusterManifest("b", "  suspend: true"),
		workersManifest("a-1", "a", "machines: []"), workersManifest("b-1", "b", "machines: []"))

	for _, tc := range []struct{ resource, selector, want string }{
		{"ow", "spec.clusterRef.name=a", "a-1"},
		{"ow", "spec.clusterRef.name!=a", "b-1"},
		{"ocl", "spec.connectionRef.name=omni,metadata.name=b", "b"},
		{"ocl", "spec.connectionRef.name=other", ""},
	} {
		if out := s.run("get", tc.resource, "--field-selector", tc.selector, "-o", "jsonpath={.items[*].metadata.name}"); out != tc.want {
			t.Errorf("%s %s: got %q, want %q", tc.resource, tc.selector, out, tc.want)
		}
	}
}

func TestTemplateSubresource(t *testing.T) {
	s := newSpace(t)
	path := "/apis/omni.texashpc.com/v1alpha1/namespaces/" + s.name + "/omniclusters/c/template"

	s.kubectlApply(clusterManifest("c", "  suspend: true"))

	if out, err := s.try("get", "--raw", path); err == nil || !strings.Contains(err.Error(), "OmniControlPlane") {
		t.Errorf("without a control plane: %s %v", out, err)
	}

	s.kubectlApply(controlPlaneManifest("cp", "c", "27c16241-96bf-4f17-9579-ea3a6c4a3ca8"),
		workersManifest("w", "c", "patches: [{name: p, valueFrom: {secretKeyRef: {name: s, key: k}}}]"))

	out := s.run("get", "--raw", path)
	for _, text := range []string{"kind: Cluster\n", "kind: ControlPlane\n", "kind: Workers\n", "27c16241-96bf-4f17-9579-ea3a6c4a3ca8", "omni.texashpc.com/owner-uid"} {
		if !strings.Contains(out, text) {
			t.Errorf("no %q in the template:\n%s", text, out)
		}
	}
}

func TestScaleRefusesStaticSets(t *testing.T) {
	s := newSpace(t)
	s.kubectlApply(workersManifest("static", "c", "machines: []"), workersManifest("class", "c", classOf("small", 1)))

	if out, err := s.try("scale", "omniworkers/static", "--replicas=2"); err == nil || !strings.Contains(err.Error(), "machineClass") {
		t.Errorf("static set: %s %v", out, err)
	}

	s.run("scale", "omniworkers/class", "--replicas=3")

	if size := get[v1alpha1.OmniWorkers](s, "ow", "class").Spec.MachineClass.Size; size == nil || size.IntVal != 3 {
		t.Errorf("size %v, want 3", size)
	}
}

func TestSecondControlPlaneIsAWarning(t *testing.T) {
	s := newSpace(t)
	s.kubectlApply(controlPlaneManifest("one", "c", "27c16241-96bf-4f17-9579-ea3a6c4a3ca8"))

	out := s.kubectlApply(controlPlaneManifest("two", "c", "27c16241-96bf-4f17-9579-ea3a6c4a3ca9"))
	if !strings.Contains(out, "Warning") || !strings.Contains(out, "one") {
		t.Errorf("no warning that names the first: %s", out)
	}
}

func TestStatusAndSpecKeepToTheirSubresources(t *testing.T) {
	s := newSpace(t)
	s.kubectlApply(workersManifest("w", "absent", "machines: []"))
	s.waitCondition("ow", "w", v1alpha1.ConditionAccepted, metav1.ConditionFalse, v1alpha1.ReasonClusterNotFound)

	s.run("patch", "ow", "w", "--subresource=status", "--type=merge", "-p", `{"spec":{"workerSetName":"hijack"},"metadata":{"labels":{"a":"b"}},"status":{"workerSetName":"x"}}`)

	if w := get[v1alpha1.OmniWorkers](s, "ow", "w"); w.Spec.WorkerSetName != "" || len(w.Labels) != 0 || w.Generation != 1 {
		t.Errorf("the status subresource changed %+v %+v", w.Spec, w.Labels)
	}
}
