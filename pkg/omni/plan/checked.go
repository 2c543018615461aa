package plan

import (
	"context"
	"crypto/sha256"
	"fmt"
	"hash"

	"github.com/cosi-project/runtime/pkg/resource"
	"github.com/cosi-project/runtime/pkg/state"
)

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
// revisions. The options do not matter: they only say how changes are made.
type emptyPlan struct {
	plan      *Plan
	reads     []read
	revisions [sha256.Size]byte
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
