package plan

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/cosi-project/runtime/pkg/resource"
	"github.com/cosi-project/runtime/pkg/state"
	omnires "github.com/siderolabs/omni/client/pkg/omni/resources/omni"
	"github.com/siderolabs/omni/client/pkg/omni/resources/siderolink"

	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
)

// checkTeardown reads a resource once more before its teardown: it must be the one of the plan, with what it had then.
func (a *applier) checkTeardown(ctx context.Context, s step) error {
	if s.change.Type == siderolink.LinkType {
		return a.checkMachine(ctx, s)
	}

	found, err := a.checkIdentity(ctx, s)
	if err != nil {
		return err
	}

	switch {
	case s.change.Type == TypeManifestGroup:
		return a.checkManifests(ctx, s, found)
	case s.change.Type == omnires.MachineSetType && s.change.needsConsent():
		return a.checkMembers(ctx, s)
	default:
		return nil
	}
}

// checkIdentity reads a resource once more: an update or a teardown must not hit a resource of the same name that was created
// in the meantime, that belongs to another cluster now, or that has another size than the one which consent was given for.
func (a *applier) checkIdentity(ctx context.Context, s step) (resource.Resource, error) {
	found, err := a.live.Get(ctx, s.old.Metadata())
	if err != nil {
		return nil, err
	}

	outdated := func(how string) error {
		return fmt.Errorf("%w: %s %q %s", omni.ErrPlanOutdated, omni.KindOf(s.change.Type), s.change.ID, how)
	}

	was, _ := s.old.Metadata().Labels().Get(omnires.LabelCluster)
	is, _ := found.Metadata().Labels().Get(omnires.LabelCluster)
	now, isSet := found.(*omnires.MachineSet)
	planned, wasSet := s.old.(*omnires.MachineSet)

	switch {
	case !found.Metadata().Created().Equal(s.change.Created):
		return nil, outdated("was made again since")
	case is != was:
		return nil, outdated("belongs to another cluster now")
	case isSet && wasSet && omni.SizeOf(now, 0) != omni.SizeOf(planned, 0):
		return nil, outdated("has another size since")
	default:
		return found, nil
	}
}

// readLink completes a step that was planned without its resource: links are not in the local copy.
func (a *applier) readLink(ctx context.Context, s step) (step, error) {
	found, err := a.live.Get(ctx, s.old.Metadata())
	if err != nil {
		return s, err
	}

	s.old = found
	s.change.TearingDown = found.Metadata().Phase() == resource.PhaseTearingDown

	return s, nil
}

// checkMachine checks that a machine that is about to be removed from Omni still belongs to the cluster, and still is
// disconnected. A teardown that has begun is only finished.
func (a *applier) checkMachine(ctx context.Context, s step) error {
	if s.change.TearingDown {
		return nil
	}

	found, err := a.live.Get(ctx, omnires.NewMachineStatus(s.change.ID).Metadata())
	if state.IsNotFoundError(err) {
		return fmt.Errorf("%w: machine %q is gone", omni.ErrPlanOutdated, s.change.ID)
	}

	if err != nil {
		return fmt.Errorf("read machine %q again: %w", s.change.ID, err)
	}

	labels := found.Metadata().Labels()
	if cluster, _ := labels.Get(omnires.LabelCluster); cluster != a.plan.Cluster {
		return fmt.Errorf("%w: machine %q left cluster %q since", omni.ErrPlanOutdated, s.change.ID, a.plan.Cluster)
	}

	if _, disconnected := labels.Get(omnires.MachineStatusLabelDisconnected); !disconnected {
		return fmt.Errorf("%w: machine %q connected again since", omni.ErrPlanOutdated, s.change.ID)
	}

	return nil
}

// checkMembers checks that no machine was added to a set that is about to be torn down since the plan was made: the
// set's teardown would include it, without consent. Machines that Omni takes from a class come and go.
func (a *applier) checkMembers(ctx context.Context, s step) error {
	found, err := a.live.List(ctx,
		resource.NewMetadata(s.old.Metadata().Namespace(), omnires.MachineSetNodeType, "", resource.VersionUndefined),
		state.WithLabelQuery(resource.LabelEqual(omnires.LabelMachineSet, s.change.ID)),
	)
	if err != nil {
		return fmt.Errorf("list the machines of MachineSet %q again: %w", s.change.ID, err)
	}

	for _, node := range found.Items {
		_, allocated := node.Metadata().Labels().Get(omnires.LabelManagedByMachineSetNodeController)
		if id := node.Metadata().ID(); !allocated && node.Metadata().Owner() == "" && !slices.Contains(s.machines, id) {
			return fmt.Errorf("%w: MachineSet %q got machine %q since", omni.ErrPlanOutdated, s.change.ID, id)
		}
	}

	return nil
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
