package e2e

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/test/omnisim"
)

// hubsHazard is an accident with two management clusters that have the same objects with the same UIDs: a snapshot of the
// one was restored into the other while both run. Cluster c is there, as in the other hazards, Ready on the first.
type hubsHazard struct {
	name string
	// sameID gives the copy the ID of the first one, as a copy of its whole etcd has it.
	sameID bool
	// when is the accident, and what is seen.
	when func(first, copied *fleet)
	// destroyed is all that is torn down in Omni, by either of them.
	destroyed []string
}

// TestHazardTwoHubs runs the rows one after another, on one copy of the shared management cluster.
func TestHazardTwoHubs(t *testing.T) {
	slow(t)
	t.Parallel()

	rows := hubsHazards()
	fleets := make([]*fleet, len(rows))

	for i := range rows {
		fleets[i] = newFleetIn(t, "-"+strconv.Itoa(i))
		fleets[i].cluster("c", patchNamed("first"))
	}

	hub := copyHub(t)

	for i, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			first := fleets[i].in(t)

			var args []string
			if row.sameID {
				args = append(args, "--hub-id="+first.hubID())
			}

			row.when(first, hub.of(first, args...))
			first.wantDestroyed(row.destroyed...)
		})
	}
}

// patchNamed is a line of a cluster's spec: a patch that sets something to this value.
func patchNamed(value string) string {
	return "  patches: [{name: p, inline: {machine: {sysctls: {written-by: " + value + "}}}}]"
}

func patchMerge(value string) string {
	return `{"spec":{"patches":[{"name":"p","inline":{"machine":{"sysctls":{"written-by":"` + value + `"}}}}]}}`
}

func hubsHazards() []hubsHazard {
	return []hubsHazard{
		{
			name: "patch changed on a copy of the hub",
			when: func(first, copied *fleet) {
				copied.belongsTo(first)

				quiet := first.writes()
				copied.merge(patchMerge("copy"))
				copied.reconcilesAgain(quiet)
				copied.belongsTo(first)

				first.merge(patchMerge("first-again"))
				first.ready("c")
				copied.reconcilesAgain(first.lastWrite())
				first.ready("c")
			},
		},
		{
			name: "cluster deleted on a copy of the hub",
			when: func(first, copied *fleet) {
				copied.belongsTo(first)

				quiet := first.writes()
				copied.run("delete", "ocl", "c", "--timeout=60s")
				copied.waitEvent("Released", "on another hub", first.hubID(), "left alone")
				first.reconcilesAgain(quiet)
				first.unchanged("c")
				first.ready("c")
			},
		},
		{
			name: "set deleted on a copy of the hub",
			when: func(first, copied *fleet) {
				copied.belongsTo(first)

				quiet := first.writes()
				copied.run("delete", "ow", "c-w")
				copied.reconcilesAgain(quiet)
				first.unchanged("c")
				first.ready("c")
			},
		},
		{
			// The copy still has its document.
			name: "set deleted on the first of two hubs",
			when: func(first, copied *fleet) {
				copied.belongsTo(first)
				first.run("delete", "ow", "c-w")
				first.wait("the set to go", func() error { return first.absent("c-c-w") })
				copied.reconcilesAgain(first.lastWrite())

				if err := first.absent("c-c-w"); err != nil {
					first.t.Error(err)
				}
			},
			destroyed: []string{"MachineSet c-c-w"},
		},
		{
			name: "taken over from a hub that is gone",
			when: func(first, copied *fleet) {
				copied.belongsTo(first)

				quiet := first.writes()
				annotation := v1alpha1.AnnotationPreviousHub + "=" + first.hubID()
				copied.run("annotate", "omniconnection", "omni", annotation)
				copied.ready("c")
				copied.waitEvent("TakenOver", first.hubID())

				if got := first.writesAfter(quiet); !slices.Equal(got, []string{"Update Clusters.omni.sidero.dev c"}) {
					first.t.Errorf("Omni took %q", got)
				}

				// It was not gone, and the same files are applied there: it takes nothing back.
				first.belongsTo(copied)

				quiet = first.writes()
				first.run("annotate", "omniconnection", "omni", annotation)
				first.run("delete", "ocl", "c", "--timeout=60s")
				copied.reconcilesAgain(quiet)
				copied.unchanged("c")
				copied.ready("c")
			},
		},
		{
			// Nothing that is stored tells the two apart.
			name:   "copy of the hub with the same ID",
			sameID: true,
			when: func(first, copied *fleet) {
				copied.ready("c")
				copied.merge(patchMerge("copy"))

				var loser *fleet

				first.wait("one of them to stop", func() error {
					var errs []error

					for _, side := range []*fleet{first, copied} {
						_, err := side.condition("ocl", "c", v1alpha1.ConditionStalled, metav1.ConditionTrue, v1alpha1.ReasonSecondWriter)
						if err == nil {
							loser = side

							return nil
						}

						errs = append(errs, err)
					}

					return errors.Join(errs...)
				})
				loser.says("c", v1alpha1.ConditionStalled, metav1.ConditionTrue, v1alpha1.ReasonSecondWriter, "ConfigPatch", "3 times", "--hub-id")

				// The other one has the last word, and the war is over.
				quiet := first.lastWrite()
				time.Sleep(settleTime)

				if now := first.lastWrite(); now != quiet {
					first.t.Errorf("Omni took %q", first.writesAfter(quiet))
				}

				// No removal ends that, not even beside an edit: it may be half of what somebody wants on one of the two.
				loser.run("delete", "ow", "c-w")
				loser.merge(`{"spec":{"labels":{"edited":"on one"}}}`)
				time.Sleep(2 * settleTime)
				loser.says("c", v1alpha1.ConditionStalled, metav1.ConditionTrue, v1alpha1.ReasonSecondWriter, "--hub-id")
				first.unchanged("c")

				// Not even a deletion goes on, where the other writer was found.
				loser.run("delete", "ocl", "c", "--wait=false")
				loser.says("c", v1alpha1.ConditionDeletionBlocked, metav1.ConditionTrue, v1alpha1.ReasonSecondWriter, "is not destroyed")
				time.Sleep(settleTime)
				first.unchanged("c")

				loser.merge(`{"spec":{"deletePolicy":{"orphan":true}}}`)
				loser.waitGone("ocl", "c")
				first.unchanged("c")
			},
		},
	}
}

