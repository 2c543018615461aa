package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/test/env"
	"omni.texashpc.com/omni-cluster-operator/test/omnisim"
)

// Another operator serves our group from custom resource definitions. On a management cluster of
// its own: the controller does not start beside them, the steps of docs/how-to/migrate.md lead to
// this operator without a loss, and definitions that come back later destroy nothing.
func TestAnotherOperatorsDefinitions(t *testing.T) {
	t.Parallel()

	c := newCollision(t)

	c.refusesToStart()
	c.migrate()
	c.definitionsComeBack()
}

// theirDeployment is the other operator's, of a release called acme.
const theirDeployment = "acme-omni-cluster-operator-controller-manager"

// collision is a fleet on a hub that has another operator's definitions and objects.
type collision struct {
	*fleet

	binaries   env.Binaries
	kubeconfig string // the controller's own
	api        *env.OmniAPIServer
	controller *env.Controller
}

func newCollision(t *testing.T) *collision {
	t.Helper()

	hub, err := env.StartHub(t.Context(), env.Options{Progress: t.Output(), WithoutControllerManager: true})
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() {
		if err := hub.Stop(); err != nil {
			t.Error(err)
		}
	})

	sim, err := omnisim.Start(omnisim.Options{Phase: phase})
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(sim.Close)

	c := &collision{fleet: &fleet{space: &space{t: t, name: "omni-cluster-operator-system", hub: &env.Stack{Hub: hub}}, omni: sim}}

	if c.key, err = sim.CreateServiceAccount("operator", omnisim.RoleOperator, 30*24*time.Hour); err != nil {
		t.Fatal(err)
	}

	if c.machines, err = sim.AddMachines(4); err != nil {
		t.Fatal(err)
	}

	if c.binaries, err = env.BuildBinaries(t.Context(), t.Output()); err != nil {
		t.Fatal(err)
	}

	if c.kubeconfig, err = hub.KubeconfigFor("system:serviceaccount:"+env.SystemNamespace+":omni-controller",
		"system:serviceaccounts", "system:serviceaccounts:"+env.SystemNamespace); err != nil {
		t.Fatal(err)
	}

	// The cluster that must survive was made in Omni by the other operator.
	c.foreign("demo")
	c.run("create", "namespace", c.name)
	c.run("apply", "--server-side", "-f", c.definitions())
	c.run("wait", "--for=condition=Established", "-f", c.definitions(), "--timeout=60s")
	c.wait("the definitions to be served", func() error {
		_, err := c.tryInput(strings.Join(theirObjects(c.omni.Endpoint()), "\n---\n"), "apply", "-f", "-")

		return err
	})
	c.run("create", "deployment", theirDeployment, "--image=example.com/operator", "--replicas=1")
	c.run("label", "deployment", theirDeployment, "app.kubernetes.io/name=omni-cluster-operator", "control-plane=controller-manager")

	return c
}

// start runs the controller until it ends by itself, which it has to, and returns what it said.
func (c *collision) start() string {
	c.t.Helper()

	ctx, cancel := context.WithTimeout(c.t.Context(), eventually)
	defer cancel()

	var said bytes.Buffer

	command := exec.CommandContext(ctx, c.binaries.OmniController, "--kubeconfig="+c.kubeconfig, "--namespace="+c.name,
		"--metrics-bind-address=0", "--health-probe-bind-address=0", "--leader-elect=false")
	command.Stdout, command.Stderr = &said, &said

	var exit *exec.ExitError
	if err := command.Run(); !errors.As(err, &exit) || exit.ExitCode() != 1 {
		c.t.Errorf("the controller ended with %v: %s", err, said.String())
	}

	return said.String()
}

