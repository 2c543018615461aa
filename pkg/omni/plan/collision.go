package plan

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"slices"

	"github.com/cosi-project/runtime/pkg/resource"
	"github.com/cosi-project/runtime/pkg/state"
	omnires "github.com/siderolabs/omni/client/pkg/omni/resources/omni"

	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
)

// CollisionError names a resource of the template that another cluster, or another part of this one, already uses. It is
// ErrCollision.
type CollisionError struct {
	// Type is the COSI resource type, such as "MachineSetNodes.omni.sidero.dev".
	Type string
	// ID is the resource's ID; for a MachineSetNode the machine's UUID.
	ID string
	// Cluster is the Omni cluster that has it; empty if the resource names none.
	Cluster string
	// Allocated is true if Omni itself allocated the machine through a machine class.
	Allocated bool
	// Here says, if it is this very cluster, what of it uses the resource, and what to do; else empty.
	Here string
	// Leaving is true if that cluster is being torn down, and Gone if Omni has no cluster of that name (any more).
	Leaving, Gone bool
}

// Error implements error.
func (e *CollisionError) Error() string {
	if e.Here != "" {
		return fmt.Sprintf("%s %q is %s by %s", omni.KindOf(e.Type), e.ID, omni.ErrCollision, e.Here)
	}

	how := ""
	if e.Allocated {
		how = " through a machine class"
	}

	if e.Cluster == "" {
		return fmt.Sprintf("%s %q is %s by something that names no cluster", omni.KindOf(e.Type), e.ID, omni.ErrCollision)
	}

	switch {
	case e.Gone:
		how += ", which Omni does not have any more: remove what is left of it there"
	case e.Leaving:
		how += ", which is being torn down"
	}

	return fmt.Sprintf("%s %q is %s by cluster %q%s", omni.KindOf(e.Type), e.ID, omni.ErrCollision, e.Cluster, how)
}

// Is makes errors.Is(err, ErrCollision) true.
func (e *CollisionError) Is(target error) bool { return target == omni.ErrCollision }

// findCollisions looks up the resources that the template wants. A resource of another cluster is an error: the library
// would silently relabel it. A machine that a class of this very cluster allocated is no error if its set will release it:
// it is returned as leased, because that has to happen first.
func findCollisions(
	ctx context.Context, st state.State, cluster string, expected []resource.Resource,
) (leased map[omni.ResourceKey]bool, err error) {
	leased = map[omni.ResourceKey]bool{}

	var collisions []*CollisionError

	for _, item := range expected {
		switch item.Metadata().Type() {
		case omnires.ClusterType, omnires.KernelArgsType, omni.MachineInstallDiskConfigType: // these belong to no cluster
			continue
		}

		existing, err := st.Get(ctx, *item.Metadata())
		if state.IsNotFoundError(err) {
			continue
		}

		if err != nil {
			return nil, fmt.Errorf("look up %s: %w", resource.String(item), err)
		}

		collision := collides(existing, cluster)

		switch {
		case collision == nil:
		case collision.Allocated && collision.Cluster == cluster:
			if collision.Here, err = keptBy(ctx, st, existing, item, expected); err != nil {
				return nil, err
			}

			if collision.Here != "" {
				collisions = append(collisions, collision)
			} else {
				leased[omni.KeyOf(item)] = true
			}
		default:
			if err := describeOwner(ctx, st, collision); err != nil {
				return nil, err
			}

			collisions = append(collisions, collision)
		}
	}

	return leased, joinCollisions(collisions)
}

// collides decides about one existing resource; nil means that this cluster may change it.
func collides(existing resource.Resource, cluster string) *CollisionError {
	metadata := existing.Metadata()
	owner, _ := metadata.Labels().Get(omnires.LabelCluster)
	_, allocated := metadata.Labels().Get(omnires.LabelManagedByMachineSetNodeController)

	if owner == cluster && !allocated && metadata.Owner() == "" {
		return nil
	}

	return &CollisionError{Type: metadata.Type(), ID: metadata.ID(), Cluster: owner, Allocated: allocated}
}

