package e2eflux

import (
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/test/env"
)

// Files of artifacts/examples/flux.
const (
	fluxExample  = "flux.yaml"
	hubExample   = "omni-clusters/cluster-01.yaml"
	spokeExample = "cluster-01/settings.yaml"
)

// examples reads the published example into the desk's source, with this Omni's address, and returns
// what is applied by hand: the objects of Flux.
func (d *desk) examples() string {
	d.t.Helper()

	root, err := env.RepositoryRoot()
	if err != nil {
		d.t.Fatal(err)
	}

	for _, name := range []string{fluxExample, hubExample, spokeExample} {
		content, err := os.ReadFile(filepath.Join(root, "artifacts", "examples", "flux", name))
		if err != nil {
			d.t.Fatal(err)
		}

		d.files[name] = string(content)
	}

	d.change(hubExample, "endpoint: https://omni.example.com",
		fmt.Sprintf("endpoint: %s\n  caBundle: %s", d.omni.Endpoint(), base64.StdEncoding.EncodeToString(d.omni.CAPEM())))
	d.change(fluxExample, "url: oci://registry.example.com/platform", "url: "+d.source.url()+"\n  insecure: true")
	d.change(fluxExample, "  name: cluster-01\n  namespace", "  name: cluster-01\n  labels: {where: spoke}\n  namespace")
	// A failed test should not have to wait for the minutes of a real fleet.
	d.files[fluxExample] = strings.ReplaceAll(d.files[fluxExample], "retryInterval: 1m", "retryInterval: 3s")

	flux := d.files[fluxExample]
	delete(d.files, fluxExample)

	return flux
}

// change replaces a text that has to be there.
func (d *desk) change(file, from, to string) {
	d.t.Helper()

	if !strings.Contains(d.files[file], from) {
		d.t.Fatalf("%s does not contain %q", file, from)
	}

	d.files[file] = strings.Replace(d.files[file], from, to, 1)
}

// manifestsOfOmni returns the objects that Omni keeps in the cluster. The simulator does not apply
// them.
func (d *desk) manifestsOfOmni() string {
	d.t.Helper()

	for document := range strings.SplitSeq(d.files[hubExample], "\n---\n") {
		var cluster v1alpha1.OmniCluster
		if err := yaml.UnmarshalStrict([]byte(document), &cluster); err != nil || cluster.Kind != "OmniCluster" {
			continue
		}

		var out []string
		for _, manifest := range cluster.Spec.Kubernetes.Manifests {
			for _, inline := range manifest.Inline {
				out = append(out, string(inline.Raw))
			}
		}

		return strings.Join(out, "\n---\n")
	}

	d.t.Fatal("there is no OmniCluster")

	return ""
}

// applyTo applies manifests to a workload cluster as its administrator, as Omni does.
func (d *desk) applyTo(hub *env.Hub, manifests string) {
	d.t.Helper()

	if _, _, err := hub.KubectlInput(d.t.Context(), strings.NewReader(manifests), "apply", "-f", "-"); err != nil {
		d.t.Fatal(err)
	}
}

// The published example: Flux makes a cluster, and deploys to it with the exported kubeconfig, which
// may be replaced at any time.
func TestHubAndSpoke(t *testing.T) {
	d := newDesk(t)
	hub := d.attach("cluster-01")
	flux := d.examples()
	revision := d.push()
	d.apply(flux)

	// The kubeconfig is no right: before the binding is there, the spoke says what is missing.
	d.waitApplied("omni-clusters", revision)
	d.wait("the spoke to be refused", func() error {
		err := d.applied("cluster-01", revision)
		if err == nil || !strings.Contains(err.Error(), `User "flux" cannot`) {
			return fmt.Errorf("state: %w", err)
		}

		return nil
	})
	d.applyTo(hub, d.manifestsOfOmni())
	d.waitApplied("cluster-01", revision)
	d.waitMessage(hub, "hello")

	failures := d.record("cluster-01").failures

	t.Run("a kubeconfig for another group", func(t *testing.T) { d.in(t).changesGroup(hub) })
	t.Run("a kubeconfig whose time is over", func(t *testing.T) { d.in(t).renewsInTime(hub) })

	if got := failures(); len(got) > 0 {
		t.Errorf("the spoke was broken between two kubeconfigs: %q", got)
	}

	t.Run("a damaged Secret", func(t *testing.T) { d.in(t).repairs(hub) })

	if answers := d.omni.KubernetesProxyAnswers(); answers[500]+answers[502] > 0 {
		t.Errorf("the proxy answered %v", answers)
	}
}

