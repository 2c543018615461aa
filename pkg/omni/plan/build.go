package plan

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/cosi-project/runtime/pkg/resource"
	omnires "github.com/siderolabs/omni/client/pkg/omni/resources/omni"
	"github.com/siderolabs/omni/client/pkg/omni/resources/siderolink"
	"github.com/siderolabs/omni/client/pkg/template"

	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
	ourtemplate "omni.texashpc.com/omni-cluster-operator/pkg/template"
)

// planBuilder turns the library's result into a Plan. It only decides; all of its input was read before.
type planBuilder struct {
	cluster  string
	options  Options
	nodes    map[string][]string // machines of each existing set
	live     []SetState          // existing sets with the machines that users put there
	wanted   []SetState          // sets of the template
	upgrades upgrades            // that Omni has not finished, if a version changes
	leased   map[omni.ResourceKey]bool
	keeping  []resource.Resource // full manifest groups that the template wants
	moves    map[string]*manifestUpdate

	heads // of the template
}

func (b planBuilder) build(ctx context.Context, result *template.SyncResult, seen *omnires.Cluster) *Plan {
	plan := &Plan{Cluster: b.cluster, seen: seen}
	if seen != nil {
		plan.locked = omni.LiveOf(seen).Locked
	}

	// The library's order within a type is that of a Go map.
	sortWithinTypes(result.Create, func(item resource.Resource) resource.Metadata { return *item.Metadata() })
	sortWithinTypes(result.Update, func(update template.UpdateChange) resource.Metadata { return *update.New.Metadata() })

	for _, items := range result.Destroy {
		sortWithinTypes(items, func(item resource.Resource) resource.Metadata { return *item.Metadata() })
	}

	for _, item := range result.Create {
		b.addCreate(plan, item)
	}

	var first []resource.Resource // to be destroyed before it can be created again

	updates, moves := orderManifests(ctx, result.Update, b.keeping)
	b.keeping, b.moves = withoutGoing(b.keeping, moves), moves

	for _, update := range updates {
		if b.addUpdate(ctx, plan, update.Old, update.New) {
			first = append(first, update.Old)
		}
	}

	for _, item := range first {
		b.addStep(plan, b.destroyStep(ctx, item, 0))
	}

	for phase, items := range result.Destroy {
		for _, item := range items {
			b.addStep(plan, b.destroyStep(ctx, item, phase))
		}
	}

	if b.options.EveryDestroyIsDestructive || b.options.ClusterFirst {
		plan.putClusterFirst()
	}

	return plan
}

// putClusterFirst makes the update of the Cluster the first write: the update puts the owner's mark on an adopted
// cluster, before anything is created in it.
func (p *Plan) putClusterFirst() {
	for i, s := range p.steps {
		if s.change.Type == omnires.ClusterType && s.change.Action == ActionUpdate {
			p.steps = slices.Insert(slices.Delete(p.steps, i, i+1), 0, s)
			p.Changes = slices.Insert(slices.Delete(p.Changes, i, i+1), 0, s.change)

			return
		}
	}
}

// sortWithinTypes keeps the order of the types and sorts each by ID.
func sortWithinTypes[T any](items []T, metadata func(T) resource.Metadata) {
	rank := map[resource.Type]int{}

	for _, item := range items {
		kind := metadata(item).Type()
		if _, ranked := rank[kind]; !ranked {
			rank[kind] = len(rank)
		}
	}

	slices.SortStableFunc(items, func(a, b T) int {
		left, right := metadata(a), metadata(b)

		return cmp.Or(cmp.Compare(rank[left.Type()], rank[right.Type()]), cmp.Compare(left.ID(), right.ID()))
	})
}

// addStep adds a step to the plan.
func (b planBuilder) addStep(plan *Plan, s step) {
	s = b.completed(s)
	plan.steps = append(plan.steps, s)
	plan.Changes = append(plan.Changes, s.change)
}

// completed returns a step with its kind and digest for a rollout, with what its document says of it, and with what it changes.
func (b planBuilder) completed(s step) step {
	s.change.Kind, s.change.DocumentGone = b.kindOf(s), b.losesDocument(s)

	if s.change.Action == ActionUpdate {
		s.change.Fields = changedFields(s.old, s.new)
	}

	if b.options.Rollout && s.change.Kind != KindFree {
		s.change.Digest = digestOf(s)
	}

	return s
}

