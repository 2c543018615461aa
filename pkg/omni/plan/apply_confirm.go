package plan

import (
	"context"
	"time"

	"github.com/cosi-project/runtime/pkg/resource"
	omnires "github.com/siderolabs/omni/client/pkg/omni/resources/omni"
)

// lookAge is how long one look counts for consecutive changes of one type: the teardown of a hundred machines must not
// become a hundred readings of everything else.
const lookAge = time.Second

// look is when an Apply looked last at what consent depends on.
type look struct {
	at    time.Time
	kind  resource.Type // of the change that it was for
	acted bool          // something was tried since
}

// ownCluster is the Cluster as this Apply knows it.
type ownCluster struct {
	seen *omnires.Cluster // nil if there is none
	made bool             // this Apply created it: when, and with which ID, Omni does not tell
}

// confirm looks again, before a change that needs consent, at what consent depends on, if the Apply has tried anything
// since it looked last: what comes before can take minutes, and what the user or another hub does meanwhile counts.
func (a *applier) confirm(ctx context.Context, s step) error {
	if !a.look.acted || s.change.Type == a.look.kind && time.Since(a.look.at) < lookAge {
		return nil
	}

	if err := a.checkCluster(ctx); err != nil {
		return err
	}

	if a.options.Confirm != nil {
		if err := a.options.Confirm(ctx); err != nil {
			return err
		}
	}

	a.look = look{at: time.Now(), kind: s.change.Type}

	return nil
}

// noteCluster remembers the Cluster as this Apply wrote it.
func (a *applier) noteCluster(s step, written resource.Resource) {
	cluster, isCluster := written.(*omnires.Cluster)
	if !isCluster {
		return
	}

	a.cluster.seen = cluster

	if s.change.Action == ActionCreate {
		a.cluster.made = true
	} else {
		cluster.Metadata().SetCreated(s.change.Created)
	}
}
