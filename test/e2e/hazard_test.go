package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// The rule of these tests: nothing in Omni is ever destroyed that the user did not clearly ask to
// destroy, and nothing that was asked for is forgotten. docs/concepts/remote-safety.md lists them.

// hazard is one accident: what is there, what happens, what is seen, what is destroyed. Unless a
// row says otherwise there is cluster c, Ready, with one control plane m0 and a worker set c-w of
// two machines of a class.
type hazard struct {
	name string
	// spec are lines of the OmniCluster's spec, indented by two.
	spec string
	// given applies more documents of cluster c before it.
	given func(*fleet)
	// bare leaves it to when to make cluster c.
	bare bool
	// when is the accident.
	when func(*fleet)
	// says are the conditions of OmniCluster c that follow, in this order.
	says []seen
	// destroyed is all that our operator tears down in Omni from the beginning until the settle
	// time after the accident is over. If it is empty, nothing was even asked for.
	destroyed []string
	// machines are those of each machine set after that; nil: the cluster is as it was made.
	// An empty map: the cluster is gone.
	machines map[string]int
	// then is how it ends, with checks of its own.
	then func(*fleet)
	// finally is what is destroyed when it has ended. Nil: the same as destroyed.
	finally []string
}

// seen is a condition, and words of its message.
type seen struct {
	condition string
	status    metav1.ConditionStatus
	reason    string
	words     []string
}

func stalled(reason string, words ...string) seen {
	return seen{v1alpha1.ConditionStalled, metav1.ConditionTrue, reason, words}
}

func notSynced(reason string, words ...string) seen {
	return seen{v1alpha1.ConditionSynced, metav1.ConditionFalse, reason, words}
}

func notReady(reason string, words ...string) seen {
	return seen{v1alpha1.ConditionReady, metav1.ConditionFalse, reason, words}
}

func deletionBlocked(reason string, words ...string) seen {
	return seen{v1alpha1.ConditionDeletionBlocked, metav1.ConditionTrue, reason, words}
}

func ready() seen { return seen{condition: v1alpha1.ConditionReady, status: metav1.ConditionTrue} }

// The versions of Omni in front of which the rows run. Every other test has omnisim.DefaultVersion.
const (
	oldestOmni = "1.9"
	newestOmni = "1.14"
)

// TestHazard runs the rows that share the controller with each other.
func TestHazard(t *testing.T) {
	t.Parallel()
	runHazards(t, newestOmni, slices.Concat(documentHazards(), objectHazards(), ownershipHazards(), handmadeHazards(), omniHazards(), partHazards(), editHazards()))
}

// TestHazardOldestOmni runs the rows of which Omni itself, and what is written there, decides most.
func TestHazardOldestOmni(t *testing.T) {
	t.Parallel()
	runHazards(t, oldestOmni, slices.Concat(ownershipHazards(), handmadeHazards(), partHazards()))
}

func runHazards(t *testing.T, omniVersion string, rows []hazard) {
	t.Helper()

	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			inFreshFleets(t, omniVersion, row.run)
		})
	}
}

func (h hazard) run(f *fleet) {
	f.t.Helper()

	if h.given != nil {
		h.given(f)
	}

	if !h.bare {
		f.cluster("c", h.spec)
		f.follow("c")
	}

	intact := f.view("c").Machines

	if h.when(f); f.late {
		return
	}

	for _, want := range h.says {
		if want.reason == v1alpha1.ReasonWaitingToSettle {
			f.settles(want.words...)

			continue
		}

		f.says("c", want.condition, want.status, want.reason, want.words...)
	}

	f.settle("c")
	f.wantDestroyed(h.destroyed...)

	if h.machines != nil {
		intact = h.machines
	}

	// Omni itself may still be at work on what was asked for.
	f.wait("the machines in Omni", func() error {
		if diff := cmp.Diff(intact, f.view("c").Machines); diff != "" && (len(intact) > 0 || f.view("c").Exists) {
			return fmt.Errorf("(-want +got):\n%s", diff)
		}

		return nil
	})
	f.wantDestroyed(h.destroyed...)

	if h.then == nil {
		return
	}

	h.then(f)

	if h.finally == nil {
		h.finally = h.destroyed
	}

	f.wantDestroyed(h.finally...)
}

// settle lets the settle time pass, in which nothing may happen that no poll would see, and lets
// the controller look once more at the cluster, if it is still there.
func (f *fleet) settle(name string) {
	f.t.Helper()
	time.Sleep(settleTime + time.Second)

	if _, err := tryGet[v1alpha1.OmniCluster](f.space, "ocl", name); err == nil {
		f.reconciled(name)
	}
}