func (b planBuilder) addCreate(plan *Plan, item resource.Resource) {
	s := newStep(ActionCreate, item)
	s.new = item
	recordApplied(item, item)

	if set, ok := item.(*omnires.MachineSet); ok {
		s.change.NewSize = omni.SizeOf(set, len(machinesOf(b.wanted, set.Metadata().ID()))).String()
	}

	if b.leased[omni.KeyOf(item)] {
		s.change.Reason = "Omni still has to release this machine from its machine class"
		plan.WaitingForOmni = append(plan.WaitingForOmni, s.change)

		return
	}

	b.addStep(plan, s)
}

// addUpdate adds an update, or reports that the old resource has to go first: it is being torn down, which cannot be
// undone and may wait for us to finish it, or it is a machine of another set, which Omni does not move.
func (b planBuilder) addUpdate(ctx context.Context, plan *Plan, old, updated resource.Resource) (goesFirst bool) {
	s := newStep(ActionUpdate, updated)
	s.old, s.new = old, updated
	s.change.Created = old.Metadata().Created()

	switch {
	case old.Metadata().Phase() == resource.PhaseTearingDown:
		s.change.Reason = "it is being torn down and has to be gone first"
	case movesMachine(old, updated):
		s.change.Action, s.change.Created = ActionCreate, time.Time{}
		s.change.Reason = "the machine has to leave its other machine set first"
	}

	if s.change.Reason != "" {
		plan.WaitingForOmni = append(plan.WaitingForOmni, s.change)

		return true
	}

	s.asked = updated
	updated = b.startFromLive(ctx, old, s.asked)

	if unchanged(ctx, old, updated) {
		return false
	}

	recordApplied(s.asked, updated)
	s.new = updated

	was, wasCluster := old.(*omnires.Cluster)
	if wanted, isCluster := updated.(*omnires.Cluster); isCluster && wasCluster {
		b.addClusterUpdate(plan, s, was, wanted)

		return false
	}

	if s.change.Type == TypeManifestGroup && !b.judgeManifestUpdate(&s) {
		plan.WaitingForOmni = append(plan.WaitingForOmni, s.change)

		return false
	}

	b.judgeUpdate(&s)
	b.judgeMove(&s)
	b.addStep(plan, s)

	return false
}

// movesMachine reports whether an update moves a machine from one set to another.
func movesMachine(old, updated resource.Resource) bool {
	from, _ := old.Metadata().Labels().Get(omnires.LabelMachineSet)
	to, _ := updated.Metadata().Labels().Get(omnires.LabelMachineSet)

	return old.Metadata().Type() == omnires.MachineSetNodeType && from != to
}

// judgeUpdate decides whether an update removes machines.
func (b planBuilder) judgeUpdate(s *step) {
	updated, isSet := s.new.(*omnires.MachineSet)
	old, wasSet := s.old.(*omnires.MachineSet)

	if !isSet || !wasSet {
		return
	}

	from := omni.SizeOf(old, len(b.nodes[s.change.ID]))
	to := omni.SizeOf(updated, len(machinesOf(b.wanted, s.change.ID)))

	s.change.OldSize, s.change.NewSize = from.String(), to.String()
	s.change.Reason = omni.Shrinks(from, to)
	s.change.Destructive = s.change.Reason != ""

	if s.change.Destructive {
		s.change.Version = old.Metadata().Version().String()
	}
}

// judgeMove decides whether an update takes a patch from machines of a cluster that is being adopted.
func (b planBuilder) judgeMove(s *step) {
	m, moved := moveOf(s.old, s.new)
	if !moved || !b.options.EveryDestroyIsDestructive || !b.hasMachine(m.takesFrom) {
		return
	}

	s.change.Destructive, s.change.Reason = true, reasonTakenFromTheirs
	s.change.Version = s.old.Metadata().Version().String()
	s.change.Members = digestOfNames(m.to.set, m.to.machine)
}

