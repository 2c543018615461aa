// Package plan decides what has to change in Omni, and makes the changes.
//
// Sync compares a template with a state, Delete plans the next step of a cluster's deletion; both only read. A Plan is
// a list of changes in the order in which Apply makes them, with a hash over the destructive ones. Apply is the one
// place that writes to Omni, except for RemoveMarks. It calls the caller's Consent for each destructive change, holds
// back what has no consent and what depends on it, and goes on past what Omni refuses.
//
// States are those of COSI: the local copy for planning, Omni itself for applying. Package session has both, and calls
// the mirror's Ready, Await and Expect.
package plan

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/cosi-project/runtime/pkg/resource"
	"github.com/cosi-project/runtime/pkg/state"
	omnires "github.com/siderolabs/omni/client/pkg/omni/resources/omni"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
)

// Options are the options of a plan. The zero value is the normal case.
type Options struct {
	// EveryDestroyIsDestructive makes every destroy need consent, not only those of machines: for a cluster that was
	// adopted and never had an empty plan. It implies ClusterFirst.
	EveryDestroyIsDestructive bool
	// ClusterFirst makes the update of the Cluster the first write, because it adds the owner's mark, or this hub's part
	// of it.
	ClusterFirst bool
	// Rollout prepares the plan for a rollout, in which changes wait for their turn: the update of the Cluster is always
	// split into its versions and the rest, and Change.Digest is set.
	Rollout bool
	// InstallDisks says that Omni serves MachineInstallDiskConfigs: see Session.Serves. Without it, the install disk of a
	// machine is a patch, as it was up to Omni 1.10.
	InstallDisks bool
}

// Plan is what has to change in Omni for a cluster to match its template, or to be gone. It is immutable, and belongs
// to the state it was made from.
type Plan struct {
	// Cluster is the cluster's name in Omni.
	Cluster string
	// Changes are the writes, in the order in which Apply makes them.
	Changes []Change
	// WaitingForOmni are changes that cannot be made yet: the resource is being torn down, Omni has not released a machine of a
	// class yet, machines have to leave with a patch before it goes elsewhere, or a version comes while Omni upgrades the other
	// one. Reason says which. A plan that has only these is not finished.
	WaitingForOmni []Change
	// Hash is the sha256 (hexadecimal) over the sorted keys of the destructive
	// changes that have not begun; empty if there are none.
	Hash string
	// Wanted are the machine sets of the template, and Live those that Omni had
	// when the plan was made, both sorted by ID. A plan to delete has neither.
	Wanted, Live []SetState
	// WantedManifests are the IDs of the manifest groups of mode full of the template, and LiveManifests those that Omni
	// had when the plan was made, without its own; both sorted. A plan to delete has neither.
	WantedManifests, LiveManifests []string
	// LiveSince has when Omni made each machine set, listed machine and manifest group of Live and LiveManifests, by ID.
	LiveSince map[string]time.Time
	// MakesControlPlane is true if the plan creates the control plane's machine set. Omni makes a new etcd for it: from Backup, in
	// the form of omni.BackupOf, or an empty one if that is empty.
	MakesControlPlane bool
	Backup            string

	steps  []step
	locked bool
	seen   *omnires.Cluster // the Cluster when the plan was made; nil if there was none
	uuid   string           // the ID of the Cluster then
	// deletion is true for a plan to delete: it is no error then if the Cluster is gone already.
	deletion bool
}

// step is a change with the data to make it.
type step struct {
	change   Change
	old      resource.Resource
	new      resource.Resource
	phase    int      // of a destroy: later phases wait until earlier ones are gone
	set      string   // the MachineSet that the resource is or belongs to
	machines []string // the machines that the resource is about
	// controlPlane is true for a resource of the control plane's machine set.
	controlPlane bool
	// keepers are other manifest groups that have the objects which this step takes from a group, and moved these objects:
	// Omni removes none of them, as long as it has the keepers.
	keepers []resource.Resource
	moved   []manifestObject
	// asked is what the template asks for in an update, without what new keeps of the live resource.
	asked resource.Resource
	// joined are the other changes that the same write makes.
	joined []Change
	// lacks are the sets that lack a machine because of which this removal waits. lacking is true for what would be added to them
	// and waits with it, and missing for a machine among that which cannot come: see findMissing.
	lacks            []string
	lacking, missing bool
	// waits is true for a version that is not written because this Apply writes the other one.
	waits bool
}