// keptBy returns, for the error, which set keeps a machine that Omni took for it from a class, and how to end that; empty if
// the set will release it: it goes, or leaves the class, or has more machines than it shall have. Which of these Omni releases
// is not known before. Another class of the same size is no reason to release one: Omni only counts
// (MachineSetNodeController of its v1.9.3).
func keptBy(ctx context.Context, st state.State, node, wanted resource.Resource, expected []resource.Resource) (string, error) {
	id, _ := node.Metadata().Labels().Get(omnires.LabelMachineSet)
	list, _ := wanted.Metadata().Labels().Get(omnires.LabelMachineSet)

	set, found, err := classSet(ctx, st, id)
	asked := setAmong(expected, id)

	if err != nil || !found || asked == nil || node.Metadata().Phase() == resource.PhaseTearingDown {
		return "", err
	}

	cluster, _ := set.Metadata().Labels().Get(omnires.LabelCluster)

	nodes, err := omni.ListOf(ctx, st, omnires.MachineSetNodeType, cluster)
	if err != nil {
		return "", err
	}

	size, has := omni.SizeOf(asked, 0), len(nodesBySet(staying(nodes))[id])
	if size.Class == "" || !size.Unlimited && has > int(size.Count) {
		return "", nil
	}

	return fmt.Sprintf("MachineSet %q, which got it from machine class %q and keeps it: take it off the list of MachineSet %q, "+
		"or out of MachineSet %[1]q, which wipes it: omnictl cluster machine delete %[4]s (from a set that gets smaller, Omni wipes the machine that it chooses itself)",
		id, omni.SizeOf(set, 0).Class, list, node.Metadata().ID()), nil
}

// setAmong returns the MachineSet of an ID; nil if there is none.
func setAmong(items []resource.Resource, id string) *omnires.MachineSet {
	for _, item := range items {
		if set, isSet := item.(*omnires.MachineSet); isSet && set.Metadata().ID() == id {
			return set
		}
	}

	return nil
}

// classSet reads a set that takes its machines from a class; found is false if it does not, is gone, or is being torn down.
func classSet(ctx context.Context, st state.State, id string) (set *omnires.MachineSet, found bool, err error) {
	item, err := st.Get(ctx, omnires.NewMachineSet(id).Metadata())
	if state.IsNotFoundError(err) {
		return nil, false, nil
	}

	if err != nil {
		return nil, false, fmt.Errorf("look up MachineSet %q: %w", id, err)
	}

	set, isSet := item.(*omnires.MachineSet)

	return set, isSet && set.Metadata().Phase() == resource.PhaseRunning && omni.SizeOf(set, 0).Class != "", nil
}

// describeOwner looks up the state of the cluster that has the resource.
func describeOwner(ctx context.Context, st state.State, collision *CollisionError) error {
	if collision.Cluster == "" {
		return nil
	}

	owner, err := omni.ReadCluster(ctx, st, collision.Cluster)
	if err != nil {
		return err
	}

	collision.Gone = owner == nil
	collision.Leaving = owner != nil && owner.Metadata().Phase() == resource.PhaseTearingDown

	return nil
}

func joinCollisions(collisions []*CollisionError) error {
	slices.SortFunc(collisions, func(a, b *CollisionError) int {
		return cmp.Or(cmp.Compare(a.Type, b.Type), cmp.Compare(a.ID, b.ID))
	})

	joined := make([]error, 0, len(collisions))
	for _, collision := range collisions {
		joined = append(joined, collision)
	}

	return errors.Join(joined...)
}

// hidingState hides some resources of a state.
type hidingState struct {
	state.CoreState

	hidden map[omni.ResourceKey]bool
}

// Get implements state.CoreState.
func (s *hidingState) Get(ctx context.Context, pointer resource.Pointer, options ...state.GetOption) (resource.Resource, error) {
	if s.hidden[omni.ResourceKey{ResourceType: pointer.Type(), ID: pointer.ID()}] {
		return nil, omni.NotFoundf("resource %s(%s) is hidden", pointer.Type(), pointer.ID())
	}

	return s.CoreState.Get(ctx, pointer, options...)
}

// AwaitedBy returns the resources that collide, and the clusters that have them: when one of them changes, the error is
// over or has another text.
func AwaitedBy(err error) []omni.ResourceKey {
	var keys []omni.ResourceKey

	for _, collision := range collisionsIn(err) {
		keys = append(keys, omni.ResourceKey{ResourceType: collision.Type, ID: collision.ID})

		if collision.Cluster != "" {
			keys = append(keys, omni.ResourceKey{ResourceType: omnires.ClusterType, ID: collision.Cluster})
		}
	}

	return keys
}

