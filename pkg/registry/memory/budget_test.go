package memory

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apiserver/pkg/authentication/user"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
)

const (
	waiting = 8
	timeout = 10 * time.Second
)

// take waits for a part as a request of the user does.
func take(t *testing.T, budget *Budget, name string, bytes int64) (giveBack func(), err error) {
	t.Helper()

	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()

	return budget.Take(genericapirequest.WithUser(ctx, &user.DefaultInfo{Name: name}), bytes)
}

func TestBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		budget := NewBudget(100, 50, waiting)

		alone, err := take(t, budget, "u", 1000) // more than all of it
		if err != nil {
			t.Fatal(err)
		}

		turns := make(chan error)

		for range waiting {
			go func() {
				giveBack, err := take(t, budget, "u", 60)
				if err == nil {
					giveBack()
				}

				turns <- err
			}()
		}

		synctest.Wait()

		if _, err := take(t, budget, "u", 1); err == nil {
			t.Error("too many of one user wait")
		}

		alone()
		alone()

		for range waiting {
			if err := <-turns; err != nil {
				t.Error(err)
			}
		}

		if len(budget.users) != 0 || !budget.bytes.TryAcquire(100) || !budget.large.TryAcquire(1) {
			t.Errorf("left over: %v", budget.users)
		}

		if _, err := take(t, budget, "other", 1); err == nil {
			t.Error("there was no room")
		}
	})
}

// TestOneUserHoldsHalf: whatever one user holds, others have the other half.
func TestOneUserHoldsHalf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		budget := NewBudget(100, 50, waiting)

		takes := func(user string, bytes int64, want bool) (giveBack func()) {
			t.Helper()

			giveBack, err := take(t, budget, user, bytes)
			if (err == nil) != want {
				t.Errorf("%d bytes for %s: %v", bytes, user, err)
			}

			if err != nil {
				return func() {}
			}

			return giveBack
		}

		small := takes("u", 40, true)
		takes("u", 20, false)
		takes("other", 40, true)()
		small()

		// More than half: one of all at a time, beside the smaller ones of others.
		large := takes("u", 1000, true)
		takes("u", 1, false)
		takes("other", 51, false)
		takes("other", 50, true)()
		large()
		takes("other", 51, true)()

		if len(budget.users) != 0 {
			t.Errorf("left over: %v", budget.users)
		}

		// Those of a user that wait for each other are in nobody's way.
		small = takes("u", 50, true)

		for range waiting {
			go func() { _, _ = take(t, budget, "u", 50) }()
		}

		synctest.Wait()
		takes("other", 50, true)()
		small()
		time.Sleep(timeout)
		synctest.Wait()
	})
}

// TestLargeOnesThatCountInFull: one that is larger than half is charged all of it, and the large one of another user comes next,
// however many of the first user wait.
func TestLargeOnesThatCountInFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		budget := NewBudget(100, 100, waiting)

		first, err := take(t, budget, "u", 90)
		if err != nil {
			t.Fatal(err)
		}

		if _, err := take(t, budget, "third", 11); err == nil {
			t.Error("more was taken than there is")
		}

		turns := make(chan string, waiting+1)

		hold := func(user string) {
			giveBack, err := take(t, budget, user, 90)
			if err != nil {
				return
			}

			turns <- user

			time.Sleep(time.Second)
			giveBack()
		}

		for range waiting {
			go hold("u")
		}

		synctest.Wait()

		go hold("other")

		synctest.Wait()

		first()

		if next := <-turns; next != "other" {
			t.Errorf("next was one of %q", next)
		}

		time.Sleep(2 * timeout)
		synctest.Wait()
	})
}
