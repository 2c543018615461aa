package omnisim_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cosi-project/runtime/pkg/resource"
	"github.com/cosi-project/runtime/pkg/safe"
	"github.com/cosi-project/runtime/pkg/state"

	"github.com/siderolabs/omni/client/api/omni/specs"
	"github.com/siderolabs/omni/client/pkg/omni/resources/omni"

	"omni.texashpc.com/omni-cluster-operator/test/omnisim"
)

const (
	oneNamespace = "apiVersion: v1\nkind: Namespace\nmetadata: {name: apps}\n"
	oneWidget    = "apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: w, namespace: apps}\n"
)

// putManifests writes a group of manifests of cluster alpha.
func putManifests(t *testing.T, st state.State, id string, mode specs.KubernetesManifestGroupSpec_Mode, text string) {
	t.Helper()

	fill := func(group *omni.KubernetesManifestGroup) error {
		group.Metadata().Labels().Set(omni.LabelCluster, "alpha")
		group.TypedSpec().Value.Mode = mode

		return group.TypedSpec().Value.SetUncompressedData([]byte(text))
	}

	group := omni.NewKubernetesManifestGroup(id)
	if err := fill(group); err != nil {
		t.Fatal(err)
	}

	err := st.Create(deadline(t), group)
	if state.IsConflictError(err) {
		_, err = safe.StateUpdateWithConflicts(deadline(t), st, group.Metadata(), fill)
	}

	if err != nil {
		t.Fatal(err)
	}
}

// manifestsOf returns what Omni says of the manifests of cluster alpha, in one line: the counts, the error, and each manifest
// with its phase. It is empty if Omni says nothing.
func manifestsOf(t *testing.T, st state.State) string {
	t.Helper()

	status, err := safe.StateGetByID[*omni.ClusterKubernetesManifestsStatus](deadline(t), st, "alpha")
	if state.IsNotFoundError(err) {
		return ""
	}

	if err != nil {
		t.Fatal(err)
	}

	if owner := status.Metadata().Owner(); owner != "ClusterKubernetesManifestsStatusController" {
		t.Errorf("owner %q", owner)
	}

	return manifestsIn(status)
}

func manifestsIn(status *omni.ClusterKubernetesManifestsStatus) string {
	spec := status.TypedSpec().Value

	var lines []string

	for id, group := range spec.GetGroups() {
		for _, manifest := range group.GetManifests() {
			lines = append(lines, fmt.Sprintf("%s/%s %s", id, manifest.GetKind(), manifest.GetPhase()))
		}
	}

	slices.Sort(lines)

	return strings.TrimSpace(fmt.Sprintf("%d/%d %s %s", spec.GetOutOfSync(), spec.GetTotal(), strings.Join(lines, ", "), spec.GetLastError()))
}

// watchManifests returns a function that returns all that Omni has said of the manifests of cluster alpha since the call before.
func watchManifests(t *testing.T, st state.State) func() []string {
	t.Helper()

	events := make(chan state.Event)
	if err := st.Watch(deadline(t), omni.NewClusterKubernetesManifestsStatus("alpha").Metadata(), events); err != nil {
		t.Fatal(err)
	}

	return func() []string {
		var said []string

		for {
			select {
			case event := <-events:
				if status, ok := event.Resource.(*omni.ClusterKubernetesManifestsStatus); ok && event.Type != state.Destroyed {
					said = append(said, manifestsIn(status))
				}
			case <-time.After(100 * time.Millisecond):
				return said
			}
		}
	}
}

// untilManifests advances until Omni says something of the manifests.
func untilManifests(t *testing.T, sim *omnisim.Server, st state.State, want string) {
	t.Helper()
	stepUntil(t, sim, want, func() bool { return manifestsOf(t, st) == want })
}

// remains checks that some steps change nothing.
func remains(t *testing.T, sim *omnisim.Server, st state.State, want string) {
	t.Helper()

	for range 5 {
		sim.Step()
	}

	if got := manifestsOf(t, st); got != want {
		t.Fatalf("it became %q, was %q", got, want)
	}
}

func removeManifests(t *testing.T, st state.State, id string) {
	t.Helper()

	if _, err := st.Teardown(deadline(t), omni.NewKubernetesManifestGroup(id).Metadata()); err != nil {
		t.Fatal(err)
	}
}

// TestManifestsAreAppliedAndGo checks the two writes, and that objects go with their group, except those that were applied once.
func TestManifestsAreAppliedAndGo(t *testing.T) {
	sim, st, _ := manualCluster(t)
	full, oneTime := specs.KubernetesManifestGroupSpec_FULL, specs.KubernetesManifestGroupSpec_ONE_TIME

	remains(t, sim, st, "")

	said := watchManifests(t, st)
	wantSaid := func(want ...string) {
		t.Helper()

		got := said()
		if last := got[max(0, len(got)-len(want)):]; !slices.Equal(last, want) || len(want) == 0 && len(got) > 0 {
			t.Errorf("Omni said %q", got)
		}
	}

	putManifests(t, st, "a", full, oneNamespace)
	untilManifests(t, sim, st, "0/1 a/Namespace APPLIED")
	wantSaid("1/1 a/Namespace PENDING", "0/1 a/Namespace APPLIED")
	remains(t, sim, st, "0/1 a/Namespace APPLIED")
	wantSaid()

	putManifests(t, st, "a", full, oneNamespace+"---\n"+oneWidget)
	putManifests(t, st, "b", oneTime, oneWidget)
	untilManifests(t, sim, st, "0/3 a/Namespace APPLIED, a/Widget APPLIED, b/Widget APPLIED")

	putManifests(t, st, "b", oneTime, oneNamespace)
	remains(t, sim, st, "0/3 a/Namespace APPLIED, a/Widget APPLIED, b/Widget APPLIED")

	putManifests(t, st, "a", full, oneNamespace)
	untilManifests(t, sim, st, "0/2 a/Namespace APPLIED, b/Widget APPLIED")
	wantSaid("1/3 a/Namespace APPLIED, a/Widget DELETING, b/Widget APPLIED", "0/2 a/Namespace APPLIED, b/Widget APPLIED")

	removeManifests(t, st, "b")
	untilManifests(t, sim, st, "0/1 a/Namespace APPLIED")
	removeManifests(t, st, "a")
	untilManifests(t, sim, st, "0/0")
	wantSaid("0/1 a/Namespace APPLIED", "1/1 a/Namespace DELETING", "0/0")
}