// Count returns how many changes of the action there are.
func (p *Plan) Count(action Action) int {
	count := 0

	for _, change := range p.Changes {
		if change.Action == action {
			count++
		}
	}

	return count
}

// Empty reports whether Omni matches the template.
func (p *Plan) Empty() bool { return len(p.Changes) == 0 && len(p.WaitingForOmni) == 0 }

// Destructive returns the destructive changes that have not begun: those that Hash covers.
func (p *Plan) Destructive() []Change {
	var destructive []Change

	for _, change := range p.Changes {
		if change.destroys() {
			destructive = append(destructive, change)
		}
	}

	return destructive
}

// Removes reports whether a change takes something out of Omni, or needs consent, that has not begun.
func (p *Plan) Removes() bool {
	return slices.ContainsFunc(p.Changes, func(c Change) bool { return c.needsConsent() || c.Action == ActionDestroy && !c.TearingDown })
}

// Addition returns the first change that gives the cluster machines, if there is one. A set or a machine that waits for
// Omni counts, too: it is made again once it is gone.
func (p *Plan) Addition() (Change, bool) {
	if i := slices.IndexFunc(p.Changes, Change.adds); i >= 0 {
		return p.Changes[i], true
	}

	if i := slices.IndexFunc(p.WaitingForOmni, func(c Change) bool { return c.Type == TypeMachineSet || c.Type == TypeMachineSetNode }); i >= 0 {
		return p.WaitingForOmni[i], true
	}

	return Change{}, false
}

// Sync compares a template with a state, which is usually a mirror's.
//
// Beyond the library's Sync, it
//   - refuses to take over resources of other clusters (ErrCollision), which
//     Sync would silently relabel;
//   - keeps what it does not own, in every update (startFromLive): unknown fields, features that are left unset, labels and
//     annotations of others, among them locks;
//   - never changes a resource that is being torn down (Plan.WaitingForOmni), nor a cluster that is (ErrClusterTearingDown);
//   - never takes a patch that changes its place from machines that are to leave, nor lets machines come before it is in
//     their place (Plan.WaitingForOmni, or ErrCollision if both would have to have it at once);
//   - writes the settings of machines before the machines come, also kernel arguments and settings that change;
//   - does not change a version while Omni upgrades the other one (Plan.WaitingForOmni);
//   - keeps the ID that a manifest group has in Omni (heldGroups);
//   - says of which removals the replacement cannot come (Change.Lacks).
//
// A template that needed no change is not compared again while the state has what the comparison read (Checked).
//
// Errors: ErrCollision, ErrClusterTearingDown, ErrUnserved, or those of the reads.
func Sync(ctx context.Context, st state.State, wanted *Template, options Options) (*Plan, error) {
	if before := wanted.checked.emptyPlan; before != nil && before.installDisks == options.InstallDisks && before.isCurrent(ctx, st) {
		return before.plan, nil
	}

	asked, err := wanted.readFor(options.InstallDisks)
	if err != nil {
		return nil, err
	}

	wanted.checked = &Checked{sum: wanted.checked.sum}
	reading := newReading(st)

	plan, err := compare(ctx, state.WrapCore(reading), asked, options)
	if err == nil && plan.Empty() {
		// The clone has no room to grow, which would stay in memory.
		wanted.checked.emptyPlan = &emptyPlan{
			plan: plan, installDisks: options.InstallDisks, reads: slices.Clone(reading.reads), revisions: reading.revisions(),
		}
	}

	return plan, err
}

