package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"github.com/google/cel-go/cel"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/test/argocd"
	"omni.texashpc.com/omni-cluster-operator/test/env"
)

// The health script of artifacts/argocd says of live objects what docs/how-to/gitops.md says it does.
func TestArgoHealth(t *testing.T) {
	t.Parallel()

	f := newArgoFleet(t)

	f.waitHealth("oconn", "omni", argocd.Healthy)
	f.apply(clusterManifest("c"))
	f.waitHealth("ocl", "c", argocd.Progressing)
	f.apply(controlPlaneManifest("c-cp", "c", f.machines[0]), workersManifest("c-w", "c", classOf(pool, 2)),
		machineManifest(f.machines[0], "c"))

	for resource, name := range map[string]string{"ocl": "c", "ocp": "c-cp", "ow": "c-w", "om": f.machines[0]} {
		f.waitHealth(resource, name, argocd.Healthy)
	}

	// Staged: the plan is in the message.
	f.run("patch", "ocl", "c", "--type=merge", "-p", `{"spec":{"suspend":true,"kubernetes":{"version":"v1.35.4"}}}`)

	if message := f.waitHealth("ocl", "c", argocd.Suspended); !strings.Contains(message, "0 to create, 1 to update, 0 to destroy") {
		t.Errorf("staged: %s", message)
	}

	f.run("patch", "ocl", "c", "--type=merge", "-p", `{"spec":{"suspend":false,"changePolicy":"Observe"}}`)
	f.waitHealth("ocl", "c", argocd.Suspended)

	// Waits for approval, with the command that approves.
	f.run("patch", "ocl", "c", "--type=merge", "-p", `{"spec":{"changePolicy":"ConfirmDestructive","kubernetes":{"version":"v1.35.1"}}}`)
	f.run("delete", "ow", "c-w")
	f.waitCondition("ocl", "c", v1alpha1.ConditionStalled, metav1.ConditionTrue, v1alpha1.ReasonAwaitingApproval)

	if message := f.waitHealth("ocl", "c", argocd.Suspended); !strings.Contains(message, "kubectl patch omnicluster c") {
		t.Errorf("waits for approval: %s", message)
	}

	f.apply(workersManifest("c-w", "c", classOf(pool, 2)), controlPlaneManifest("second", "c", f.machines[1]))
	f.waitHealth("ocl", "c", argocd.Degraded)
	f.run("delete", "ocp", "second")
	f.waitHealth("ocl", "c", argocd.Healthy)

	// An object that waits for others to go.
	f.run("annotate", "oconn", "omni", "omni.texashpc.com/confirm-deletion=omni")
	f.run("delete", "oconn", "omni", "--wait=false")
	f.waitCondition("oconn", "omni", v1alpha1.ConditionDeletionBlocked, metav1.ConditionTrue, v1alpha1.ReasonInUse)

	if message := f.waitHealth("oconn", "omni", argocd.Progressing); !strings.Contains(message, "InUse") {
		t.Errorf("a deletion that waits: %s", message)
	}
}

// Whatever the controllers say of an object of any kind, Argo CD and kstatus tell the same of it.
func TestArgoHealthAgreesWithKstatus(t *testing.T) {
	t.Parallel()

	f := newArgoFleet(t)

	for _, kind := range examples(t) {
		f.apply(kind)
	}

	// The examples' connection leads nowhere, the fleet's works; most of the rest waits or is stalled.
	f.apply(clusterManifest("c"), controlPlaneManifest("c-cp", "c", f.machines[0]))
	f.waitCondition("ocl", "c", v1alpha1.ConditionReady, metav1.ConditionTrue, "")

	f.observed()

	kinds := map[string]int{}

	for _, object := range f.objects() {
		kinds[object.GetKind()]++

		health, err := f.script.Run(t.Context(), object.Object)
		if err != nil {
			t.Fatal(err)
		}

		result, err := status.Compute(&object)
		if err != nil {
			t.Fatal(err)
		}

		t.Logf("%s %s: %s (%s), %s", object.GetKind(), object.GetName(), health.Status, health.Message, result.Status)

		if allowed := agreeing(health.Status); !slices.Contains(allowed, result.Status) {
			t.Errorf("%s %s: Argo CD says %s (%s), kstatus %s (%s)", object.GetKind(), object.GetName(),
				health.Status, health.Message, result.Status, result.Message)
		}
	}

	if len(kinds) != 9 {
		t.Errorf("only these kinds were seen: %v", kinds)
	}
}

