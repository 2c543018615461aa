package e2eflux

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/test/env"
	"omni.texashpc.com/omni-cluster-operator/test/omnisim"
)

const (
	// eventually bounds every wait of these tests; what is waited for takes seconds on an idle machine.
	eventually = 3 * time.Minute
	// phase of the simulators' engines.
	phase = 50 * time.Millisecond
	// controlPlaneMachine is the ID of a machine that every Omni of these tests knows.
	controlPlaneMachine = "1c3f5d1e-0d59-4d0c-9f0a-6a5c0f6f1a01"
	// keySecret holds the key of the Omni service account.
	keySecret = "omni-service-account"
)

// desk is one test's place in Flux's namespace: an Omni with one known machine and six machines of
// class general, and a source of manifests.
type desk struct {
	t      *testing.T
	omni   *omnisim.Server
	source *source
	files  map[string]string // the source's content, by path
}

func newDesk(t *testing.T) *desk {
	t.Helper()

	sim, err := omnisim.Start(omnisim.Options{Phase: phase})
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(sim.Close)

	d := &desk{t: t, omni: sim, source: newSource(t), files: map[string]string{}}

	key, err := sim.CreateServiceAccount("operator", omnisim.RoleOperator, 30*24*time.Hour)
	if err != nil {
		t.Fatal(err)
	}

	if _, err := sim.AddMachine(omnisim.Machine{ID: controlPlaneMachine}); err != nil {
		t.Fatal(err)
	}

	if err := sim.AddMachineClass("general", "pool = general"); err != nil {
		t.Fatal(err)
	}

	for range 6 {
		if _, err := sim.AddMachine(omnisim.Machine{Labels: map[string]string{"pool": "general"}}); err != nil {
			t.Fatal(err)
		}
	}

	t.Cleanup(d.clear)
	d.apply(fmt.Sprintf("apiVersion: v1\nkind: Secret\nmetadata: {name: %s, annotations: {omni.texashpc.com/allowed-endpoints: %q}}\nstringData: {serviceAccountKey: %q}",
		keySecret, sim.Endpoint(), key))

	return d
}

// clear empties the namespace for the next test: first what Flux keeps elsewhere, then what it
// keeps here, then the rest.
func (d *desk) clear() {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(d.t.Context()), eventually)
	defer cancel()

	for _, args := range [][]string{
		{"delete", "kustomizations.kustomize.toolkit.fluxcd.io", "-l", "where=spoke"},
		{"delete", "helmreleases.helm.toolkit.fluxcd.io", "--all"},
		{"delete", "kustomizations.kustomize.toolkit.fluxcd.io", "--all"},
		{"delete", "ocirepositories.source.toolkit.fluxcd.io,helmrepositories.source.toolkit.fluxcd.io,gitrepositories.source.toolkit.fluxcd.io", "--all"},
		{"delete", "omni", "--all"},
		{"delete", "secret,configmap", "--all"},
	} {
		if _, _, err := stack.Kubectl(ctx, append([]string{"-n", env.FluxNamespace}, args...)...); err != nil {
			d.t.Errorf("clear the namespace: %v", err)
		}
	}
}

// attach puts a real Kubernetes behind a cluster of Omni.
func (d *desk) attach(cluster string) *env.Hub {
	d.t.Helper()

	hub := workloads.Borrow(d.t)
	// Before the cluster is emptied, with its RBAC, for the next test.
	d.t.Cleanup(d.clear)

	cert, key := hub.FrontProxyClient()

	if err := d.omni.AttachWorkload(cluster, omnisim.Workload{URL: hub.URL(), CA: hub.CA(), ProxyCert: cert, ProxyKey: key}); err != nil {
		d.t.Fatal(err)
	}

	return hub
}

// try runs kubectl in Flux's namespace and returns what it printed on both streams.
func (d *desk) try(stdin string, args ...string) (string, error) {
	d.t.Helper()

	stdout, stderr, err := stack.KubectlInput(d.t.Context(), strings.NewReader(stdin), append([]string{"-n", env.FluxNamespace}, args...)...)

	return stdout + stderr, err
}

// run is try for a call that has to succeed.
func (d *desk) run(args ...string) string {
	d.t.Helper()

	out, err := d.try("", args...)
	if err != nil {
		d.t.Fatal(err)
	}

	return out
}

func (d *desk) apply(manifests ...string) {
	d.t.Helper()

	if _, err := d.try(strings.Join(manifests, "\n---\n"), "apply", "-f", "-"); err != nil {
		d.t.Fatal(err)
	}
}

// wait polls until check returns nil.
func (d *desk) wait(what string, check func() error) {
	d.t.Helper()

	start := time.Now()

	if err := env.Eventually(d.t.Context(), eventually, what, func(context.Context) error { return check() }); err != nil {
		d.t.Fatal(err)
	}

	d.t.Logf("%5.1f s for %s", time.Since(start).Seconds(), what)
}

// object is what these tests look at in objects of all kinds.
type object struct {
	metav1.ObjectMeta `json:"metadata"`

	Status struct {
		v1alpha1.ReconcileStatus `json:",inline"`

		LastAppliedRevision string `json:"lastAppliedRevision"`

		// History of a Kustomization or HelmRelease, the newest first.
		History []struct {
			LastReconciled metav1.Time `json:"lastReconciled"`
		} `json:"history"`
	} `json:"status"`
}

// get reads an object.
func get[T any](d *desk, resource, name string) T {
	d.t.Helper()

	read, err := tryGet[T](d, resource, name)
	if err != nil {
		d.t.Fatal(err)
	}

	return read
}

func tryGet[T any](d *desk, resource, name string) (read T, err error) {
	out, err := d.try("", "get", resource, name, "-o", "json")
	if err != nil {
		return read, err
	}

	return read, json.Unmarshal([]byte(out), &read)
}

// secret reads a Secret of Flux's namespace.
func (d *desk) secret(name string) corev1.Secret {
	d.t.Helper()

	return get[corev1.Secret](d, "secret", name)
}

// waitGone waits until the object does not exist.
func (d *desk) waitGone(resource, name string) {
	d.t.Helper()
	d.wait(resource+" "+name+" to be gone", func() error {
		out, err := d.try("", "get", resource, name, "-o", "jsonpath={.status.conditions}")
		if err != nil && strings.Contains(err.Error(), "NotFound") {
			return nil
		}

		return fmt.Errorf("still there: %s %w", out, err)
	})
}
