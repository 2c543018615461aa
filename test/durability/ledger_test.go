package durability

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// markKey is the annotation that tells one write from another.
const markKey = "example.com/write"

// ledger is what the server has acknowledged, and what nobody knows the outcome of.
type ledger struct {
	mu      sync.Mutex
	entries map[string]*entry
	newest  int64 // highest resourceVersion that was acknowledged
	tally   tally
}

// entry is one object's name. Only one writer uses it.
type entry struct {
	acknowledged *v1alpha1.OmniWorkers // nil: it does not exist
	doubt        *attempt              // sent and not answered
}

// attempt is a write whose answer never came.
type attempt struct {
	verb string
	mark string // of what would be there; empty: nothing would be
}

// tally counts for people.
type tally struct {
	acknowledged   map[string]int // by verb
	kept, notKept  int            // writes without an answer that took place, or not
	objects, kills int
}

func newLedger() *ledger {
	return &ledger{entries: map[string]*entry{}, tally: tally{acknowledged: map[string]int{}}}
}

func (l *ledger) entry(name string) entry {
	l.mu.Lock()
	defer l.mu.Unlock()

	if e := l.entries[name]; e != nil {
		return *e
	}

	return entry{}
}

// sending notes a write before it is sent.
func (l *ledger) sending(name string, a attempt) {
	l.mu.Lock()
	defer l.mu.Unlock()

	if l.entries[name] == nil {
		l.entries[name] = &entry{}
	}

	l.entries[name].doubt = &a
}

// answered notes that the write which was sent took place; object is nil for a deletion. The answer has to be newer than
// all that was known of the object.
func (l *ledger) answered(name string, object *v1alpha1.OmniWorkers) error {
	l.mu.Lock()
	defer l.mu.Unlock()

	e := l.entries[name]
	l.tally.acknowledged[e.doubt.verb]++

	if object != nil {
		version, err := version(object.ResourceVersion)
		if err != nil {
			return err
		}

		if before := e.acknowledged; before != nil {
			if old, _ := strconv.ParseInt(before.ResourceVersion, 10, 64); version <= old {
				return fmt.Errorf("%s of %s has resourceVersion %d, after %d", e.doubt.verb, name, version, old)
			}
		}

		l.newest = max(l.newest, version)
	}

	e.acknowledged, e.doubt = object, nil

	return nil
}

// check compares everything with what the server has after a restart, and goes on from there.
func (l *ledger) check(list *v1alpha1.OmniWorkersList) []error {
	l.mu.Lock()
	defer l.mu.Unlock()

	var errs []error

	switch listed, err := version(list.ResourceVersion); {
	case err != nil:
		errs = append(errs, err)
	case listed < l.newest:
		errs = append(errs, fmt.Errorf("resourceVersions went back: the list has %d, %d was acknowledged", listed, l.newest))
	}

	found := map[string]*v1alpha1.OmniWorkers{}

	for i := range list.Items {
		object := &list.Items[i]
		object.TypeMeta = metav1.TypeMeta{}
		found[object.Name] = object

		if l.entries[object.Name] == nil {
			errs = append(errs, fmt.Errorf("%s was never made", object.Name))
		}
	}

	for name, e := range l.entries {
		if err := e.compare(found[name], &l.tally); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", name, err))
		}

		e.acknowledged, e.doubt = found[name], nil
	}

	l.tally.objects = len(found)

	return errs
}

// compare says what is wrong with what was found of one object; nil stands for none.
func (e *entry) compare(found *v1alpha1.OmniWorkers, t *tally) error {
	if e.doubt != nil && e.doubt.tookPlace(e.acknowledged, found) {
		t.kept++

		return nil
	}

	if e.doubt != nil {
		t.notKept++
	}

	switch {
	case e.acknowledged == nil && found == nil:
		return nil
	case found == nil:
		return fmt.Errorf("an acknowledged object is lost: %s at resourceVersion %s", e.acknowledged.Annotations[markKey], e.acknowledged.ResourceVersion)
	case e.acknowledged == nil:
		return fmt.Errorf("a deleted object is back: %s at resourceVersion %s", found.Annotations[markKey], found.ResourceVersion)
	}

	if diff := cmp.Diff(e.acknowledged, found); diff != "" {
		return fmt.Errorf("its content differs (-acknowledged +found):\n%s", diff)
	}

	return nil
}

// tookPlace reports whether what was found is the outcome of the write without an answer. A write changes nothing but
// what it says, so the rest has to be what was acknowledged.
func (a attempt) tookPlace(before, found *v1alpha1.OmniWorkers) bool {
	if a.mark == "" {
		return before != nil && found == nil
	}

	if found == nil || found.Annotations[markKey] != a.mark {
		return false
	}

	return before == nil || before.UID == found.UID && before.CreationTimestamp.Equal(&found.CreationTimestamp)
}

func version(text string) (int64, error) {
	number, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("resourceVersion %q: %w", text, err)
	}

	return number, nil
}

// String is the line of figures.
func (t tally) String() string {
	verbs, total := "", 0

	for _, verb := range slices.Sorted(maps.Keys(t.acknowledged)) {
		verbs += fmt.Sprintf(" %s %d", verb, t.acknowledged[verb])
		total += t.acknowledged[verb]
	}

	return fmt.Sprintf("%d kills, %d writes acknowledged:%s; %d without an answer (%d took place, %d did not), %d objects at the end",
		t.kills, total, verbs, t.kept+t.notKept, t.kept, t.notKept, t.objects)
}