// agreeing are the answers of kstatus that go with one of the script.
func agreeing(health string) []status.Status {
	return map[string][]status.Status{
		argocd.Healthy:     {status.CurrentStatus},
		argocd.Progressing: {status.InProgressStatus, status.TerminatingStatus},
		argocd.Degraded:    {status.FailedStatus},
		argocd.Suspended:   {status.FailedStatus, status.CurrentStatus, status.InProgressStatus},
	}[health]
}

// argoFleet is a fleet that is looked at with Argo CD's eyes.
type argoFleet struct {
	*fleet

	script argocd.Script
}

func newArgoFleet(t *testing.T) *argoFleet {
	t.Helper()

	script, err := argocd.Load()
	if err != nil {
		t.Fatal(err)
	}

	return &argoFleet{fleet: newFleet(t), script: script}
}

// waitHealth waits until the script says this of the object, and returns its message.
func (f *argoFleet) waitHealth(resource, name, want string) string {
	f.t.Helper()

	var health argocd.Health

	f.wait(fmt.Sprintf("%s/%s to be %s", resource, name, want), func() error {
		object := &unstructured.Unstructured{}

		out, err := f.look(resource, name)
		if err != nil {
			return err
		}

		if err := object.UnmarshalJSON(out); err != nil {
			return err
		}

		if health, err = f.script.Run(f.t.Context(), object.Object); err == nil && health.Status != want {
			err = fmt.Errorf("%+v", health)
		}

		return err
	})

	return health.Message
}

// observed waits until every controller has looked at its objects.
func (f *argoFleet) observed() {
	f.t.Helper()
	f.wait("every controller to have looked at its objects", func() error {
		for _, object := range f.objects() {
			if seen, _, _ := unstructured.NestedInt64(object.Object, "status", "observedGeneration"); seen != object.GetGeneration() {
				return fmt.Errorf("%s %s: observed generation %d", object.GetKind(), object.GetName(), seen)
			}
		}

		return nil
	})
}

// objects are all objects of our kinds in the namespace.
func (f *argoFleet) objects() []unstructured.Unstructured {
	f.t.Helper()

	list := &unstructured.UnstructuredList{}
	if err := list.UnmarshalJSON([]byte(f.run("get", "omni", "-o", "json"))); err != nil {
		f.t.Fatal(err)
	}

	return list.Items
}

// What docs/how-to/gitops.md tells Flux to wait for is true of the APIService while it is Available,
// and only then.
func TestFluxExpressionForTheAPIService(t *testing.T) {
	t.Parallel()

	root, err := env.RepositoryRoot()
	if err != nil {
		t.Fatal(err)
	}

	page, err := os.ReadFile(filepath.Join(root, "docs", "how-to", "gitops.md"))
	if err != nil {
		t.Fatal(err)
	}

	_, rest, _ := strings.Cut(string(page), "```yaml\n")
	document, _, _ := strings.Cut(rest, "---\n")

	var kustomization struct {
		Spec struct {
			HealthCheckExprs []struct{ Kind, Current string } `json:"healthCheckExprs"`
		} `json:"spec"`
	}

	if err := yaml.Unmarshal([]byte(document), &kustomization); err != nil || len(kustomization.Spec.HealthCheckExprs) != 1 {
		t.Fatalf("the page has %+v: %v", kustomization, err)
	}

	vocabulary, err := cel.NewEnv(cel.Variable("status", cel.DynType))
	if err != nil {
		t.Fatal(err)
	}

	expression, issues := vocabulary.Compile(kustomization.Spec.HealthCheckExprs[0].Current)
	if issues.Err() != nil {
		t.Fatal(issues.Err())
	}

	program, err := vocabulary.Program(expression)
	if err != nil {
		t.Fatal(err)
	}

	live := get[map[string]any](&space{t: t, name: metav1.NamespaceDefault}, "apiservice", apiService)["status"]

	for name, tc := range map[string]struct {
		status any
		want   bool
	}{
		"live":          {live, true},
		"not available": {map[string]any{"conditions": []any{map[string]any{"type": "Available", "status": "False"}}}, false},
		"nothing yet":   {map[string]any{"conditions": []any{}}, false},
	} {
		got, _, err := program.Eval(map[string]any{"status": tc.status})
		if err != nil || got.Value() != tc.want {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}