// collisionsIn returns every collision in an error.
func collisionsIn(err error) []*CollisionError {
	switch typed := err.(type) { //nolint:errorlint // the tree is walked here
	case *CollisionError:
		return []*CollisionError{typed}
	case interface{ Unwrap() []error }:
		var found []*CollisionError
		for _, inner := range typed.Unwrap() {
			found = append(found, collisionsIn(inner)...)
		}

		return found
	case interface{ Unwrap() error }:
		return collisionsIn(typed.Unwrap())
	default:
		return nil
	}
}

// Checked is what is known of a template that Omni's own rules accept: its checksum, and what the last comparison read
// if that found nothing to change. It is small, so that a caller can keep it for as long as the template may come again.
// It is immutable. A nil Checked knows nothing.
type Checked struct {
	sum       [sha256.Size]byte // of the text
	emptyPlan *emptyPlan        // nil if there was something to change
}

// Load is the function Load, but does not read the text that it was made from again: Sync reads it if it has to.
func (c *Checked) Load(document []byte) (*Template, error) {
	sum := sha256.Sum256(document)
	if c != nil && c.sum == sum {
		return &Template{document: document, checked: c}, nil
	}

	template := &Template{document: document, checked: &Checked{sum: sum}}
	if err := template.read(); err != nil {
		return nil, err
	}

	return template, nil
}

// Checked returns what is known of the template now.
func (t *Template) Checked() *Checked { return t.checked }

// emptyPlan is a comparison that found nothing to change: its plan, what it read, and the revisions that it saw. A plan
// depends on nothing but the template and what is read, so it is right as long as the same reads find the same
// revisions. The other options do not matter: they only say how changes are made.
type emptyPlan struct {
	plan  *Plan
	reads []read
	// installDisks is the one option that says what is compared.
	installDisks bool
	revisions    [sha256.Size]byte
}

// read is one Get, or one List with its options. It is a resource.Pointer: twenty of each cluster stay in memory, and
// resource.Metadata, which is one too, is much larger.
type read struct {
	namespace resource.Namespace
	kind      resource.Type
	id        resource.ID // empty for a List
	options   []state.ListOption
}

// Namespace implements resource.Kind.
func (r *read) Namespace() resource.Namespace { return r.namespace }

// Type implements resource.Kind.
func (r *read) Type() resource.Type { return r.kind }

// ID implements resource.Pointer.
func (r *read) ID() resource.ID { return r.id }

// isCurrent reports whether the same reads find the same revisions.
func (e *emptyPlan) isCurrent(ctx context.Context, st state.CoreState) bool {
	again := newReading(st)

	for i := range e.reads {
		one := &e.reads[i]

		var err error
		if one.id != "" {
			_, err = again.Get(ctx, one)
		} else {
			_, err = again.List(ctx, one, one.options...)
		}

		if err != nil && !state.IsNotFoundError(err) {
			return false
		}
	}

	return again.revisions() == e.revisions
}

// reading is a state that records what is read from it. It is not safe for concurrent use.
type reading struct {
	state.CoreState

	reads []read
	found hash.Hash
}

func newReading(st state.CoreState) *reading { return &reading{CoreState: st, found: sha256.New()} }

// Get implements state.CoreState.
func (r *reading) Get(ctx context.Context, pointer resource.Pointer, options ...state.GetOption) (resource.Resource, error) {
	item, err := r.CoreState.Get(ctx, pointer, options...)
	r.reads = append(r.reads, read{namespace: pointer.Namespace(), kind: pointer.Type(), id: pointer.ID()})

	if err == nil {
		r.note(item)
	}

	r.end()

	return item, err
}

// List implements state.CoreState.
func (r *reading) List(ctx context.Context, kind resource.Kind, options ...state.ListOption) (resource.List, error) {
	list, err := r.CoreState.List(ctx, kind, options...)
	r.reads = append(r.reads, read{namespace: kind.Namespace(), kind: kind.Type(), options: options})

	for _, item := range list.Items {
		r.note(item)
	}

	r.end()

	return list, err
}

// note adds a resource to the revisions. Omni changes one of these with every write; a resource that was destroyed and
// created again has the first version again, but another time of creation.
func (r *reading) note(item resource.Resource) {
	metadata := item.Metadata()
	fmt.Fprintf(r.found, "%q %s %d %d %s,", metadata.ID(), metadata.Version(), metadata.Created().UnixNano(), metadata.Updated().UnixNano(), metadata.Phase())
}

// end ends a read in the revisions: what one read found is not what the next one did.
func (r *reading) end() { fmt.Fprint(r.found, ";") }

func (r *reading) revisions() (sum [sha256.Size]byte) {
	r.found.Sum(sum[:0])

	return sum
}