// compare is Sync for a template that was read.
func compare(ctx context.Context, st state.State, wanted *parsed, options Options) (*Plan, error) {
	cluster, expected := wanted.cluster, wanted.resources

	seen, err := omni.ReadCluster(ctx, st, cluster)
	if err != nil {
		return nil, err
	}

	if seen != nil && seen.Metadata().Phase() == resource.PhaseTearingDown {
		return nil, omni.ErrClusterTearingDown
	}

	held, err := holdGroups(ctx, st, cluster, expected)
	if err != nil {
		return nil, err
	}

	expected = held.renamedAll(expected)

	leased, err := findCollisions(ctx, st, cluster, expected)
	if err != nil {
		return nil, err
	}

	result, err := wanted.loaded.Sync(ctx, state.WrapCore(&hidingState{CoreState: st, hidden: leased}))
	if err != nil {
		return nil, fmt.Errorf("compare the template with Omni: %w", err)
	}

	wanted.features.addTo(result, wanted, seen)
	held.updateIn(result)

	sets, nodes, err := listSets(ctx, st, cluster)
	if err != nil {
		return nil, err
	}

	if options.InstallDisks {
		if err = addInstallDisks(ctx, st, result, expected, nodes); err != nil {
			return nil, err
		}
	}

	manifests, err := liveManifests(ctx, st, cluster)
	if err != nil {
		return nil, err
	}

	builder := planBuilder{
		cluster: cluster, options: options, nodes: nodesBySet(nodes), live: setStates(sets, requested(nodes)), wanted: setStates(expected, expected),
		heads: wanted.heads, leased: leased, keeping: fullGroups(expected),
	}

	if builder.upgrades, err = readUpgrades(ctx, st, result.Update); err != nil {
		return nil, err
	}

	plan := builder.build(ctx, result, seen)
	plan.orderSettings()

	if err = plan.findMissing(ctx, st, builder.live); err != nil {
		return nil, err
	}

	if err = plan.orderMoves(ctx, st, movesIn(result.Update)); err != nil {
		return nil, err
	}

	if plan.uuid, err = omni.ReadUUID(ctx, st, cluster); err != nil {
		return nil, err
	}

	plan.Hash = HashOf(plan.Changes)
	plan.Wanted, plan.Live = builder.wanted, builder.live
	plan.WantedManifests, plan.LiveManifests = sortedIDs(builder.keeping), sortedIDs(manifests)
	plan.LiveSince = createdTimes(slices.Concat(sets, requested(nodes), manifests))
	plan.MakesControlPlane, plan.Backup = newControlPlane(result.Create)

	return plan, nil
}

// listSets lists the machine sets of a cluster, and the machines in them.
func listSets(ctx context.Context, st state.State, cluster string) (sets, nodes []resource.Resource, err error) {
	if nodes, err = omni.ListOf(ctx, st, omnires.MachineSetNodeType, cluster); err != nil {
		return nil, nil, err
	}

	sets, err = omni.ListOf(ctx, st, omnires.MachineSetType, cluster)

	return sets, nodes, err
}

// Action is what a change does in Omni.
type Action string

// The actions, in the order in which they are applied.
const (
	ActionCreate  Action = "create"
	ActionUpdate  Action = "update"
	ActionDestroy Action = "destroy"
)

// Change is one write of a plan.
type Change struct {
	// Action is create, update or destroy.
	Action Action
	// Type is the COSI resource type, such as "MachineSets.omni.sidero.dev"; KindOf shortens it.
	Type string
	// ID is the resource's ID in Omni.
	ID string
	// Set is the ID of the MachineSet that the resource is or belongs to; empty if it belongs to none.
	Set string
	// Machine is the UUID of the one machine that the resource is about; empty for resources of a set or the cluster.
	Machine string
	// Destructive is true if machines lose their data or leave the cluster: the teardown of a Cluster, MachineSet,
	// MachineSetNode or Link, or an update that lowers a MachineSet's machine count, changes its class or goes from
	// unlimited to a number. A machine that moves to another set is torn down in the old set and created in the new one.
	// Destructive is also true if Omni removes objects from the running cluster because a manifest group is destroyed or
	// leaves mode full, and, with Options.EveryDestroyIsDestructive, if an update takes a patch from machines.
	Destructive bool
	// Reason is why the change is destructive, or, in Plan.WaitingForOmni, what it waits for, in a few words; else empty.
	Reason string
	// Created is when Omni created the existing resource; zero for a create.
	Created time.Time
	// OldSize and NewSize are how many machines a MachineSet requests: a number for a static set, "class/3" or
	// "class/unlimited" for a class; empty for other types and where there is no such side.
	OldSize, NewSize string
	// Version is the version of the existing resource that a destructive update or the removal of a manifest group starts
	// from; else empty. Omni increments it with every change. It is a part of Hash but not of Key: an approval is for this
	// one update, and not for the next one between the same sizes.
	Version string
	// Members identifies what consent is given for besides the resource: the machines of a MachineSet to destroy, except those
	// that Omni took from a class; the place that a destructive update of a patch takes it to; the objects that a manifest group
	// loses in an adoption. Else it is empty. It is a part of Key: consent was given for no others.
	Members string
	// Fields names what an update changes, without any value: labels, annotations and fields of the spec, separated by commas, at
	// most maxFields of them. Empty for other actions.
	Fields string
	// Kind is what the change is about, for a rollout.
	Kind v1alpha1.ChangeKind
	// Part is the part of the Cluster that an update is about, the Kind of its version, if the update is split: see
	// Options.Rollout; else if a version has to wait for the other one. Empty for a change of the whole resource, and for
	// everything but the versions of a Cluster. It is a part of Key.
	Part v1alpha1.ChangeKind
	// From and To are the versions that such an update goes from and to.
	From, To string
	// Digest identifies the change with the content that it writes: 32 hexadecimal digits, in a plan with Options.Rollout;
	// empty for a change of KindFree.
	Digest string
	// DocumentGone is true for a change that takes settings from a machine which stays, because its Machine document is gone. That
	// may be the beginning of the deletion of the whole cluster. Such a change needs consent, and is no part of Hash.
	DocumentGone bool
	// Lacks says, for a removal, which machine the same plan adds in its place that cannot come. Such a removal needs an approval.
	// It is no part of Key: an approval is for what is destroyed.
	Lacks string
	// TearingDown is true for the destroy of a resource that is already being torn down: it only has to be finished, and
	// needs no consent again.
	TearingDown bool
}

