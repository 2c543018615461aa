package omnihelmrelease

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"omni.texashpc.com/omni-cluster-operator/pkg/helm"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/limiter"
)

func newTestRunner(parallel int) (*runner, chan string) {
	ended := make(chan string, 10)

	return newRunner(limiter.Limits[string]{PerKey: int64(parallel), Total: int64(parallel)}, time.Now, func(name types.NamespacedName) { ended <- name.Name }), ended
}

func testKey(name string) releaseKey {
	return releaseKey{NamespacedName: types.NamespacedName{Name: name}, uid: types.UID(name), cluster: "cluster"}
}

func TestOneActionForEachRelease(t *testing.T) {
	r, ended := newTestRunner(2)
	release := make(chan struct{})
	wait := func(context.Context) error { <-release; return errors.New("failed") }

	r.add(testKey("a"), job{action: helm.ActionInstall, attempt: "A"}, wait)
	r.add(testKey("a"), job{action: helm.ActionUpgrade, attempt: "B"}, wait)

	if found := r.job("a"); !found.running() || found.action != helm.ActionInstall {
		t.Fatalf("the job is %+v", found)
	}

	r.forget(types.NamespacedName{Name: "a"}) // a running one stays
	close(release)

	if name := <-ended; name != "a" {
		t.Errorf("%s ended", name)
	}

	if found := r.job("a"); found.queued.IsZero() || found.running() || found.err == nil || found.attempt != "A" {
		t.Errorf("the job is %+v", found)
	}

	r.forget(types.NamespacedName{Name: "a"})

	if found := r.job("a"); !found.queued.IsZero() {
		t.Error("the job is not forgotten")
	}
}

// After an action that does not return nothing is begun but an uninstall, until it returns.
func TestAnActionThatDoesNotReturn(t *testing.T) {
	r, ended := newTestRunner(1)
	still := make(chan struct{})
	nothing := func(context.Context) error { return nil }
	name := types.NamespacedName{Name: "a"}

	r.add(testKey("a"), job{action: helm.ActionInstall}, func(context.Context) error {
		return &helm.Error{Reason: helm.ReasonTimeout, Message: "it does not return", Still: still}
	})
	<-ended

	if found, ok := r.stuck(name); !ok || found.action != helm.ActionInstall || r.job("a").running() {
		t.Fatalf("stuck: %+v %v", found, ok)
	}

	again := testKey("a")
	again.uid = "made anew under the same name"
	r.add(again, job{action: helm.ActionUpgrade}, nothing)
	r.add(testKey("a"), job{action: helm.ActionUpgrade}, nothing)

	if r.job("a").action != helm.ActionInstall || !r.job(again.uid).queued.IsZero() {
		t.Error("another action was begun beside the one that does not return")
	}

	r.add(testKey("b"), job{action: helm.ActionInstall}, nothing)
	<-ended
	r.add(testKey("a"), job{action: helm.ActionUninstall}, nothing)
	<-ended
	close(still)

	if got := <-ended; got != "a" {
		t.Errorf("%s was woken", got)
	}

	if _, ok := r.stuck(name); ok {
		t.Error("it has returned")
	}

	r.add(testKey("a"), job{action: helm.ActionUpgrade}, nothing)
	<-ended
}

// What has changed nothing yet can be withdrawn, what has cannot.
func TestWithdraw(t *testing.T) {
	r, ended := newTestRunner(1)
	release, begun := make(chan struct{}), make(chan struct{})

	r.add(testKey("a"), job{action: helm.ActionInstall}, func(ctx context.Context) error {
		if err := r.changes("a"); err != nil {
			return err
		}

		close(begun)
		<-release

		return ctx.Err()
	})
	<-begun
	r.add(testKey("b"), job{action: helm.ActionInstall}, func(context.Context) error {
		t.Error("b ran")

		return nil
	})
	r.withdraw("a")
	r.withdraw("b")

	if got := <-ended; got != "b" || !interrupted(r.job("b").err) {
		t.Errorf("%s ended, b with %v", got, r.job("b").err)
	}

	close(release)
	<-ended

	if err := r.job("a").err; err != nil {
		t.Errorf("what ran ended with %v", err)
	}
}

func TestActionsAreLimited(t *testing.T) {
	r, ended := newTestRunner(1)
	release, begun := make(chan struct{}), make(chan string, 2)

	for _, uid := range []types.UID{"a", "b"} {
		r.add(testKey(string(uid)), job{action: helm.ActionInstall}, func(context.Context) error {
			begun <- string(uid)
			<-release

			return nil
		})
	}

	<-begun

	select {
	case name := <-begun:
		t.Fatalf("%s began, too", name)
	case <-time.After(50 * time.Millisecond):
	}

	close(release)
	<-begun
	<-ended
	<-ended
}

