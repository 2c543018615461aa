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
	"omni.texashpc.com/omni-cluster-operator/pkg/limiter"
	"omni.texashpc.com/omni-cluster-operator/test/await"
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

	r.begin(testKey("a"), job{action: helm.ActionInstall, attempt: "A"}, wait)
	r.begin(testKey("a"), job{action: helm.ActionUpgrade, attempt: "B"}, wait)

	if found := r.job("a"); !found.running() || found.action != helm.ActionInstall {
		t.Fatalf("the job is %+v", found)
	}

	r.forget(types.NamespacedName{Name: "a"}) // a running one stays
	close(release)

	if name := <-ended; name != "a" {
		t.Errorf("%s ended", name)
	}

	if found := r.job("a"); found.begun.IsZero() || found.running() || found.err == nil || found.attempt != "A" {
		t.Errorf("the job is %+v", found)
	}

	r.forget(types.NamespacedName{Name: "a"})

	if found := r.job("a"); !found.begun.IsZero() {
		t.Error("the job is not forgotten")
	}
}

// After an action that does not return nothing is begun but an uninstall, until it returns.
func TestAnActionThatDoesNotReturn(t *testing.T) {
	r, ended := newTestRunner(1)
	still := make(chan struct{})
	nothing := func(context.Context) error { return nil }
	name := types.NamespacedName{Name: "a"}

	r.begin(testKey("a"), job{action: helm.ActionInstall}, func(context.Context) error {
		return &helm.Error{Reason: helm.ReasonTimeout, Message: "it does not return", Still: still}
	})
	<-ended

	if found, ok := r.stuck(name); !ok || found.action != helm.ActionInstall || r.job("a").running() {
		t.Fatalf("stuck: %+v %v", found, ok)
	}

	again := testKey("a")
	again.uid = "made anew under the same name"
	r.begin(again, job{action: helm.ActionUpgrade}, nothing)
	r.begin(testKey("a"), job{action: helm.ActionUpgrade}, nothing)

	if r.job("a").action != helm.ActionInstall || !r.job(again.uid).begun.IsZero() {
		t.Error("another action was begun beside the one that does not return")
	}

	r.begin(testKey("b"), job{action: helm.ActionInstall}, nothing)
	<-ended
	r.begin(testKey("a"), job{action: helm.ActionUninstall}, nothing)
	<-ended
	close(still)

	if got := <-ended; got != "a" {
		t.Errorf("%s was woken", got)
	}

	if _, ok := r.stuck(name); ok {
		t.Error("it has returned")
	}

	r.begin(testKey("a"), job{action: helm.ActionUpgrade}, nothing)
	<-ended
}

// A release without a slot is woken in its turn, and has its slot then.
func TestActionsAreLimited(t *testing.T) {
	r, woken := newTestRunner(1)
	hold := make(chan struct{})
	wait := func(context.Context) error { <-hold; return nil }
	begin := func(name string) bool { return r.begin(testKey(name), job{action: helm.ActionInstall}, wait) }

	if !begin("a") || begin("b") || begin("c") || begin("b") {
		t.Fatal("another number than one has begun")
	}

	if running, waiting := r.load(); running != 1 || waiting != 2 {
		t.Errorf("%d run, %d wait", running, waiting)
	}

	close(hold)

	for range 2 { // a has ended, and it is b's turn
		if got := <-woken; got == "c" {
			t.Error("c was woken before its turn")
		}
	}

	if begin("c") || !begin("b") {
		t.Error("b has lost its turn")
	}

	r.exit(testKey("c"))
	<-woken
	r.running.Wait()

	if running, waiting := r.load(); running != 0 || waiting != 0 {
		t.Errorf("%d run, %d wait", running, waiting)
	}
}

func TestAStopEndsActionsInOrder(t *testing.T) {
	r, ended := newTestRunner(1)
	ctx, cancel := context.WithCancel(t.Context())
	begun, marked := make(chan struct{}), false

	r.begin(testKey("a"), job{action: helm.ActionInstall, attempt: ""}, func(ctx context.Context) error {
		close(begun)
		<-ctx.Done()

		marked = true

		return ctx.Err()
	})
	<-begun

	cancel()

	if err := r.Start(ctx); err != nil || !marked {
		t.Errorf("Start returned %v before the action had ended", err)
	}

	<-ended

	r.begin(testKey("c"), job{action: helm.ActionInstall, attempt: ""}, func(context.Context) error { return nil })

	if found := r.job("c"); !found.begun.IsZero() {
		t.Error("an action began after the stop")
	}
}

// An object that is made again, before anybody saw that it was gone, finds nothing of the one before.
func TestAnObjectThatIsMadeAgain(t *testing.T) {
	r, ended := newTestRunner(2)
	first, again := testKey("a"), testKey("a")
	again.uid = "again"

	r.begin(first, job{action: helm.ActionInstall}, func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() })
	r.begin(again, job{action: helm.ActionInstall}, func(context.Context) error { return nil })

	if r.job("again").running() {
		t.Error("two actions on one release")
	}

	<-ended // the first is not wanted any more
	r.begin(again, job{action: helm.ActionInstall}, func(context.Context) error { return nil })
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
		f.r.runner.begin(where, job{action: helm.ActionInstall}, func(context.Context) error {
			begun <- namespace
			<-end

			return nil
		})
	}

	for i := range 20 {
		begin("hangs", i)
	}

	for range actionsPerWorker / 2 {
		<-begun
	}

	for _, namespace := range []string{"second", "third"} {
		begin(namespace, 0)

		if got := await.Receive(t, "a slot for "+namespace, begun); got != namespace {
			t.Errorf("%s has more than its share", got)
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
		r.begin(testKey(upgraded), job{action: helm.ActionUpgrade}, wait(upgraded))
	}

	for _, uninstalled := range []string{"leaves", "leaves next"} {
		r.begin(testKey(uninstalled), job{action: helm.ActionUninstall}, wait(uninstalled))
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