// refusesToStart: without the right to look it names the role, with it the definitions and the way out.
func (c *collision) refusesToStart() {
	c.t.Helper()

	wants := func(said string, texts ...string) {
		c.t.Helper()

		for _, text := range texts {
			if !strings.Contains(said, text) {
				c.t.Errorf("the controller does not say %q:\n%s", text, said)
			}
		}
	}

	wants(c.start(), "omni-controller does not start", "ClusterRole omni-controller-crd-check", "forbidden")
	c.run("apply", "-f", c.repositoryFile("artifacts/kustomize/base/rbac-controller.yaml"))

	c.wait("the role to count", func() error {
		_, err := c.try("auth", "can-i", "get", "crd/omniclusters.omni.texashpc.com", "--kubeconfig="+c.kubeconfig)

		return err
	})
	wants(c.start(), "omni-controller does not start", "omniclusters.omni.texashpc.com", "omnihelmreleases.omni.texashpc.com",
		"remove their finalizers", "docs/how-to/migrate.md")
}

func (c *collision) repositoryFile(name string) string {
	c.t.Helper()

	root, err := env.RepositoryRoot()
	if err != nil {
		c.t.Fatal(err)
	}

	return filepath.Join(root, filepath.FromSlash(name))
}

// apiService is the name of the registration of our group.
const apiService = "v1alpha1.omni.texashpc.com"

// migrate does what docs/how-to/migrate.md says, with its own commands, and takes the cluster over.
func (c *collision) migrate() {
	c.t.Helper()

	if out, err := c.try("patch", "omniclusters.omni.texashpc.com", "demo", "--type=merge", "-p", `{"spec":{"a":"b"}}`); err == nil || !strings.Contains(err.Error(), "validate.omni.texashpc.com") {
		c.t.Errorf("the webhook that nobody serves refuses nothing: %s, %v", out, err)
	}

	c.shell(shellBlocks(c.t, c.repositoryFile("docs/how-to/migrate.md"), "## By hand"))
	c.intact("while the definitions went")

	if out := c.run("get", "secret", "demo-kubeconfig", "-o", "jsonpath={.metadata.ownerReferences[*].name}"); out != "of-somebody-else" {
		c.t.Errorf("the Secret belongs to %q", out)
	}

	c.install()
	c.apply(secretManifest("key", c.key, c.omni.Endpoint()), connectionManifest("omni", c.omni.Endpoint(), "key", string(c.omni.CAPEM())),
		clusterManifest("demo", "  adopt: true", "  changePolicy: Observe", "  deletePolicy: {orphan: true}"),
		controlPlaneManifest("demo-cp", "demo", c.machines[0]), workersManifest("by-hand", "demo", "machines: ["+c.machines[3]+"]"))
	c.says("demo", v1alpha1.ConditionPlanned, metav1.ConditionTrue, v1alpha1.ReasonChangesPlanned, "spec.adopt")
	c.run("patch", "ocl", "demo", "--type=merge", "-p", `{"spec":{"changePolicy":"Apply"}}`)
	c.waitCondition("ocl", "demo", v1alpha1.ConditionReady, metav1.ConditionTrue, "")
	c.intact("while the cluster was taken over")

	if owner, uid := c.view("demo").Annotations[v1alpha1.MarkOwnerUID], c.uid("demo"); owner != uid {
		c.t.Errorf("the owner is %q, not %s", owner, uid)
	}
}

func (c *collision) install() {
	c.t.Helper()

	var err error
	if c.api, err = c.hub.StartOmniAPIServer(c.t.Context(), env.OmniAPIServerOptions{Binary: c.binaries.OmniAPIServer}); err != nil {
		c.t.Fatal(err)
	}

	if c.controller, err = c.hub.StartController(c.t.Context(), env.ControllerOptions{
		Binary: c.binaries.OmniController, Namespace: c.name, DestroySettleTime: settleTime,
	}); err != nil {
		c.t.Fatal(err)
	}
}

// intact checks that Omni has the cluster with its machines, and that nobody asked for the end of anything.
func (c *collision) intact(when string) {
	c.t.Helper()
	c.wantDestroyed()

	view := c.view("demo")
	if !view.Exists || view.Deleting || view.Machines["demo-control-planes"] != 1 || view.Machines["demo-by-hand"] != 1 {
		c.t.Errorf("%s: Omni has %+v", when, view)
	}
}

