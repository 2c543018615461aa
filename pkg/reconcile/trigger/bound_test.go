package trigger

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// TestKeysThatWaitAreBounded checks that one group of keys that are invented faster than they are looked up takes no
// memory without end, loses no change, and takes no room of another group.
func TestKeysThatWaitAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const bound, invented = 100, 100_000

		var hostile, others atomic.Int32

		trigger := NewBounded(Pacing{}, Bound[string]{
			Keys:    bound,
			GroupOf: func(key string) string { return strings.Split(key, "/")[0] },
			Instead: func(group string) {
				if group == "hostile" {
					hostile.Add(1)
				} else {
					others.Add(1)
				}
			},
		})

		found, goOn := map[string]int{}, make(chan struct{})
		start := trigger.Source(func(_ context.Context, key string) []reconcile.Request {
			<-goOn

			found[key]++

			return nil
		})

		if err := start.Start(t.Context(), newQueue(t)); err != nil {
			t.Fatal(err)
		}

		for number := range invented {
			trigger.Fire(fmt.Sprint("hostile/", number))
		}

		for number := range bound {
			trigger.Fire(fmt.Sprint("other/", number))
			trigger.Fire(fmt.Sprint("other/", number)) // counts once
		}

		synctest.Wait()

		if waiting := trigger.fired.Len(); waiting > 2*bound+1 {
			t.Errorf("%d keys wait", waiting)
		}

		close(goOn)
		synctest.Wait()

		// One of them may have been taken meanwhile, which makes room for another.
		if got := hostile.Load(); got < invented-bound-1 || others.Load() != 0 || int(got)+len(found) != invented+bound {
			t.Errorf("dropped: %d, and %d of the other group; %d were looked up", got, others.Load(), len(found))
		}

		// What has been looked up takes nothing, and makes room.
		if left := len(trigger.waiting.groups); left != 0 {
			t.Errorf("%d groups are remembered", left)
		}

		trigger.Fire("hostile/again")
		synctest.Wait()

		if found["hostile/again"] != 1 {
			t.Error("a key is dropped although none waits")
		}
	})
}
