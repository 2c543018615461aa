package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// oneByOne is a policy of a single stage that lets one cluster after the other begin.
const oneByOne = `apiVersion: omni.texashpc.com/v1alpha1
kind: OmniRolloutPolicy
metadata:
  name: fleet
spec:
  clusterSelector: {matchExpressions: [{key: tier, operator: Exists}]}
  hold: %t
  stages: [{name: all, maxConcurrent: 1}]
`

// watchLimit looks again and again how many clusters are at work in Omni, until the function that it returns is called. That
// fails the test if there were ever more than one.
func (f *fleet) watchLimit() (end func()) {
	f.t.Helper()

	ctx, stop := context.WithCancel(f.t.Context())
	seen := make(chan error, 1)

	go func() {
		var found error

		for ctx.Err() == nil {
			if names, err := f.omni.Upgrading(ctx); err == nil && len(names) > 1 && found == nil {
				found = fmt.Errorf("at work at the same time: %v", names)
			}

			time.Sleep(2 * time.Millisecond)
		}

		seen <- found
	}()

	return func() {
		f.t.Helper()
		stop()

		if err := <-seen; err != nil {
			f.t.Error(err)
		}
	}
}

// upgradedOnce checks that Omni was told the new version of each cluster once.
func (f *fleet) upgradedOnce(names ...string) {
	f.t.Helper()

	for _, name := range names {
		f.waitShows(name+" to be done", "ocl", name, "{.status.rollout.last.result}", "Done")
		f.waitCondition("ocl", name, v1alpha1.ConditionReady, metav1.ConditionTrue, "")
	}

	got := f.clusterWrites()
	if slices.Sort(got); !slices.Equal(got, names) {
		f.t.Errorf("updates of Clusters: %v, want one for each of %v", got, names)
	}

	f.waitShows("the policy to be idle", "orp", "fleet", "{.status.held}{.status.admitted}", "0")
}

// written is nil once Omni has taken this many new versions.
func (f *fleet) written(count int) error {
	if got := f.clusterWrites(); len(got) < count {
		return fmt.Errorf("Omni has taken %v", got)
	}

	return nil
}

// TestRolloutCrash kills the controller at every step of a ticket: no cluster begins beside another, or twice, and all of
// them arrive.
func TestRolloutCrash(t *testing.T) {
	slow(t)

	f := newFleet(t)
	names := []string{"a", "b", "c", "d"}

	f.apply(fmt.Sprintf(oneByOne, true))
	f.tiers(map[string]string{"a": "x", "b": "x", "c": "x", "d": "x"})
	f.omni.ForgetRequests()

	end := f.watchLimit()

	for _, name := range names {
		f.apply(tiered(name, "x", "v1.36.1"))
	}

	for _, step := range []struct {
		name    string
		reached func() error
	}{
		{"all are held", func() error { return f.shows("orp", "fleet", "{.status.held}", "4") }},
		{"a ticket is given", func() error { return f.has("orp", "fleet", "{.status.admitted[*].cluster}") }},
		{"a cluster says that it begins", func() error { return f.someState(names, v1alpha1.RolloutAdmitted) }},
		{"Omni has the first version", func() error { return f.written(1) }},
		{"a cluster says that it is done", func() error { return f.someDone(names) }},
		{"Omni has the second version", func() error { return f.written(2) }},
		{"Omni has the third version", func() error { return f.written(3) }},
	} {
		f.wait(step.name, step.reached)
		stack.Controller.Kill()

		if step.name == "all are held" {
			f.nothingWritten()
			f.apply(fmt.Sprintf(oneByOne, false))
		}

		if err := stack.Controller.Restart(t.Context()); err != nil {
			t.Fatal(err)
		}
	}

	f.upgradedOnce(names...)
	end()
}