// definitionsComeBack: beside our APIService the definitions change nothing, and the controller stops. Without the APIService
// kube-apiserver serves the definitions' objects, of which there are none. Nothing of ours is taken for deleted, and all of it comes back with
// the APIService.
func (c *collision) definitionsComeBack() {
	c.t.Helper()

	uid, registration := c.uid("demo"), c.registration()

	// Without the right to look the controller runs on, so that it sees what the definitions do.
	c.run("delete", "clusterrolebinding", "omni-controller-crd-check")
	c.run("apply", "--server-side", "-f", c.definitions())
	c.run("wait", "--for=condition=Established", "-f", c.definitions(), "--timeout=60s")

	if got := c.uid("demo"); got != uid {
		c.t.Errorf("beside our APIService the definitions show %q", got)
	}

	c.documented()

	c.run("delete", "apiservice", apiService)
	c.api.Kill() // ends the watches that are open
	c.waitEmptied()
	time.Sleep(2 * settleTime)
	c.intact("while the definitions hid our objects")

	if !c.controller.Running() {
		c.t.Error("the controller ended before it could show that it destroys nothing")
	}

	c.run("apply", "-f", c.repositoryFile("artifacts/kustomize/base/rbac-controller.yaml"))
	c.wait("the controller to stop", func() error {
		if c.controller.Running() {
			return errors.New("it runs")
		}

		return nil
	})

	if said, err := os.ReadFile(c.controller.LogPath()); err != nil || !strings.Contains(string(said), "omni-controller stops: the custom resource definitions") {
		c.t.Errorf("the controller's log does not say why it stopped: %v", err)
	}

	c.recover(uid, registration)
}

// registration is our APIService as it was made.
func (c *collision) registration() string {
	c.t.Helper()

	now := get[apiregistrationv1.APIService](c.space, "apiservice", apiService)

	made, err := json.Marshal(apiregistrationv1.APIService{
		TypeMeta: now.TypeMeta, ObjectMeta: metav1.ObjectMeta{Name: now.Name}, Spec: now.Spec,
	})
	if err != nil {
		c.t.Fatal(err)
	}

	return string(made)
}

// documented checks what docs/how-to/migrate.md says of both side by side: our API is there, and the management
// cluster's OpenAPI document, which is made of both, is not.
func (c *collision) documented() {
	c.t.Helper()
	c.run("get", "--raw", "/apis/omni.texashpc.com/v1alpha1")
	c.wait("the OpenAPI document to be away", func() error {
		if _, err := c.try("get", "--raw", "/openapi/v2"); err == nil || !strings.Contains(err.Error(), "ServiceUnavailable") {
			return fmt.Errorf("it is answered with %v", err)
		}

		return nil
	})
}

// waitEmptied waits until the controller knows no object of ours any more.
func (c *collision) waitEmptied() {
	c.t.Helper()
	c.wait("the controller to see the definitions' empty lists", func() error {
		metrics, err := c.controller.Metrics(c.t.Context())
		if err != nil {
			return err
		}

		for line := range strings.Lines(metrics) {
			if strings.HasPrefix(line, "omni_resource_info{") && strings.Contains(line, `kind="OmniCluster"`) {
				return errors.New(line)
			}
		}

		return nil
	})
}

// recover deletes the definitions, registers our API again, and finds everything as it was.
func (c *collision) recover(uid, registration string) {
	c.t.Helper()

	c.run("delete", "-f", c.definitions(), "--timeout=60s")
	c.run("wait", "--for=delete", "apiservice/"+apiService, "--timeout=60s")

	if _, err := c.tryInput(registration, "create", "-f", "-"); err != nil {
		c.t.Fatal(err)
	}

	if err := c.api.Restart(c.t.Context()); err != nil {
		c.t.Fatal(err)
	}

	if err := c.controller.Restart(c.t.Context()); err != nil {
		c.t.Fatal(err)
	}

	c.reconciled("demo")
	c.waitCondition("ocl", "demo", v1alpha1.ConditionReady, metav1.ConditionTrue, "")
	c.intact("when our objects were back")

	if got := c.uid("demo"); got != uid {
		c.t.Errorf("the cluster came back as %q, not %s", got, uid)
	}
}
