package durability

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"omni.texashpc.com/omni-cluster-operator/test/env"
)

const (
	// around is how long the load goes on before and after what happens.
	around = 2 * time.Second
	// mostRounds is how many rolling restarts there are at most.
	mostRounds = 3
	// noticed is how long load balancers have for noticing that a replica stops: half its delay.
	noticed = 5 * time.Second
)

// testRollingRestart restarts one replica after the other, as a Deployment does, with the program's own defaults, and no
// request fails. That holds for clients that do not stall, with an etcd that keeps its leader and a load balancer that
// looks in time. A round in which one of them did not do its part is repeated; one of the rounds has to be without
// failure.
func testRollingRestart(t *testing.T, r *replicas) {
	for round := 1; ; round++ {
		failed, excuse := r.rollingRestart(t)

		switch {
		case failed == 0:
			return
		case excuse == "":
			t.Fatalf("%d requests failed", failed)
		case round == mostRounds:
			t.Fatalf("requests failed in each of %d rounds, in the last one %d: %s", round, failed, excuse)
		}

		t.Logf("round %d: %d requests failed, once more: %s", round, failed, excuse)
	}
}

// rollingRestart is one round. It returns how many requests failed, and the reason for which that proves nothing, if any.
func (r *replicas) rollingRestart(t *testing.T) (failed int, excuse string) {
	before := r.term(t)
	l := startLoad(t, r.hub.RESTConfig())
	pause(t.Context(), around)

	var slowest time.Duration

	for i := range r.Replicas {
		slowest = max(slowest, r.restart(t, i))
		pause(t.Context(), around)
	}

	requests, failed := l.end()
	t.Logf("rolling restart of two replicas: %d requests, %d failed; connections by replica %v", requests, failed, r.Front.Connections())

	for _, wrong := range l.lost(t.Context()) {
		t.Error(wrong)
	}

	after := r.term(t)

	switch {
	case after != before:
		return failed, fmt.Sprintf("the etcd elected a leader (term %d, then %d)", before, after)
	case slowest >= noticed:
		return failed, fmt.Sprintf("the load balancer took %s to notice a stop", slowest.Round(time.Millisecond))
	case l.onlyCrossed():
		return failed, "only writes that may have crossed the request to leave"
	default:
		return failed, ""
	}
}

// restart returns how long the front took to notice that the replica stops.
func (r *replicas) restart(t *testing.T, i int) time.Duration {
	begin, stopped := time.Now(), make(chan error, 1)

	go func() { stopped <- r.Replicas[i].Stop() }()

	if err := env.Eventually(t.Context(), eventually, "the front to notice", func(context.Context) error {
		if r.Front.Ready() == len(r.Replicas) {
			return errors.New("all replicas get connections")
		}

		return nil
	}); err != nil {
		t.Fatal(err)
	}

	saw := time.Since(begin)

	if err := <-stopped; err != nil {
		t.Fatal(err)
	}

	gone := time.Since(begin)

	if err := r.Replicas[i].RestartDirectly(t.Context()); err != nil {
		t.Fatal(err)
	}

	r.waitForFront(t)
	t.Logf("%s replica %d: noticed after %s, stopped after %s, back after %s", begin.Format("15:04:05.000"), i,
		saw.Round(time.Millisecond), gone.Round(time.Millisecond), time.Since(begin).Round(time.Millisecond))

	return saw
}
