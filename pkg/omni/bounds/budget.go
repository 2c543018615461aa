package bounds

import (
	"fmt"
	"sync"

	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
)

// Budget bounds the memory that all sessions of a process use together. Weights are estimates of that memory, see
// Weigh. It is safe for concurrent use.
type Budget struct {
	limits Limits

	mu       sync.Mutex
	used     int64
	accounts map[*Account]struct{}
}

// Account is one session's part of a budget. A nil account has no bounds.
type Account struct {
	budget *Budget
	owner  string
	over   func(error)

	// guarded by budget.mu
	bytes     int64
	resources int
	retired   bool
	closed    bool
}

// NewBudget returns a budget for all sessions of the process.
func NewBudget(limits Limits) *Budget {
	return &Budget{limits: limits.WithDefaults(), accounts: map[*Account]struct{}{}}
}

// Open opens an account. The account calls over at most once, in a goroutine of its own, when the session has to end.
// If the shared budget is used up, the sessions of one owner count together.
func (b *Budget) Open(owner string, over func(error)) *Account {
	b.mu.Lock()
	defer b.mu.Unlock()

	opened := &Account{budget: b, owner: owner, over: over}
	b.accounts[opened] = struct{}{}

	return opened
}

// Retire marks the account of a session that was replaced or forgotten: it goes first if the shared budget is used up.
func (a *Account) Retire() {
	if a == nil {
		return
	}

	a.budget.mu.Lock()
	defer a.budget.mu.Unlock()

	a.retired = true
}

// Charge adds what the session is about to keep, or subtracts what it no longer keeps. After an error the session ends,
// and its data is dropped.
func (a *Account) Charge(resources int, bytes int64) error {
	if a == nil {
		return nil
	}

	a.budget.mu.Lock()
	defer a.budget.mu.Unlock()

	if a.closed {
		return omni.ErrClosed
	}

	a.resources, a.bytes, a.budget.used = a.resources+resources, a.bytes+bytes, a.budget.used+bytes

	limits := a.budget.limits

	switch {
	case a.resources > limits.Resources:
		return a.fail(fmt.Sprintf("Omni sent %d resources of the kinds that are copied; the bound is %d (--omni-max-resources)",
			a.resources, limits.Resources))
	case a.bytes > limits.Memory:
		return a.fail(fmt.Sprintf("the copy of this Omni's %d resources takes %s of memory; the bound is %s (--omni-max-memory)",
			a.resources, Mebibytes(a.bytes), Mebibytes(limits.Memory)))
	case a.budget.used > limits.TotalMemory:
		return a.budget.shed(a)
	}

	return nil
}

// shed ends the largest retired session: only a run that is not over needs it, and is repeated with its successor. If there is none, shed
// ends the largest session of the owner that uses the most memory, so that no owner can crowd out others with many small
// sessions. It returns an error if that session is asking. The caller holds the lock.
func (b *Budget) shed(asking *Account) error {
	sums := map[string]int64{}
	for each := range b.accounts {
		sums[each.owner] += each.bytes
	}

	victim := asking
	for each := range b.accounts {
		if each.goesBefore(victim, sums) {
			victim = each
		}
	}

	why := fmt.Sprintf("those of this namespace take the most: %s", Mebibytes(sums[victim.owner]))
	if victim.retired {
		why = "this one is needed no longer than for a run"
	}

	err := victim.fail(fmt.Sprintf("the copies of all Omnis together take more than %s of memory, and %s (--omni-max-total-memory)",
		Mebibytes(b.limits.TotalMemory), why))

	if victim == asking {
		return err
	}

	return nil
}

// goesBefore reports whether shed ends this session rather than another one. sums has the memory of each owner.
func (a *Account) goesBefore(other *Account, sums map[string]int64) bool {
	switch {
	case a.retired != other.retired:
		return a.retired
	case a.retired || a.owner == other.owner:
		return a.bytes > other.bytes
	default:
		return sums[a.owner] > sums[other.owner]
	}
}

// TooMuch ends the session for a reason other than its sum.
func (a *Account) TooMuch(err error) {
	if a == nil {
		return
	}

	a.budget.mu.Lock()
	defer a.budget.mu.Unlock()

	if !a.closed {
		_ = a.fail(err.Error())
	}
}

// fail closes the account. The caller holds the lock.
func (a *Account) fail(message string) error {
	err := &omni.TooMuchDataError{Message: message}

	a.end()

	go a.over(err)

	return err
}

// Close releases the account's memory. It may be called more than once.
func (a *Account) Close() {
	if a == nil {
		return
	}

	a.budget.mu.Lock()
	defer a.budget.mu.Unlock()

	a.end()
}

func (a *Account) end() {
	if a.closed {
		return
	}

	a.closed = true
	a.budget.used -= a.bytes
	delete(a.budget.accounts, a)
}

// Held returns what the account holds now.
func (a *Account) Held() (resources int, bytes int64) {
	a.budget.mu.Lock()
	defer a.budget.mu.Unlock()

	return a.resources, a.bytes
}

// Mebibytes formats a size for people.
func Mebibytes(bytes int64) string { return fmt.Sprintf("%.1f MiB", float64(bytes)/(1<<20)) }
