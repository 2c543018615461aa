package mirror

import (
	"errors"
	"fmt"
	"time"

	"github.com/cosi-project/runtime/pkg/resource"
	cosiproto "github.com/cosi-project/runtime/pkg/resource/protobuf"
	"github.com/cosi-project/runtime/pkg/state"

	"omni.texashpc.com/omni-cluster-operator/pkg/foreign/redact"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/bounds"
)

// watchReader receives the events of one watch: first the contents, then changes.
type watchReader struct {
	mirror        *Mirror
	resourceType  resource.Type
	alarm         *time.Timer // fires if the first contents take too long
	firstContents map[resource.ID]stored
	synced        bool
}

func newWatchReader(m *Mirror, resourceType resource.Type, alarm *time.Timer) *watchReader {
	return &watchReader{mirror: m, resourceType: resourceType, alarm: alarm, firstContents: map[resource.ID]stored{}}
}

// receive handles one event.
func (r *watchReader) receive(event state.Event) error {
	switch event.Type {
	case state.Created, state.Updated, state.Destroyed:
		return r.receiveResource(event)
	case state.Bootstrapped:
		return r.complete()
	case state.Errored:
		if event.Error == nil {
			return fmt.Errorf("%w: a failure without a reason", bounds.ErrMalformed)
		}

		return shortened(event.Error)
	case state.Noop:
	}

	return nil
}

// maxFailure is how long a failure may be, in bytes: longer than any of gRPC's own, which come in headers.
const maxFailure = 128 << 10

// shortened returns a failure that may be kept and told. Longer ones are texts that Omni sent in an event: no other
// failure, whose type has a meaning, gets so long.
func shortened(failure error) error {
	if text := failure.Error(); len(text) > maxFailure {
		return errors.New(redact.Bounded(text, maxFailure))
	}

	return failure
}

func (r *watchReader) receiveResource(event state.Event) error {
	if event.Resource == nil || event.Resource.Metadata().Type() != r.resourceType {
		return fmt.Errorf("%w: an event without the resource it is about", bounds.ErrMalformed)
	}

	id := event.Resource.Metadata().ID()

	if event.Type == state.Destroyed {
		if !r.synced {
			r.drop(r.firstContents[id])
			delete(r.firstContents, id)

			return nil
		}

		touched, dropped := r.mirror.store.remove(event.Resource.Metadata())
		r.drop(dropped)
		r.mirror.tell(touched)

		return nil
	}

	added, err := r.take(event.Resource)
	if err != nil {
		return err
	}

	if r.mirror.isUpgraded(added.Resource) {
		return errUpgraded
	}

	if !r.synced {
		if former := r.firstContents[id]; former.Resource != added.Resource {
			r.drop(former)
		}

		r.firstContents[id] = added

		return nil
	}

	touched, dropped := r.mirror.store.put(added)
	if dropped.Resource != added.Resource {
		r.drop(dropped)
	}

	r.mirror.tell(touched)

	return nil
}

// take weighs a resource, charges the account and decodes it. If the copy has the same revision, take returns the
// copy's object: a watch that is opened again must not take the memory of the copy twice.
func (r *watchReader) take(sent resource.Resource) (stored, error) {
	if kept := r.mirror.store.find(sent.Metadata()); kept.Resource != nil && sameRevision(kept, sent) {
		return kept, nil
	}

	weight, err := weightOf(sent)
	if err != nil {
		return stored{}, err
	}

	if err := r.mirror.account.Charge(1, weight); err != nil {
		return stored{}, err
	}

	encoded, ok := sent.(*cosiproto.Resource)
	if !ok {
		return stored{sent, weight}, nil // a state in memory
	}

	decoded, err := cosiproto.UnmarshalResource(encoded)
	if err != nil {
		_ = r.mirror.account.Charge(-1, -weight)

		return stored{}, fmt.Errorf("decode %s %q: %w", omni.KindOf(r.resourceType), sent.Metadata().ID(), err)
	}

	return stored{decoded, weight}, nil
}

// drop credits a dropped resource to the account, unless the copy still holds it.
func (r *watchReader) drop(dropped stored) {
	if dropped.Resource != nil && r.mirror.store.find(dropped.Metadata()).Resource != dropped.Resource {
		_ = r.mirror.account.Charge(-1, -dropped.weight) // an account that is over holds nothing
	}
}

// abandon drops first contents that never became complete.
func (r *watchReader) abandon() {
	for _, kept := range r.firstContents {
		r.drop(kept)
	}

	r.firstContents = nil
}

// complete stores the first contents and reports only the differences. The first time, the mirror reports no clusters
// until every table is complete, because reads fail before that: then it calls HealthChanged, and the receiver checks
// all of its clusters.
func (r *watchReader) complete() error {
	if r.synced {
		return nil
	}

	if !r.alarm.Stop() {
		return errBootstrapTimeout
	}

	m := r.mirror
	touched, dropped := m.store.replace(r.resourceType, r.firstContents)
	r.synced, r.firstContents = true, nil

	for _, gone := range dropped {
		r.drop(gone)
	}

	changed := m.health.found(r.resourceType)

	m.ReopenWatches()

	if m.store.complete() {
		m.tell(touched)
	}

	if changed {
		m.options.HealthChanged()
	}

	return nil
}

// weightOf returns the weight of a resource in its encoded form.
func weightOf(sent resource.Resource) (int64, error) {
	encoded, err := cosiproto.FromResource(sent)
	if err != nil {
		return 0, fmt.Errorf("weigh %s %q: %w", omni.KindOf(sent.Metadata().Type()), sent.Metadata().ID(), err)
	}

	wire, err := encoded.Marshal()
	if err != nil {
		return 0, fmt.Errorf("weigh %s %q: %w", omni.KindOf(sent.Metadata().Type()), sent.Metadata().ID(), err)
	}

	return bounds.WeighResource(wire)
}
