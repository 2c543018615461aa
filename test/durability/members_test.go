package durability

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"omni.texashpc.com/omni-cluster-operator/test/env"
)

func testMemberKilled(t *testing.T, r *replicas) {
	r.killUnderLoad(t, func(ctx context.Context) (*env.EtcdMember, error) {
		leader, err := r.etcd.Leader(ctx)
		if err != nil {
			return nil, err
		}

		for _, member := range r.etcd.Members {
			if member != leader {
				return member, nil
			}
		}

		return nil, errors.New("all members lead")
	})
}

func testLeaderKilled(t *testing.T, r *replicas) { r.killUnderLoad(t, r.etcd.Leader) }

// killUnderLoad kills a member of the etcd. Requests may fail while the others notice, and elect a leader, but soon none
// does, with two members of three; and what was acknowledged stays.
func (r *replicas) killUnderLoad(t *testing.T, choose func(context.Context) (*env.EtcdMember, error)) {
	var member *env.EtcdMember

	// A busy machine may make the members elect again.
	if err := env.Eventually(t.Context(), eventually, "a leader", func(ctx context.Context) (err error) {
		member, err = choose(ctx)

		return err
	}); err != nil {
		t.Fatal(err)
	}

	before := r.term(t)
	l := startLoad(t, r.hub.RESTConfig())
	pause(t.Context(), around)
	member.Kill()
	pause(t.Context(), around)

	requests, failures := l.end()
	t.Logf("a member of the etcd killed: %d requests, %d failed", requests, failures)

	// Without an election only what was on its way to that member can fail.
	if failures*10 > requests && r.term(t) == before {
		t.Errorf("%d of %d requests failed, although the leader stayed", failures, requests)
	}

	r.waitForCalm(t)

	for _, wrong := range l.lost(t.Context()) {
		t.Error(wrong)
	}

	if err := member.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// waitForCalm waits until no request of a load fails. Replicas that hold on to the member that is gone do not get there in
// time. How many fail in an election says more about the machine than about them: each request that waits for it takes the
// place of hundreds.
func (r *replicas) waitForCalm(t *testing.T) {
	t.Helper()

	if err := env.Eventually(t.Context(), eventually, "a load without failures", func(context.Context) error {
		calm := startLoad(t, r.hub.RESTConfig())
		pause(t.Context(), around)

		requests, failures := calm.end()

		for _, wrong := range calm.lost(t.Context()) {
			t.Error(wrong)
		}

		if failures > 0 {
			return fmt.Errorf("%d of %d requests failed", failures, requests)
		}

		return nil
	}); err != nil {
		t.Fatal(err)
	}
}

// term is the etcd's count of elections.
func (r *replicas) term(t *testing.T) (term uint64) {
	t.Helper()

	if err := env.Eventually(t.Context(), eventually, "the members' term", func(ctx context.Context) (err error) {
		term, err = r.etcd.Term(ctx)

		return err
	}); err != nil {
		t.Fatal(err)
	}

	return term
}