// Key identifies a destructive change across plans: type, ID, Omni's created time, old and new size, the machines of a
// set, and Part. Hash is made of it, together with Version; an approval holds it until the change is made.
func (c Change) Key() string {
	key := strings.Join([]string{c.Type, c.ID, c.Created.UTC().Format(time.RFC3339Nano), c.OldSize, c.NewSize, c.Members}, "|")
	if c.Part != "" {
		key += "|" + string(c.Part)
	}

	return key
}

// String returns one short line, such as `destroy MachineSet "demo-workers" (3 -> 0)`.
func (c Change) String() string {
	line := fmt.Sprintf("%s %s %q", c.Action, omni.KindOf(c.Type), c.ID)
	if c.OldSize != c.NewSize {
		line += fmt.Sprintf(" (%s -> %s)", cmp.Or(c.OldSize, "none"), cmp.Or(c.NewSize, "none"))
	}

	if c.Part != "" {
		line += fmt.Sprintf(" (%s v%s -> v%s)", c.Part, c.From, c.To)
	}

	return line
}

// DestructiveFirst compares changes for sorting: the destructive ones come first.
func DestructiveFirst(a, b Change) int {
	switch {
	case a.Destructive == b.Destructive:
		return 0
	case a.Destructive:
		return -1
	default:
		return 1
	}
}

// adds reports whether the change gives the cluster machines: a new set, a machine in a set, or more machines of a class.
// Machines that a set lists are changes of their own, whatever sizes an update of the set names.
func (c Change) adds() bool {
	switch {
	case c.Type == TypeMachineSetNode:
		return c.Action == ActionCreate
	case c.Type == TypeMachineSet && c.Action == ActionUpdate:
		return !c.Destructive && c.OldSize != c.NewSize && IsOfClass(c.NewSize)
	default:
		return c.Type == TypeMachineSet && c.Action == ActionCreate
	}
}

// BringsMachines reports whether machines join the cluster by the change: one that a set lists, or those of a class.
func (c Change) BringsMachines() bool {
	return c.adds() && (c.Type == TypeMachineSetNode || IsOfClass(c.NewSize))
}

// destroys reports whether the change is destructive, and has not begun.
func (c Change) destroys() bool { return c.Destructive && !c.TearingDown }

// needsConsent reports whether the change needs consent: it has not begun, and is destructive or perhaps not meant.
func (c Change) needsConsent() bool { return (c.Destructive || c.DocumentGone) && !c.TearingDown }

// HashOf returns the sha256, in hexadecimal, over the sorted keys of the destructive changes that have not begun; empty if there is
// none. Updates and manifest groups count with the version that they start from. Plan.Hash is that of all of a plan's
// changes. A resource that is created again has another created time, but one that is updated keeps it, and an old hash
// may stay in a spec for years. Nothing else of a plan is hashed, so that an approval survives a harmless edit.
func HashOf(changes []Change) string {
	var keys []string

	for _, change := range changes {
		switch {
		case !change.destroys():
		case change.Version != "":
			keys = append(keys, change.Key()+"|"+change.Version)
		default:
			keys = append(keys, change.Key())
		}
	}

	if len(keys) == 0 {
		return ""
	}

	slices.Sort(keys)

	sum := sha256.Sum256([]byte(strings.Join(keys, "\n")))

	return hex.EncodeToString(sum[:])
}