// destroyed lists what our operator asked Omni to tear down, in order, each once. Machines are
// called by their place in the fleet.
func (f *fleet) destroyed() []string {
	var (
		all   []string
		names []string
	)

	for i, machine := range f.machines {
		names = append(names, machine, fmt.Sprintf("m%d", i))
	}

	for _, write := range f.omni.Writes() {
		kind := strings.TrimSuffix(strings.TrimSuffix(write.Type, ".omni.sidero.dev"), "s")
		if kind == "ConfigPatche" {
			kind = "ConfigPatch"
		}

		line := strings.NewReplacer(names...).Replace(kind + " " + write.ID)
		if (write.Verb == "Teardown" || write.Verb == "Destroy") && !slices.Contains(all, line) {
			all = append(all, line)
		}
	}

	slices.Sort(all)

	return all
}

// wantDestroyed compares with what may be destroyed, literally. If that is nothing, there must not
// have been a request, whatever Omni answered.
func (f *fleet) wantDestroyed(want ...string) {
	f.t.Helper()

	if wrong := f.destroyedOtherThan(want...); wrong != "" {
		f.t.Error(wrong)
	}
}

func (f *fleet) destroyedOtherThan(want ...string) string {
	wrong := ""
	if diff := cmp.Diff(want, f.destroyed()); diff != "" {
		wrong = "destroyed in Omni (-want +got):\n" + diff
	}

	for request, count := range f.omni.Requests() {
		if len(want) == 0 && slices.Contains([]string{"Teardown", "Destroy", "TeardownAndDestroy"}, request.Method) {
			wrong += fmt.Sprintf("\n%d requests to destroy %s", count, request.Type)
		}
	}

	return wrong
}

// unchanged checks that a cluster of fleet.cluster has all of its machines, and that nothing was destroyed.
func (f *fleet) unchanged(name string) {
	f.t.Helper()
	f.wantDestroyed()

	if diff := cmp.Diff(map[string]int{name + "-control-planes": 1, name + "-" + name + "-w": 2}, f.view(name).Machines); diff != "" {
		f.t.Errorf("machines in Omni (-want +got):\n%s", diff)
	}
}

// known waits until the controller knows these documents of a cluster that is not there yet. Events of different
// kinds have no order: of documents that are applied together, it may know the cluster's first, and plan without
// the others.
func (f *fleet) known(documents ...string) {
	f.t.Helper()

	for _, document := range documents {
		resource, name, _ := strings.Cut(document, "/")
		f.waitCondition(resource, name, v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonClusterNotFound)
	}
}

// reconciled waits until the controller has looked at the cluster once more.
func (f *fleet) reconciled(name string) v1alpha1.OmniCluster {
	f.t.Helper()

	request := time.Now().Format(time.RFC3339Nano)
	f.request("ocl", name, request)

	var cluster v1alpha1.OmniCluster

	f.wait("the request to be handled", func() error {
		return followObject(f.space, "ocl", name, func(object v1alpha1.OmniCluster, err error) error {
			if cluster = object; err == nil && cluster.Status.LastHandledReconcileAt != request {
				err = fmt.Errorf("handled %q", cluster.Status.LastHandledReconcileAt)
			}

			return err
		})
	})

	return cluster
}

// ready waits until OmniCluster c is Ready with what its documents say now.
func (f *fleet) ready(name string) {
	f.t.Helper()
	f.reconciled(name)
	f.waitCondition("ocl", name, v1alpha1.ConditionReady, metav1.ConditionTrue, "")
}

func (f *fleet) waitRemoteGone(name string) {
	f.t.Helper()
	f.wait("cluster "+name+" to leave Omni", func() error {
		if view := f.view(name); view.Exists {
			return fmt.Errorf("Omni has %+v", view)
		}

		return nil
	})
}

// deleted waits until an OmniCluster is gone, and its cluster in Omni.
func (f *fleet) deleted(name string) {
	f.t.Helper()
	f.waitGone("ocl", name)
	f.waitRemoteGone(name)
}

// merge patches OmniCluster c.
func (f *fleet) merge(patch string) {
	f.t.Helper()
	must(f.ours("omniclusters").Patch(f.t.Context(), "c", types.MergePatchType, []byte(patch), metav1.PatchOptions{}))(f.t)
}

// says waits for a condition whose message names what helps.
func (f *fleet) says(name, condition string, status metav1.ConditionStatus, reason string, texts ...string) {
	f.t.Helper()
	f.t.Logf("%s: %s: %s", condition, reason, f.waitCondition("ocl", name, condition, status, reason, texts...))
}