// TestRolloutWindowEnds has the controller die with a ticket given, and with the cluster admitted as well, and the windows
// be closed when the next one starts: nothing was written yet, so nothing begins.
func TestRolloutWindowEnds(t *testing.T) {
	slow(t)

	for name, state := range map[string]v1alpha1.RolloutState{"the ticket is given": v1alpha1.RolloutHeld, "the cluster is admitted": v1alpha1.RolloutAdmitted} {
		t.Run(name, func(t *testing.T) {
			f := newFleet(t)
			f.apply(fmt.Sprintf(oneByOne, true))
			f.upgradeHeld(v1alpha1.ReasonPolicyOnHold)
			f.waitShows("the policy to count it", "orp", "fleet", "{.status.held}", "1")
			stack.Controller.Kill()

			now := time.Now().UTC()
			hash := f.run("get", "ocl", "c", "-o", "jsonpath={.status.rollout.hash}")
			f.patchStatus("orp", "fleet", fmt.Sprintf(`{"admitted": [{"cluster": "c", "uid": %q, "stage": "all", "hash": %q, "since": %q}]}`,
				f.run("get", "ocl", "c", "-o", "jsonpath={.metadata.uid}"), hash, now.Format(time.RFC3339)))

			if state == v1alpha1.RolloutAdmitted {
				f.patchStatus("ocl", "c", fmt.Sprintf(`{"rollout": {"state": %q, "admittedSince": %q}}`, state, now.Format(time.RFC3339)))
			}

			closed := fmt.Sprintf("stages: [{name: all, maxConcurrent: 1, windows: [{days: [%s], start: \"12:00\", duration: 1h, timeZone: UTC}]}]",
				now.AddDate(0, 0, 3).Format("Mon"))
			f.apply(strings.Replace(fmt.Sprintf(oneByOne, false), "stages: [{name: all, maxConcurrent: 1}]", closed, 1))

			if err := stack.Controller.Restart(t.Context()); err != nil {
				t.Fatal(err)
			}

			f.waitShows("the ticket to go back", "ocl", "c", "{.status.rollout.last.result}", "Returned")
			f.waitCondition("ocl", "c", v1alpha1.ConditionHeld, metav1.ConditionTrue, v1alpha1.ReasonOutsideWindow)
			f.waitShows("the policy to take it back", "orp", "fleet", "{.status.held}{.status.admitted}", "1")
			f.nothingWritten()
		})
	}
}

// patchStatus merges fields into the status of an object.
func (s *space) patchStatus(resource, name, status string) {
	s.t.Helper()
	s.run("patch", resource, name, "--subresource=status", "--type=merge", "-p", `{"status": `+status+`}`)
}

// has is nil if something is at a path of an object.
func (s *space) has(resource, name, path string) error {
	if out, err := s.try("get", resource, name, "-o", "jsonpath="+path); err != nil || out == "" {
		return errors.Join(fmt.Errorf("nothing in %s", path), err)
	}

	return nil
}

// someState is nil if one of the clusters is in a state of a rollout.
func (f *fleet) someState(names []string, state v1alpha1.RolloutState) error {
	for _, name := range names {
		if f.shows("ocl", name, "{.status.rollout.state}", string(state)) == nil {
			return nil
		}
	}

	return fmt.Errorf("none is %s", state)
}

func (f *fleet) someDone(names []string) error {
	for _, name := range names {
		if f.shows("ocl", name, "{.status.rollout.last.result}", "Done") == nil {
			return nil
		}
	}

	return errors.New("none is done")
}

// TestRolloutTwoLeaders stops the leader in the middle of a rollout for so long that the other one leads, and lets it go on:
// what the first one was about to do is done once, and no cluster begins beside another.
func TestRolloutTwoLeaders(t *testing.T) {
	slow(t)
	t.Parallel()

	s := newStandby(t)
	names := []string{"a", "b", "c", "d"}

	s.apply(fmt.Sprintf(oneByOne, false))
	s.tiers(map[string]string{"a": "x", "b": "x", "c": "x", "d": "x"})
	s.omni.ForgetRequests()

	end := s.watchLimit()

	for _, name := range names {
		s.apply(tiered(name, "x", "v1.36.1"))
	}

	s.wait("a ticket", func() error { return s.has("orp", "fleet", "{.status.admitted[*].cluster}") })

	leader := s.leader()
	process := leader.ProcessID()

	if err := syscall.Kill(process, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}

	other := s.controllers[0]
	if other == leader {
		other = s.controllers[1]
	}

	s.wait("the other one to write", func() error {
		metrics, err := other.Metrics(t.Context())
		if err != nil {
			return err
		}

		if !strings.Contains(metrics, `leader_election_master_status{name="omni-controller"} 1`) {
			return errors.New("it does not lead")
		}

		return nil
	})
	s.wait("it to go on with the rollout", func() error { return s.written(2) })

	if err := syscall.Kill(process, syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}

	s.upgradedOnce(names...)
	end()

	// It ends by itself, because it has lost its lease; that is no crash.
	leader.Kill()
}
