package helm

import (
	"context"
	"fmt"
)

// What this process holds of packed charts while they wait for a worker, and are rendered. What Helm installs does not
// need them any more.
const (
	// totalArchiveBytes is how much that may be together, in bytes, and tenantArchiveBytes how much of it one namespace may
	// have. One that is larger has all of it.
	totalArchiveBytes  = 48 << 20
	tenantArchiveBytes = 32 << 20
	// smallArchiveBytes is what an archive may have without being counted: most charts have less.
	smallArchiveBytes = 256 << 10
)

// archiveMemory is the room of the process for packed charts. Who has some of it waits for a worker and for nothing else;
// who waits for it may have room for what a chart became, so that nobody waits in a circle.
//
//nolint:gochecknoglobals // the memory is the process's, too
var archiveMemory = newMemoryBudget(totalArchiveBytes, tenantArchiveBytes, smallArchiveBytes, "other large charts are done")

// withArchive does something with a packed chart, when there is room for it. If there is none, the chart is dropped and
// had again, usually from a cache, so that nothing is kept by what only waits.
func (c *Client) withArchive(ctx context.Context, packed Chart, use func(archive []byte) error) error {
	room := archiveMemory.roomFor(c.target.Tenant)
	defer room.giveBack()

	return room.inRoom(ctx, func() error {
		archive, err := archiveOf(ctx, packed)
		if err != nil {
			return err
		}

		if err := room.take(int64(len(archive))); err != nil {
			return err
		}

		return use(archive)
	}, nil)
}

// archiveOf has a packed chart. Who made the request knows what to say if it cannot be had.
func archiveOf(ctx context.Context, packed Chart) ([]byte, error) {
	archive, err := packed.Archive(ctx)

	switch {
	case err == nil:
		return archive, nil
	case ctx.Err() != nil:
		return nil, fmt.Errorf("chart %s: %w", packed, ctx.Err())
	default:
		return nil, &unusableError{err}
	}
}
