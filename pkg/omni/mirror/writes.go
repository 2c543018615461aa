package mirror

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/cosi-project/runtime/pkg/resource"

	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
)

// expectation is one of our writes, which the copy has to show.
type expectation struct {
	resourceType resource.Type
	id           resource.ID
	effect       omni.Effect
	version      resource.Version
	created      time.Time
	until        time.Time
}

// writes holds our own writes until the copy shows them. Putting them into the copy ourselves would be quicker, but a
// resource that Omni destroys right after we created it would stay for ever if its event came first.
type writes struct {
	mu       sync.Mutex
	timeout  time.Duration
	now      func() time.Time
	expected map[string][]expectation // by cluster
}

func newWrites(timeout time.Duration, now func() time.Time) *writes {
	return &writes{timeout: timeout, now: now, expected: map[string][]expectation{}}
}

// expect records a write. written is the resource after the call: Omni's answer has set its version.
func (w *writes) expect(cluster string, written resource.Metadata, effect omni.Effect) {
	w.mu.Lock()
	defer w.mu.Unlock()

	// Ready may never be called again for a deleted cluster, so expired writes of all clusters are removed here.
	for name, list := range w.expected {
		if !w.now().Before(list[len(list)-1].until) {
			delete(w.expected, name)
		}
	}

	w.expected[cluster] = append(w.expected[cluster], expectation{
		resourceType: written.Type(),
		id:           written.ID(),
		effect:       effect,
		version:      written.Version(),
		created:      written.Created(),
		until:        w.now().Add(w.timeout),
	})
}

// outstanding removes the writes that the copy shows by now and those that have timed out, and describes the rest;
// empty if there is none. unseen are the types of the timed-out writes: their watches may be silent.
func (w *writes) outstanding(cluster string, copied *store) (waiting string, unseen []resource.Type) {
	w.mu.Lock()
	defer w.mu.Unlock()

	var kept []expectation

	for _, expected := range w.expected[cluster] {
		switch {
		case expected.shownIn(copied):
		case w.now().Before(expected.until):
			kept = append(kept, expected)
		default:
			unseen = append(unseen, expected.resourceType)
		}
	}

	if len(kept) == 0 {
		delete(w.expected, cluster)

		return "", unseen
	}

	w.expected[cluster] = kept

	first := fmt.Sprintf("%s %q", omni.KindOf(kept[0].resourceType), kept[0].id)
	if len(kept) == 1 {
		return "1 write, " + first, unseen
	}

	return fmt.Sprintf("%d writes, first %s", len(kept), first), unseen
}

func (e expectation) shownIn(copied *store) bool {
	if !copied.has(e.resourceType) {
		return true // a type that is not mirrored never shows the write
	}

	item := copied.get(e.resourceType, e.id)

	switch e.effect {
	case omni.EffectTornDown:
		return item == nil || item.Metadata().Phase() == resource.PhaseTearingDown
	case omni.EffectGone:
		return item == nil || item.Metadata().Created().After(e.created)
	case omni.EffectUpdated:
		return item == nil || item.Metadata().Version().Value() >= e.version.Value()
	case omni.EffectCreated:
		return item != nil && item.Metadata().Version().Value() >= e.version.Value()
	}

	return true
}

// await implements Mirror.Await.
func (s *store) await(cluster string, keys []omni.ResourceKey) (added bool) {
	s.mu.Lock()
	defer s.mu.Unlock()

	before := s.awaited[cluster]

	for _, key := range before {
		delete(s.waiting[key], cluster)

		if len(s.waiting[key]) == 0 {
			delete(s.waiting, key)
		}
	}

	delete(s.awaited, cluster)

	for _, key := range keys {
		if s.waiting[key] == nil {
			s.waiting[key] = map[string]struct{}{}
		}

		s.waiting[key][cluster] = struct{}{}
		s.awaited[cluster] = append(s.awaited[cluster], key)
		added = added || !slices.Contains(before, key)
	}

	return added
}

// waitingFor returns the clusters that wait for a resource. The caller holds the lock.
func (s *store) waitingFor(changed stored) []string {
	clusters := make([]string, 0, len(s.waiting[omni.KeyOf(changed)]))
	for cluster := range s.waiting[omni.KeyOf(changed)] {
		clusters = append(clusters, cluster)
	}

	return clusters
}