func TestAStopEndsActionsInOrder(t *testing.T) {
	r, ended := newTestRunner(1)
	ctx, cancel := context.WithCancel(t.Context())
	begun, marked := make(chan struct{}), false

	r.add(testKey("a"), job{action: helm.ActionInstall, attempt: ""}, func(ctx context.Context) error {
		close(begun)
		<-ctx.Done()

		marked = true

		return ctx.Err()
	})
	<-begun
	r.add(testKey("b"), job{action: helm.ActionInstall, attempt: ""}, func(context.Context) error { return nil })

	cancel()

	if err := r.Start(ctx); err != nil || !marked {
		t.Errorf("Start returned %v before the action had ended", err)
	}

	<-ended
	<-ended

	var failure *helm.Error
	if found := r.job("b"); !errors.As(found.err, &failure) || failure.Reason != helm.ReasonInterrupted {
		t.Errorf("the action that waited ended with %v", found.err)
	}

	r.add(testKey("c"), job{action: helm.ActionInstall, attempt: ""}, func(context.Context) error { return nil })

	if found := r.job("c"); !found.queued.IsZero() {
		t.Error("an action began after the stop")
	}
}

// An object that is made again, before anybody saw that it was gone, finds nothing of the one before.
func TestAnObjectThatIsMadeAgain(t *testing.T) {
	r, ended := newTestRunner(2)
	first, again := testKey("a"), testKey("a")
	again.uid = "again"

	r.add(first, job{action: helm.ActionInstall}, func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() })
	r.add(again, job{action: helm.ActionInstall}, func(context.Context) error { return nil })

	if r.job("again").running() {
		t.Error("two actions on one release")
	}

	<-ended // the first is not wanted any more
	r.add(again, job{action: helm.ActionInstall}, func(context.Context) error { return nil })
	<-ended

	if len(r.jobs) != 1 {
		t.Errorf("%d jobs are kept, want that of the new object", len(r.jobs))
	}

	r.forget(again.NamespacedName)

	if len(r.jobs) != 0 || len(r.names) != 0 {
		t.Errorf("kept: %v, %v", r.jobs, r.names)
	}
}

// A namespace whose clusters all hang leaves slots to the others.
func TestANamespaceLeavesSlotsToOthers(t *testing.T) {
	f := newFixture(t)
	end, begun := make(chan struct{}), make(chan string, 100)

	begin := func(namespace string, i int) {
		where := testKey(fmt.Sprint(namespace, "-", i))
		where.Namespace, where.cluster = namespace, fmt.Sprint(namespace, "/", i)
		f.r.runner.add(where, job{action: helm.ActionInstall}, func(context.Context) error {
			begun <- namespace
			<-end

			return nil
		})
	}

	for i := range 20 {
		begin("hangs", i)
	}

	for taken, waiting := int64(0), 0; taken+int64(waiting) < 20; taken, waiting = f.r.runner.limiter.Load() {
		time.Sleep(time.Millisecond)
	}

	for range actionsPerWorker / 2 {
		<-begun
	}

	for _, namespace := range []string{"second", "third"} {
		begin(namespace, 0)

		select {
		case got := <-begun:
			if got != namespace {
				t.Errorf("%s has more than its share", got)
			}
		case <-time.After(5 * time.Second):
			t.Errorf("%s has no slot", namespace)
		}
	}

	close(end)
	f.r.runner.running.Wait()
}

// An uninstall does not wait for installs and upgrades, which may wait for Pods for hours: neither in its cluster nor in its
// namespace. The queue that an operator sees counts all of them.
func TestAnUninstallDoesNotWaitForUpgrades(t *testing.T) {
	r, ended := newTestRunner(1)
	end, begun := make(chan struct{}), make(chan string, 4)
	wait := func(name string) func(context.Context) error {
		return func(context.Context) error {
			begun <- name
			<-end

			return nil
		}
	}

	for _, upgraded := range []string{"at work", "waits"} {
		r.add(testKey(upgraded), job{action: helm.ActionUpgrade}, wait(upgraded))
	}

	for _, uninstalled := range []string{"leaves", "leaves next"} {
		r.add(testKey(uninstalled), job{action: helm.ActionUninstall}, wait(uninstalled))
	}

	for name, has := range map[types.UID]bool{"at work": true, "waits": false, "leaves": true, "leaves next": false} {
		if found := r.job(name); found.begun.IsZero() == has {
			t.Errorf("%s: has a slot: %v, want %v", name, !has, has)
		}
	}

	for range 2 {
		<-begun
	}

	for running, waiting := int64(0), 0; running != 2 || waiting != 2; running, waiting = r.load() {
		runtime.Gosched()
	}

	close(end)

	for range 4 {
		<-ended
	}

	r.running.Wait()
}
