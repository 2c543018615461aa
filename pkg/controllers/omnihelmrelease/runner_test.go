package omnihelmrelease

import (
	"context"
	"errors"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"omni.texashpc.com/omni-cluster-operator/pkg/controllers/internal/helm"
)

func newTestRunner(parallel int) (*runner, chan string) {
	ended := make(chan string, 10)

	return newRunner(parallel, parallel, time.Now, func(name types.NamespacedName) { ended <- name.Name }), ended
}

func testPlace(name string) place {
	return place{NamespacedName: types.NamespacedName{Name: name}, uid: types.UID(name), cluster: "cluster"}
}

func TestOneActionForEachRelease(t *testing.T) {
	r, ended := newTestRunner(2)
	release := make(chan struct{})
	wait := func(context.Context) error { <-release; return errors.New("failed") }

	r.begin(testPlace("a"), job{action: helm.ActionInstall, attempt: "A"}, wait)
	r.begin(testPlace("a"), job{action: helm.ActionUpgrade, attempt: "B"}, wait)

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

func TestPlacesAreLimited(t *testing.T) {
	r, ended := newTestRunner(1)
	release, begun := make(chan struct{}), make(chan string, 2)

	for _, uid := range []types.UID{"a", "b"} {
		r.begin(testPlace(string(uid)), job{action: helm.ActionInstall}, func(context.Context) error {
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

	r.begin(testPlace("a"), job{action: helm.ActionInstall, attempt: ""}, func(ctx context.Context) error {
		close(begun)
		<-ctx.Done()

		marked = true

		return ctx.Err()
	})
	<-begun
	r.begin(testPlace("b"), job{action: helm.ActionInstall, attempt: ""}, func(context.Context) error { return nil })

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

	r.begin(testPlace("c"), job{action: helm.ActionInstall, attempt: ""}, func(context.Context) error { return nil })

	if found := r.job("c"); !found.begun.IsZero() {
		t.Error("an action began after the stop")
	}
}
