package mirror

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/cosi-project/runtime/pkg/state"

	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/bounds"
	"omni.texashpc.com/omni-cluster-operator/test/foreigntest"
)

// TestLongFailuresAreCut checks that a failure, which is kept until its watch is complete again, takes no more memory
// than one of gRPC: Omni may send one as long as a message, and for each kind another. What a failure means stays.
func TestLongFailuresAreCut(t *testing.T) {
	const length = 8 << 20

	r := newTestReader(t, nil)
	before := foreigntest.LiveBytes()

	var kept []error

	for number := range 17 {
		kept = append(kept, r.receive(state.Event{Type: state.Errored, Error: errors.New(strings.Repeat(fmt.Sprint(number%10), length))}))
	}

	if taken := foreigntest.LiveBytes() - before; taken > length {
		t.Errorf("%d failures take %d MiB", len(kept), taken>>20)
	}

	for _, failure := range kept {
		if said := failure.Error(); len(said) > maxFailure || !strings.HasSuffix(said, "...") {
			t.Errorf("a failure of %d bytes", len(said))
		}
	}

	long := fmt.Errorf("watch: %w", &bounds.TooLong{Limit: bounds.MaxEvent})
	if err := r.receive(state.Event{Type: state.Errored, Error: long}); !errors.Is(err, omni.ErrTooMuchData) {
		t.Errorf("the failure %v has lost what it means", err)
	}
}