// in is the desk for a subtest.
func (d *desk) in(t *testing.T) *desk {
	inner := *d
	inner.t = t

	return &inner
}

// changesGroup rotates to a group of another name, and takes the rights of the old one away as soon as
// it is replaced: the next apply can only work with the new kubeconfig.
func (d *desk) changesGroup(hub *env.Hub) {
	binding := strings.NewReplacer(`"name":"flux"},"roleRef"`, `"name":"flux-2"},"roleRef"`, `"kind":"Group","name":"flux"`, `"kind":"Group","name":"flux-2"`)
	d.applyTo(hub, binding.Replace(d.manifestsOfOmni()))

	before := d.export().KubeconfigHash
	d.change(hubExample, "    groups:\n      - flux\n", "    groups:\n      - flux-2\n")

	revision := d.push()
	d.waitApplied("omni-clusters", revision)

	if d.export().KubeconfigHash == before {
		d.t.Error("Flux called the export ready before it was renewed")
	}

	d.waitApplied("cluster-01", revision) // nothing is under way that still needs the old rights

	if err := hub.Client().RbacV1().ClusterRoleBindings().Delete(d.t.Context(), "flux", metav1.DeleteOptions{}); err != nil {
		d.t.Fatal(err)
	}

	d.greet(hub, "hello from group 2")
}

// renewsInTime lets the export renew by its clock; with the shortest times that there are this takes
// a minute.
func (d *desk) renewsInTime(hub *env.Hub) {
	d.change(hubExample, "  ttl: 24h\n  renewBefore: 4h\n", "  ttl: 10m\n  renewBefore: 9m59s\n")

	revision := d.push()
	d.waitApplied("omni-clusters", revision)
	d.waitApplied("cluster-01", revision)

	first := d.export()

	d.wait("the renewal", func() error {
		if d.export().KubeconfigHash == first.KubeconfigHash {
			return errors.New("not renewed")
		}

		return nil
	})
	// The label of the Secret makes Flux look at once, not at the next interval.
	d.wait("Flux to run with the new kubeconfig by itself", func() error {
		runs := get[object](d, "kustomization", "cluster-01").Status.History
		if rotated := d.export().LastRotationTime; len(runs) == 0 || runs[0].LastReconciled.Before(rotated) {
			return fmt.Errorf("renewed at %s; runs %v", rotated, runs)
		}

		return nil
	})
	d.greet(hub, "hello after a renewal")
}

// repairs damages the Secret; Flux may fail once with what it reads, and goes on with the repaired one.
func (d *desk) repairs(hub *env.Hub) {
	d.run("patch", "secret", "cluster-01-kubeconfig", "--type=merge", "-p", `{"data":{"kubeconfig":"ZXZpbA==","value":"ZXZpbA=="}}`)
	d.wait("the repair", func() error {
		if slices.Equal(d.secret("cluster-01-kubeconfig").Data["value"], []byte("evil")) {
			return errors.New("still damaged")
		}

		return nil
	})
	d.greet(hub, "hello after a repair")
}

func (d *desk) export() v1alpha1.OmniKubeconfigExportStatus {
	d.t.Helper()

	return get[v1alpha1.OmniKubeconfigExport](d, "oke", "cluster-01").Status
}

// greet changes what is deployed to the spoke and waits until it is there.
func (d *desk) greet(hub *env.Hub, message string) {
	d.t.Helper()

	lines := strings.SplitAfter(d.files[spokeExample], "message: ")
	d.files[spokeExample] = lines[0] + message + "\n"
	d.waitApplied("cluster-01", d.push())
	d.waitMessage(hub, message)
}

// waitMessage waits until the spoke has what was deployed to it.
func (d *desk) waitMessage(hub *env.Hub, want string) {
	d.t.Helper()
	d.wait("the ConfigMap in the spoke", func() error {
		settings, err := hub.Client().CoreV1().ConfigMaps("greeting").Get(d.t.Context(), "greeting", metav1.GetOptions{})
		if err == nil && settings.Data["message"] != want {
			err = fmt.Errorf("message %q, want %q", settings.Data["message"], want)
		}

		return err
	})
}
