package helm

import (
	"context"
	"errors"
)

// room is what one action or comparison has of a budget. It is not safe for concurrent use.
type room struct {
	budget memoryBudget
	tenant string

	has     int64
	release func()
}

// roomFor returns the room of an action of a tenant. It has nothing yet.
func (b memoryBudget) roomFor(tenant string) *room {
	return &room{budget: b, tenant: tenant, release: func() {}}
}

// take makes the room as large as is needed, or all that the tenant may have. If there is no memory now, the room has none
// any more, and the error says for how much to wait: two that keep what they have and wait for more would wait for each
// other.
func (r *room) take(needed int64) error {
	if needed = min(needed, r.budget.share); needed <= r.has {
		return nil
	}

	r.giveBack()

	release, ok := r.budget.try(r.tenant, needed)
	if !ok {
		return &fullError{r, needed}
	}

	r.has, r.release = needed, release

	return nil
}

// giveBack gives back what the room has.
func (r *room) giveBack() {
	r.release()
	r.has, r.release = 0, func() {}
}

// inRoom does something that takes room, and does it again from the start when there is room for what it was refused. Drop,
// which may be nil, drops what must not be kept meanwhile.
func (r *room) inRoom(ctx context.Context, do, drop func() error) error {
	needed := int64(0)

	for {
		err := do()

		var full *fullError
		if !errors.As(err, &full) || full.room != r {
			return err
		}

		if drop != nil {
			if err := drop(); err != nil {
				return err
			}
		}

		r.giveBack() // what was taken after the refusal

		needed = r.budget.next(needed, full.needed)

		release, err := r.budget.enter(ctx, r.tenant, needed)
		if err != nil {
			return err
		}

		r.has, r.release = needed, release
	}
}

// fullError is a room for which there is not as much memory now as it needs.
type fullError struct {
	room   *room
	needed int64
}

// Error implements error. Nobody sees it: what it says is waited for.
func (e *fullError) Error() string {
	return "there is no room for a chart or the record of a release now"
}
