package omnicluster

import (
	"testing"
	"time"

	omnires "github.com/siderolabs/omni/client/pkg/omni/resources/omni"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// worker returns the generation of the document of workers that a status says Omni has, and whether it says that their set
// is ready.
func worker(cluster *v1alpha1.OmniCluster) (generation int64, ready bool) {
	for _, set := range cluster.Status.Omni.MachineSets {
		ready = ready || set.Name == "w" && set.Ready
	}

	return generations(cluster.Status)["w"], ready
}

// A status that says both that Omni has the new generation of a document and that its set is ready, as it was before, makes
// the document Ready in its new generation. So it says neither before the local copy shows what was written.
func TestGenerationIsNotReadyBeforeTheCopyShowsIt(t *testing.T) {
	t.Parallel()

	for name, test := range map[string]struct {
		other bool          // something else of the cluster waits for an approval
		after time.Duration // the copy shows the write
		want  int64         // the generation after the first run
	}{
		"soon":                      {after: catchUpTime / 4, want: 2},
		"late":                      {after: 2 * catchUpTime, want: 1},
		"soon, while another waits": {other: true, after: catchUpTime / 4, want: 2},
		"late, while another waits": {other: true, after: 2 * catchUpTime, want: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			f := running(t)
			condition, status, reason := "Ready", metav1.ConditionTrue, "Running"

			if test.other {
				f.setByHand("by-hand", f.machines[1])

				condition, reason = "Stalled", "AwaitingApproval"
			}

			silence, catchUp := make(chan struct{}), make(chan struct{})
			f.lagBetween(omnires.MachineSetType, silence, catchUp)
			f.until(condition, status, reason)
			f.quiet()

			f.omni.Pause() // what it says of the set is from before the write, too
			close(silence)
			f.resize(4)

			timer := time.AfterFunc(test.after, func() { close(catchUp) })
			defer timer.Stop()

			result := f.run()

			if generation, ready := worker(f.get()); generation != test.want || generation == 2 && ready {
				t.Errorf("Omni has generation %d, and the set is ready: %t", generation, ready)
			}

			if test.want == 1 && (result.RequeueAfter <= 0 || result.RequeueAfter > time.Second) {
				t.Errorf("looked at again after %s", result.RequeueAfter)
			}

			f.wantGenerations(map[string]int64{"cp": 1, "w": 2})

			if _, ready := worker(f.get()); ready {
				t.Error("the set is ready with its old size")
			}

			f.omni.Resume()
			f.until(condition, status, reason)
			f.eventually("the set in its new size", func() string {
				f.run()

				if _, ready := worker(f.get()); !ready {
					return "it is not ready"
				}

				return ""
			})
			f.quiet()
		})
	}
}
