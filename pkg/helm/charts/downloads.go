package charts

import (
	"context"

	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/limiter"
)

// smallBytes is how much of an answer is read without one of the slots for
// large ones.
const smallBytes = 1 << 20

// downloads limits what is on its way at once: so much of one host, and so many
// large answers in all. The second limit is what bounds memory; a slot of it is
// taken only when an answer has shown that it is large, so that a host that hangs,
// or has little to say, takes none from the others. It is safe for concurrent use.
type downloads struct {
	hosts *limiter.Limiter[string]
	large *limiter.Limiter[struct{}]
}

func newDownloads(large int) *downloads {
	return &downloads{
		// Half of the slots, so that one host never has all of them.
		hosts: limiter.New(limiter.Limits[string]{PerKey: int64(max(1, large/2))}),
		large: limiter.New(limiter.Limits[struct{}]{Total: int64(large)}),
	}
}

// enter waits for a slot of a host; release gives it back.
func (d *downloads) enter(ctx context.Context, host string) (release func(), err error) {
	release, err = d.hosts.Acquire(ctx, host, 1)
	if err != nil {
		return nil, fail(Timeout, "%s is too slow: this download waited in vain for others from there", host)
	}

	return release, nil
}

// enterLarge waits for one of the slots for large answers.
func (d *downloads) enterLarge(ctx context.Context) (release func(), err error) {
	release, err = d.large.Acquire(ctx, struct{}{}, 1)
	if err != nil {
		return nil, fail(Timeout, "too many large charts and indexes are being downloaded; this one waited in vain")
	}

	return release, nil
}
