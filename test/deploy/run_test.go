package deploy

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"omni.texashpc.com/omni-cluster-operator/test/env"
)

const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
  - level: Metadata
    resources: [{group: omni.texashpc.com, resources: [omniconnections]}]
  - level: None
`

const encryptionConfig = `apiVersion: apiserver.config.k8s.io/v1
kind: EncryptionConfiguration
resources:
  - resources: [omniconnections.omni.texashpc.com]
    providers:
      - aescbc: {keys: [{name: key-1, secret: MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=}]}
      - identity: {}
`

// TestRun starts the containers that are rendered: their command and arguments, with paths and ports of this machine,
// nothing from the environment, the tokens of their service accounts and the rights that are rendered. Then objects go
// through kube-apiserver, and the controller brings them to an Omni.
func TestRun(t *testing.T) {
	t.Parallel()

	hub := startHub(t)

	binaries, err := env.BuildBinaries(t.Context(), t.Output())
	if err != nil {
		t.Fatal(err)
	}

	sets := valueSets(t)
	external, etcdFiles := externalEtcd(t, hub)

	for _, tc := range []struct {
		name, values string
		secrets      map[string]map[string]string // or ConfigMaps
		serves       []string                     // namespaces
		check        func(t *testing.T, r *running)
	}{
		{
			name: "default", values: "", serves: []string{namespace},
			check: func(t *testing.T, r *running) { checkAtRest(t, r, false) },
		},
		{
			name: "external etcd, all namespaces, other names", values: "fullnameOverride: hub-a\n" + external, serves: []string{"team-a", "team-b"},
			secrets: map[string]map[string]string{"etcd-client": etcdFiles},
		},
		{
			name: "everything", values: sets["everything"], serves: []string{"team-a", "team-b"},
			secrets: map[string]map[string]string{
				"omni-audit-policy": {"policy.yaml": auditPolicy}, "omni-encryption": {"encryption-config.yaml": encryptionConfig},
			},
			check: func(t *testing.T, r *running) {
				checkMetrics(t, r)
				checkExport(t, r)
				checkAudit(t, r)
				checkAtRest(t, r, true)
			},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := run(t, hub, binaries, tc.values, tc.secrets)

			for _, namespace := range tc.serves {
				useAPI(t, r, namespace)
			}

			if tc.check != nil {
				tc.check(t, r)
			}

			r.stop(t)
		})
	}
}

// running is a deployment of which all programs run.
type running struct {
	hub         *env.Hub
	objects     []*unstructured.Unstructured
	manifest    string
	secrets     map[string]map[string]string
	apiserver   *pod
	controllers []*pod
	programs    []*env.Program
}

// run installs and starts what the values render.
func run(t *testing.T, hub *env.Hub, binaries env.Binaries, values string, sources map[string]map[string]string) *running {
	t.Helper()

	r := prepare(t, hub, values)
	kubectl(t, hub, r.manifest, "apply", "--server-side", "-f", "-")
	r.start(t, binaries, sources)

	return r
}

// prepare makes ready what the values render, without installing it.
func prepare(t *testing.T, hub *env.Hub, values string) *running {
	t.Helper()

	r := &running{hub: hub, manifest: stream(mustRender(t, values))}
	r.objects = decode(t, r.manifest)

	// The test has those of the user's.
	if _, leaves := certificates(t, r.objects); len(leaves) > 0 {
		r.secrets = issueSecrets(t, r.objects)
	}

	for _, object := range r.objects {
		if kind := object.GetKind(); kind != "StatefulSet" && kind != "Deployment" {
			continue
		}

		if p := newPod(t, hub, object); object.GetLabels()["app.kubernetes.io/name"] == "omni-apiserver" {
			r.apiserver = p
		} else {
			r.controllers = append(r.controllers, p)
		}
	}

	return r
}

// start starts the programs of what is installed; sources are the content of Secrets and ConfigMaps by name.
func (r *running) start(t *testing.T, binaries env.Binaries, sources map[string]map[string]string) {
	t.Helper()

	// A test that fails does not come to its end, and the next one starts programs of the same names.
	t.Cleanup(func() {
		for _, program := range r.programs {
			if program.Running() {
				program.Kill()
			}
		}
	})

	r.apiserver.fillIssued(t, r.secrets)

	for name, files := range sources {
		r.apiserver.fill(t, name, files)
	}

	r.programs = append(r.programs, r.apiserver.start(t, r.hub, binaries))
	registration := find(t, r.objects, "APIService", "v1alpha1.omni.texashpc.com")
	connectAPI(t, r.hub, registration, r.secrets, r.apiserver.Port(8443))

	for _, controller := range r.controllers {
		controller.fillIssued(t, r.secrets)
		r.programs = append(r.programs, controller.start(t, r.hub, binaries))
	}
}

// stop ends the programs within the grace that the Pods have, and takes the installation away.
func (r *running) stop(t *testing.T) {
	t.Helper()

	// Not while the objects' finalizers would wait for a controller.
	r.end(t)

	// A token's Secret goes with its account.
	kubectl(t, r.hub, r.manifest, "delete", "--ignore-not-found", "-f", "-")

	r.removeLogs(t)
}

// end stops the programs.
func (r *running) end(t *testing.T) {
	t.Helper()

	for i := len(r.programs) - 1; i >= 0; i-- {
		if err := r.programs[i].Stop(); err != nil {
			t.Error(err)
		}
	}
}

// removeLogs lets the next deployment's programs begin new files of the same names.
func (r *running) removeLogs(t *testing.T) {
	t.Helper()

	if t.Failed() {
		return // the logs are shown
	}

	for _, program := range r.programs {
		if err := os.Remove(program.LogPath()); err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Error(err)
		}
	}
}

// logs is what the programs said, for a failure.
func (r *running) logs() string {
	var b strings.Builder

	for _, program := range r.programs {
		content, err := os.ReadFile(program.LogPath())
		fmt.Fprintf(&b, "== %s (%v)\n%s\n", program.LogPath(), err, content[max(0, len(content)-4000):])
	}

	return b.String()
}

// externalEtcd returns values for the hub's own etcd and one controller for all namespaces, and the files with which
// etcd is to be trusted.
func externalEtcd(t *testing.T, hub *env.Hub) (values string, files map[string]string) {
	t.Helper()

	flags := map[string]string{}

	for _, arg := range hub.EtcdArgs() {
		name, value, _ := strings.Cut(arg, "=")
		flags[name] = value
	}

	return fmt.Sprintf(`
controller: {allNamespaces: true}
apiserver:
  etcd:
    embedded: {enabled: false}
    external: {servers: [%q], tlsSecretName: etcd-client}
`, flags["--etcd-servers"]), map[string]string{
			"ca.crt":  read(t, flags["--etcd-cafile"]),
			"tls.crt": read(t, flags["--etcd-certfile"]),
			"tls.key": read(t, flags["--etcd-keyfile"]),
		}
}

// checkAudit: the log has what the rendered policy asks for, and no object's content.
func checkAudit(t *testing.T, r *running) {
	t.Helper()

	if err := env.Eventually(t.Context(), eventuallyTimeout, "an audit event", func(context.Context) error {
		log := read(t, r.programs[0].LogPath())

		switch {
		case !strings.Contains(log, `"resource":"omniconnections"`):
			return errors.New("there is none of omniconnections")
		case strings.Contains(log, `"resource":"omniclusters"`), strings.Contains(log, `"requestObject"`):
			t.Error("the audit log has more than its policy says")
		}

		return nil
	}); err != nil {
		t.Fatal(err)
	}
}
