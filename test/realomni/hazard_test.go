//go:build realomni

package realomni

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cosi-project/runtime/pkg/resource"
	"github.com/cosi-project/runtime/pkg/state"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/siderolabs/omni/client/pkg/omni/resources"
	"github.com/siderolabs/omni/client/pkg/omni/resources/omni"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/test/env"
	"omni.texashpc.com/omni-cluster-operator/test/omnisim"
)

// settleTime is that of the scenario's controller, with time for a look at Omni after it.
const settleTime = 3 * time.Second

// Machines that the real Omni has never seen: it waits for them, and everything else happens.
const (
	machine0 = "27c16241-96bf-4f17-9579-000000000010"
	machine1 = "27c16241-96bf-4f17-9579-000000000011"
	machine2 = "27c16241-96bf-4f17-9579-000000000012"
)

// hazard is one accident with a cluster of its own: a control plane machine0, and a worker set w
// with machine1.
type hazard struct {
	name string
	spec string // lines of the OmniCluster's spec, indented by two
	bare bool   // when makes the cluster
	when func(*victim)
	says []seen
	// left is what Omni has of the cluster after the settle time, as Kind name-without-cluster.
	left []string
	then func(*victim)
}

type seen struct {
	condition string
	status    metav1.ConditionStatus
	reason    string
	words     []string
}

// victim is the cluster of one hazard.
type victim struct {
	*scenario
	cluster string
}

// whole is what Omni has of a cluster to which nothing happened.
func whole(more ...string) []string {
	return slices.Sorted(slices.Values(append(more,
		"Cluster", "MachineSet control-planes", "MachineSet w", "MachineSetNode "+machine0, "MachineSetNode "+machine1)))
}

// TestHazard runs the rows one after another, against one stack.
func TestHazard(t *testing.T) {
	s := &scenario{T: t}
	s.start()
	s.apply(connectionManifests(t) + "---\n" + strings.Replace(connectionManifests(t), "metadata: {name: omni}", "metadata: {name: second}", 1))
	s.kubectl("wait", "oconn/omni", "--for=condition=Ready", "--timeout=60s")

	for i, row := range hazards() {
		t.Run(row.name, func(t *testing.T) {
			row.run(&victim{scenario: &scenario{T: t, stack: s.stack, other: s.other}, cluster: fmt.Sprintf("hazard-%d", i)})
		})
	}
}

func (h hazard) run(v *victim) {
	if !h.bare {
		v.documents(h.spec, machine1)
		// The cluster may be synced once without its workers, if the controller saw them late.
		v.kubectl("wait", "ow/"+v.cluster+"-w", "--for=condition=Synced", "--timeout=60s")
		v.says(seen{condition: v1alpha1.ConditionSynced, status: metav1.ConditionTrue})
	}

	h.when(v)

	for _, want := range h.says {
		v.says(want)
	}

	time.Sleep(settleTime) // in which nothing may happen that no poll would see

	if diff := cmp.Diff(h.left, v.parts()); diff != "" {
		v.Errorf("left in Omni (-want +got):\n%s", diff)
	}

	if h.then != nil {
		h.then(v)
	}

	v.cleanUp()
}

// documents applies the cluster with its machines in worker set w.
func (v *victim) documents(spec string, machines ...string) {
	v.Helper()
	v.apply(v.clusterManifest(spec) + v.setManifest("OmniControlPlane", "cp", machine0) + v.setManifest("OmniWorkers", "w", machines...))
}

func (v *victim) clusterManifest(spec string) string {
	return fmt.Sprintf(`apiVersion: omni.texashpc.com/v1alpha1
kind: OmniCluster
metadata: {name: %s}
spec:
  connectionRef: {name: omni}
  kubernetes: {version: v1.35.1}
  talos: {version: v1.13.3}
%s
---
`, v.cluster, spec)
}

// setManifest is a set of the cluster. Its object and its set have the cluster's name before.
func (v *victim) setManifest(kind, name string, machines ...string) string {
	set := ""
	if kind == "OmniWorkers" {
		set = "  workerSetName: " + name + "\n"
	}

	return fmt.Sprintf(`apiVersion: omni.texashpc.com/v1alpha1
kind: %s
metadata: {name: %s-%s}
spec:
  clusterRef: {name: %[2]s}
%[4]s  machines: [%[5]s]
---
`, kind, v.cluster, name, set, strings.Join(machines, ", "))
}

