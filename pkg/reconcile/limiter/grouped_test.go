package limiter

import (
	"context"
	"testing"
)

func TestAGroupLeavesRoomForOthers(t *testing.T) {
	p := NewGrouped(2, 1)
	hold, begun, ended := make(chan struct{}), make(chan string, 3), make(chan bool, 3)

	run := func(ctx context.Context, group string) {
		go func() {
			ended <- p.Run(ctx, group, func() {
				begun <- group
				<-hold
			})
		}()
	}

	run(t.Context(), "a")

	if group := <-begun; group != "a" {
		t.Fatal(group)
	}

	ctx, cancel := context.WithCancel(t.Context())
	run(ctx, "a") // waits
	run(t.Context(), "b")

	if group := <-begun; group != "b" {
		t.Fatalf("%s began, although its group has no place", group)
	}

	cancel()

	if <-ended {
		t.Error("what nobody waits for any more was done")
	}

	close(hold)

	if !<-ended || !<-ended { //nolint:staticcheck // of each of both
		t.Error("what had a place was not done")
	}

	if len(p.groups) != 0 {
		t.Errorf("%d groups are kept", len(p.groups))
	}
}