// TestManifestsThatAreNotApplied checks what Omni says of manifests that the cluster refuses, or does not know.
func TestManifestsThatAreNotApplied(t *testing.T) {
	sim, st, _ := manualCluster(t)
	full := specs.KubernetesManifestGroupSpec_FULL
	const refused = "failed calling webhook"

	putManifests(t, st, "a", full, oneNamespace)
	untilManifests(t, sim, st, "0/1 a/Namespace APPLIED")

	// Of an object that the cluster has, only the error tells.
	sim.RefuseManifests("alpha", refused)
	putManifests(t, st, "a", full, oneNamespace+"# changed\n")
	untilManifests(t, sim, st, "0/1 a/Namespace APPLIED "+refused)
	putManifests(t, st, "b", full, oneWidget)
	untilManifests(t, sim, st, "1/2 a/Namespace APPLIED, b/Widget PENDING "+refused)
	remains(t, sim, st, "1/2 a/Namespace APPLIED, b/Widget PENDING "+refused)
	sim.RefuseManifests("alpha", "")
	untilManifests(t, sim, st, "0/2 a/Namespace APPLIED, b/Widget APPLIED")

	sim.SetKindUnknown("alpha", "Gadget", true)
	putManifests(t, st, "c", full, strings.ReplaceAll(oneWidget, "Widget", "Gadget")+"---\n"+oneNamespace)
	untilManifests(t, sim, st, "1/4 a/Namespace APPLIED, b/Widget APPLIED, c/Gadget PENDING, c/Namespace APPLIED")
	remains(t, sim, st, "1/4 a/Namespace APPLIED, b/Widget APPLIED, c/Gadget PENDING, c/Namespace APPLIED")
	sim.SetKindUnknown("alpha", "Gadget", false)
	untilManifests(t, sim, st, "0/4 a/Namespace APPLIED, b/Widget APPLIED, c/Gadget APPLIED, c/Namespace APPLIED")
}

// TestManifestsOfAClusterThatOmniDoesNotTouch has a cluster locked, and dead. Its status stays as it was, and ends with it.
func TestManifestsOfAClusterThatOmniDoesNotTouch(t *testing.T) {
	sim, st, machines := manualCluster(t)
	full := specs.KubernetesManifestGroupSpec_FULL

	lock := func(locked bool) {
		t.Helper()

		_, err := safe.StateUpdateWithConflicts(deadline(t), st, omni.NewCluster("alpha").Metadata(), func(cluster *omni.Cluster) error {
			if locked {
				cluster.Metadata().Annotations().Set(omni.ClusterLocked, "")
			} else {
				cluster.Metadata().Annotations().Delete(omni.ClusterLocked)
			}

			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}

	lock(true)
	putManifests(t, st, "a", full, oneNamespace)
	remains(t, sim, st, "")
	lock(false)
	untilManifests(t, sim, st, "0/1 a/Namespace APPLIED")

	sim.KillMachine(machines[0])

	for range 10 {
		sim.Step()
	}

	putManifests(t, st, "b", full, oneWidget)
	remains(t, sim, st, "0/1 a/Namespace APPLIED")

	if err := sim.ReviveMachine(machines[0]); err != nil {
		t.Fatal(err)
	}

	untilManifests(t, sim, st, "0/2 a/Namespace APPLIED, b/Widget APPLIED")

	if _, err := st.Teardown(deadline(t), omni.NewCluster("alpha").Metadata()); err != nil {
		t.Fatal(err)
	}

	untilManifests(t, sim, st, "")
	stepUntil(t, sim, "gone", func() bool {
		_, err := st.Get(deadline(t), omni.NewCluster("alpha").Metadata())

		return state.IsNotFoundError(err)
	})
}

// TestManifestStatusIsReadOnly checks that a client may not write what Omni says of manifests.
func TestManifestStatusIsReadOnly(t *testing.T) {
	sim := start(t, omnisim.Options{})
	reader := connect(t, sim, key(t, sim, omnisim.RoleReader)).Omni().State()

	if _, err := reader.List(deadline(t), omni.NewClusterKubernetesManifestsStatus("").Metadata()); err != nil {
		t.Error(err)
	}

	var forged resource.Resource = omni.NewClusterKubernetesManifestsStatus("forged")
	wantCode(t, operator(t, sim).Create(deadline(t), forged), "PermissionDenied", "only read access")
}
