package plan

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/cosi-project/runtime/pkg/resource"
	omnires "github.com/siderolabs/omni/client/pkg/omni/resources/omni"

	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
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

// checkCluster checks that the Cluster still is the one of the plan, or that there still is none: the copy may lag,
// creates and teardowns carry no version, and the versions of updates start again when a resource is made again.
func (a *applier) checkCluster(ctx context.Context) error {
	found, err := omni.ReadCluster(ctx, a.live, a.plan.Cluster)
	if err != nil {
		return err
	}

	outdated := func(how string) error {
		return fmt.Errorf("%w: cluster %q %s", omni.ErrPlanOutdated, a.plan.Cluster, how)
	}

	switch seen := a.cluster.seen; {
	case found == nil && (seen == nil || a.plan.deletion):
		return nil
	case found == nil:
		return outdated("is gone")
	case seen == nil:
		return outdated("was made since")
	case !a.cluster.made && !found.Metadata().Created().Equal(seen.Metadata().Created()):
		return outdated("was made again since")
	case !found.Metadata().Annotations().Equal(*seen.Metadata().Annotations()):
		return fmt.Errorf("%w: annotations of cluster %q changed since", omni.ErrPlanOutdated, a.plan.Cluster)
	case a.cluster.made:
		return nil
	}

	return a.checkUUID(ctx, found)
}

// checkUUID checks, before anything is destroyed or the Cluster is updated, that the Cluster has the ID of the plan: the
// copy's streams are independent, so it may show a new Cluster with the ID of the old one. Omni takes the ID away during
// a teardown.
func (a *applier) checkUUID(ctx context.Context, found *omnires.Cluster) error {
	if !slices.ContainsFunc(a.plan.steps, func(s step) bool {
		return s.change.Action == ActionDestroy || s.change.Destructive || s.change.Type == omnires.ClusterType
	}) {
		return nil
	}

	uuid, err := omni.ReadUUID(ctx, a.live, a.plan.Cluster)
	if err != nil {
		return err
	}

	if uuid == a.plan.uuid || uuid == "" && found.Metadata().Phase() == resource.PhaseTearingDown {
		return nil
	}

	if a.plan.uuid == "" { // Omni creates it a moment after the Cluster
		return fmt.Errorf("%w: Omni has given cluster %q its ID since", omni.ErrPlanOutdated, a.plan.Cluster)
	}

	return fmt.Errorf("%w: cluster %q has another ID in Omni", omni.ErrPlanOutdated, a.plan.Cluster)
}