// belongsTo waits until the cluster is told to be another hub's.
func (f *fleet) belongsTo(other *fleet) {
	f.t.Helper()
	f.says("c", v1alpha1.ConditionStalled, metav1.ConditionTrue, v1alpha1.ReasonOwnedByOtherHub, other.hubID(), f.hubID(), v1alpha1.AnnotationPreviousHub)
}

// writes are how many writes of ours Omni took.
func (f *fleet) writes() int { return len(f.omni.Writes()) }

func (f *fleet) writesAfter(before int) []string {
	var lines []string
	for _, write := range f.omni.Writes()[before:] {
		lines = append(lines, fmt.Sprintf("%s %s %s", write.Verb, write.Type, write.ID))
	}

	return lines
}

// lastWrite waits until Omni took no write for a while, and returns how many it took in all.
func (f *fleet) lastWrite() int {
	f.t.Helper()

	count, since := f.writes(), time.Now()

	f.wait("the writes to end", func() error {
		if now := f.writes(); now != count {
			count, since = now, time.Now()
		}

		if time.Since(since) < 3*time.Second {
			return fmt.Errorf("%d writes", count)
		}

		return nil
	})

	return count
}

// reconcilesAgain lets the settle time pass and the controller look once more, and checks that nobody wrote anything.
func (f *fleet) reconcilesAgain(before int) {
	f.t.Helper()
	f.settle("c")

	if got := f.writesAfter(before); len(got) > 0 {
		f.t.Errorf("Omni took %q", got)
	}
}

// oldMarks makes the marks of all of these clusters as they were before they named a hub.
func (f *fleet) oldMarks(names ...string) {
	f.t.Helper()

	for _, name := range names {
		if err := omnisim.RemoveAnnotation(f.t.Context(), f.omni.State(), name, v1alpha1.MarkHub); err != nil {
			f.t.Fatal(err)
		}
	}
}

// upgraded is a controller that finds the marks of an older one: on a cluster that it serves, on one that is suspended,
// and on one that it only observes.
func upgraded(f *fleet) {
	f.apply(clusterManifest("asleep"), controlPlaneManifest("asleep-cp", "asleep", f.machines[1]),
		clusterManifest("watched"), controlPlaneManifest("watched-cp", "watched", f.machines[2]))
	f.ready("asleep")
	f.ready("watched")
	f.run("patch", "ocl", "asleep", "--type=merge", "-p", `{"spec":{"suspend":true}}`)
	f.run("patch", "ocl", "watched", "--type=merge", "-p", `{"spec":{"changePolicy":"Observe"}}`)
	f.reconciled("asleep")
	f.reconciled("watched")

	stack.Controller.Kill()
	f.oldMarks("c", "asleep", "watched")

	before := f.writes()
	f.restartController()

	for _, name := range []string{"c", "asleep", "watched"} {
		f.reconciled(name)
	}

	f.settle("c")

	if got := f.writesAfter(before); !slices.Equal(got, []string{"Update Clusters.omni.sidero.dev c"}) {
		f.t.Errorf("Omni took %q", got)
	}

	for name, want := range map[string]string{"c": f.hubID(), "asleep": "", "watched": ""} {
		if got := f.view(name).Annotations[v1alpha1.MarkHub]; got != want {
			f.t.Errorf("the mark of %s names hub %q, want %q", name, got, want)
		}
	}

	// An observed cluster that is as its documents say has nothing to tell.
	f.waitCondition("ocl", "watched", v1alpha1.ConditionReady, metav1.ConditionTrue, "")
}
