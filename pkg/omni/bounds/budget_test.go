package bounds

import (
	"testing"
	"time"

	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
)

// holder is one session and the account that it charges.
type holder struct {
	*Account

	ended chan error
}

func (b *Budget) holderOf(owner string) holder {
	ended := make(chan error, 1)

	return holder{b.Open(owner, func(err error) { ended <- err }), ended}
}

// holds charges what the session keeps, and checks that it may keep it.
func (h holder) holds(t *testing.T, bytes int64) {
	t.Helper()

	if err := h.Charge(1, bytes); err != nil {
		t.Errorf("%d bytes: %v", bytes, err)
	}
}

// isEnded reports whether the session was told to end.
func (h holder) isEnded() bool {
	select {
	case <-h.ended:
		return true
	case <-time.After(100 * time.Millisecond):
		return false
	}
}

// TestRetiredAccountGoesFirst: a session that was replaced and is still in use makes room for its successor, before any
// other one has to, whoever takes the most.
func TestRetiredAccountGoesFirst(t *testing.T) {
	for name, neighbour := range map[string]string{"same namespace": "team-a", "another namespace": "team-b"} {
		t.Run(name, func(t *testing.T) {
			budget := NewBudget(Limits{Memory: 90, TotalMemory: 100})
			other, old, successor := budget.holderOf(neighbour), budget.holderOf("team-a"), budget.holderOf("team-a")

			other.holds(t, 60)
			old.holds(t, 20)
			old.Retire()
			successor.holds(t, 30)

			if !old.isEnded() || other.isEnded() || successor.isEnded() {
				t.Error("another than the retired session has ended")
			}

			other.holds(t, 1)
			successor.holds(t, 1)

			if err := old.Charge(1, 1); err == nil {
				t.Error("the retired session may keep more")
			}
		})
	}
}

// TestRetiredAccountAsks has the retired session itself take what is not there.
func TestRetiredAccountAsks(t *testing.T) {
	budget := NewBudget(Limits{Memory: 90, TotalMemory: 100})
	other, old := budget.holderOf("team"), budget.holderOf("team")

	other.holds(t, 80)
	old.Retire()

	if err := old.Charge(1, 30); omni.Classify(err) != omni.ClassTooMuchData || !old.isEnded() || other.isEnded() {
		t.Errorf("error %v", err)
	}
}