func (b planBuilder) destroyStep(ctx context.Context, item resource.Resource, phase int) step {
	s := newStep(ActionDestroy, item)
	s.old, s.phase = item, phase
	s.change.Created = item.Metadata().Created()
	s.change.TearingDown = item.Metadata().Phase() == resource.PhaseTearingDown

	switch item.Metadata().Type() {
	case omnires.ClusterType:
		s.change.Reason = "destroys the cluster"
	case omnires.MachineSetType:
		s.change.Reason = "resets the machines of the set"
		s.machines = b.nodes[item.Metadata().ID()]

		if set, ok := item.(*omnires.MachineSet); ok {
			s.change.OldSize = omni.SizeOf(set, len(s.machines)).String()
			s.change.Members = membersOf(b.live, item.Metadata().ID())
		}
	case omnires.MachineSetNodeType:
		s.change.Reason = "resets the machine"
	case siderolink.LinkType:
		s.change.Reason = "removes the disconnected machine from Omni"
	case TypeManifestGroup:
		b.judgeManifests(ctx, &s)
	}

	if s.change.Reason == "" && b.options.EveryDestroyIsDestructive {
		s.change.Reason = "was there before the cluster was adopted"
	}

	s.change.Destructive = s.change.Reason != ""

	return s
}

// newStep returns a step with the fields that follow from the resource alone.
func newStep(action Action, item resource.Resource) step {
	metadata := item.Metadata()
	s := step{change: Change{Action: action, Type: metadata.Type(), ID: metadata.ID()}}

	switch metadata.Type() {
	case omnires.MachineSetType:
		s.set = metadata.ID()
	case omnires.MachineSetNodeType, omnires.KernelArgsType, omni.MachineInstallDiskConfigType, siderolink.LinkType:
		s.machines = []string{metadata.ID()}
	}

	if set, labelled := metadata.Labels().Get(omnires.LabelMachineSet); labelled {
		s.set = set
	}

	if machine, labelled := metadata.Labels().Get(omnires.LabelClusterMachine); labelled {
		s.machines = []string{machine}
	}

	_, s.controlPlane = metadata.Labels().Get(omnires.LabelControlPlaneRole)

	s.change.Set = s.set
	if len(s.machines) == 1 {
		s.change.Machine = s.machines[0]
	}

	return s
}

// LibraryVersion is the version of Omni that the client library is of, whose rules Load applies.
const LibraryVersion = "1.9.3"

// Template is a cluster template that the rules of Omni's client library accept. It is compared with a state as often as needed, by one
// caller at a time.
type Template struct {
	document []byte
	checked  *Checked
	parsed   *parsed // nil until it is needed
	disks    *parsed // the same for an Omni with MachineInstallDiskConfigs
}

// parsed is a template that was read. Nothing changes it.
type parsed struct {
	loaded    *template.Template
	cluster   string              // its name in Omni
	resources []resource.Resource // what it asks for; only to be read
	heads
}

// Load reads a template and checks it by the rules of Omni's client library, without an Omni. The error is ErrTemplate with the library's
// message (which has no field paths).
func Load(document []byte) (*Template, error) { return (*Checked)(nil).Load(document) }

// read reads the template, unless that has been done. The error is ErrTemplate.
func (t *Template) read() error {
	if t.parsed != nil {
		return nil
	}

	document, head, headErr := splitHeads(t.document)

	loaded, err := template.Load(bytes.NewReader(document))
	if err != nil {
		return templateError(err)
	}

	if err = t.validate(loaded); err != nil {
		return templateError(err)
	}

	if headErr != nil { // the library, which says more, takes it
		return templateError(headErr)
	}

	resources, err := loaded.Translate()
	if err != nil {
		return templateError(err)
	}

	cluster, err := loaded.ClusterName()
	if err != nil {
		return templateError(err)
	}

	t.parsed = &parsed{loaded: loaded, cluster: cluster, resources: resources, heads: head}

	return nil
}

// readFor reads the template for an Omni that serves MachineInstallDiskConfigs, or for one that does not. Errors: ErrTemplate,
// ErrUnserved.
func (t *Template) readFor(installDisks bool) (*parsed, error) {
	if err := t.read(); err != nil {
		return nil, err
	}

	if !installDisks {
		return t.parsed, t.parsed.checkServed()
	}

	if t.disks == nil {
		disks, err := t.parsed.withInstallDisks(t.document)
		if err != nil {
			return nil, err
		}

		t.disks = disks
	}

	return t.disks, nil
}

// validate checks the template by Omni's own rules, without the documents of Talos of a kind that our Talos library does not
// know: whether they are right is for Omni to say.
func (t *Template) validate(loaded *template.Template) error {
	err := loaded.Validate()
	if err == nil {
		return nil
	}

	checkable, less := ourtemplate.Checkable(t.document)
	if !less {
		return err
	}

	if loaded, err = template.Load(bytes.NewReader(checkable)); err != nil {
		return err
	}

	return loaded.Validate()
}

func templateError(err error) error {
	return fmt.Errorf("%w: %w", omni.ErrTemplate, err)
}