// says waits for a condition of the current generation, and checks the words of its message.
func (v *victim) says(want seen) {
	v.Helper()

	var message string

	if err := env.Eventually(v.Context(), eventually, fmt.Sprint(want), func(context.Context) error {
		out, _, err := v.stack.Kubectl(v.Context(), "-n", namespace, "get", "ocl", v.cluster, "-o", "json")
		if err != nil {
			return err
		}

		var cluster v1alpha1.OmniCluster
		if err := json.Unmarshal([]byte(out), &cluster); err != nil {
			return err
		}

		for _, c := range cluster.Status.Conditions {
			if cluster.Status.ObservedGeneration == cluster.Generation && c.Type == want.condition && c.Status == want.status &&
				(want.reason == "" || c.Reason == want.reason) {
				message = c.Message

				return nil
			}
		}

		return fmt.Errorf("conditions %+v", cluster.Status.Conditions)
	}); err != nil {
		v.Fatal(err)
	}

	v.Logf("%s: %s: %s", want.condition, want.reason, message)

	for _, word := range want.words {
		if !strings.Contains(message, word) {
			v.Errorf("the message does not say %q: %s", word, message)
		}
	}
}

// parts are what Omni has of the cluster and does not destroy, without the cluster's name.
func (v *victim) parts() []string {
	v.Helper()

	var parts []string

	if view := v.view(); view.Exists && !view.Deleting {
		parts = append(parts, "Cluster")
	}

	for _, kind := range []resource.Type{omni.MachineSetType, omni.MachineSetNodeType, omni.ConfigPatchType} {
		list, err := v.other.List(v.Context(), resource.NewMetadata(resources.DefaultNamespace, kind, "", resource.VersionUndefined),
			state.WithLabelQuery(resource.LabelEqual(omni.LabelCluster, v.cluster)))
		if err != nil {
			v.Fatal(err)
		}

		for _, res := range list.Items {
			if res.Metadata().Phase() == resource.PhaseRunning && res.Metadata().Owner() == "" {
				parts = append(parts, strings.TrimSuffix(kind, "s.omni.sidero.dev")+" "+strings.TrimPrefix(res.Metadata().ID(), v.cluster+"-"))
			}
		}
	}

	return slices.Sorted(slices.Values(parts))
}

// status of the OmniCluster at a JSON path.
func (v *victim) read(path string) string {
	v.Helper()

	out, _, err := v.stack.Kubectl(v.Context(), "-n", namespace, "get", "ocl", v.cluster, "-o", "jsonpath={"+path+"}")
	if err != nil {
		v.Fatal(err)
	}

	return out
}

func (v *victim) merge(patch string) {
	v.Helper()
	v.kubectl("patch", "ocl", v.cluster, "--type=merge", "-p", patch)
}

// cleanUp removes the cluster from Kubernetes and from Omni, whatever became of it.
func (v *victim) cleanUp() {
	v.Helper()
	v.kubectl("delete", "ow,ocp,ocl", "--all", "--wait=false")
	v.removeInOmni()
	v.kubectl("wait", "ocl", "--all", "--for=delete", "--timeout=60s")
}

// view is what Omni has of the cluster.
func (v *victim) view() omnisim.ClusterView {
	v.Helper()

	view, err := omnisim.ReadCluster(v.Context(), v.other, v.cluster)
	if err != nil {
		v.Fatal(err)
	}

	return view
}

// removeInOmni removes the cluster as somebody in Omni's interface would, if it is there.
func (v *victim) removeInOmni() {
	v.Helper()

	_ = omnisim.RemoveAnnotation(v.Context(), v.other, v.cluster, omni.ClusterLocked) // if there is one

	// The controller may be about to do the same.
	if _, err := v.other.Teardown(v.Context(), omni.NewCluster(v.cluster).Metadata()); err != nil && !state.IsNotFoundError(err) && v.view().Exists && !v.view().Deleting {
		v.Fatal(err)
	}

	if err := env.Eventually(v.Context(), eventually, "the cluster to leave Omni", func(context.Context) error {
		if view := v.view(); view.Exists {
			return fmt.Errorf("Omni has %+v", view)
		}

		return nil
	}); err != nil {
		v.Fatal(err)
	}
}

// create makes resources of the cluster as Omni's interface does.
func (v *victim) create(all ...resource.Resource) {
	v.Helper()

	for _, res := range all {
		res.Metadata().Labels().Set(omni.LabelCluster, v.cluster)

		if err := v.other.Create(v.Context(), res); err != nil {
			v.Fatal(err)
		}
	}
}

// handmadeSet is a worker set of the cluster that no document knows.
func (v *victim) handmadeSet(name, role string) *omni.MachineSet {
	set := omni.NewMachineSet(v.cluster + "-" + name)
	set.Metadata().Labels().Set(omni.LabelCluster, v.cluster)
	set.Metadata().Labels().Set(role, "")

	return set
}

// foreign makes a cluster of this name by hand, with a set named by-hand.
func (v *victim) foreign() {
	v.Helper()

	if err := omnisim.CreateForeignCluster(v.Context(), v.other, v.cluster, "1.35.1", "1.13.3"); err != nil {
		v.Fatal(err)
	}

	v.create(v.handmadeSet("control-planes", omni.LabelControlPlaneRole), v.handmadeSet("by-hand", omni.LabelWorkerRole))
}
