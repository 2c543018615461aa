package helm

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"helm.sh/helm/v4/pkg/release/common"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"omni.texashpc.com/omni-cluster-operator/test/await"
	"omni.texashpc.com/omni-cluster-operator/test/foreigntest"
)

// largeManifest is one ConfigMap with so many maps of one key.
func largeManifest(maps int) string {
	return object("a") + "x:\n" + strings.Repeat("- {a: bcd}\n", maps)
}

// Many releases are compared whose records are small and become large. What their comparisons hold together is bounded,
// and a usual one does not wait for them.
func TestManyLargeRecordsAtOnce(t *testing.T) {
	hostile := foreigntest.AtOnce(6)
	free := occupied(t, 128*mib)

	var comparing atomic.Int32

	cluster := newFakeCluster(t)
	end := make(chan struct{})
	cluster.configMaps = func(to http.ResponseWriter, request *http.Request) {
		if strings.HasSuffix(request.URL.Path, "/a") {
			comparing.Add(1)
			<-end
		}

		refuse(to, apierrors.NewNotFound(schema.GroupResource{Resource: "configmaps"}, "a"))
	}

	large := applied(1, common.StatusDeployed, largeManifest(foreigntest.Load(120_000)), nil)
	usual := applied(1, common.StatusDeployed, object("b"), nil)
	usual.Name = "usual"

	cluster.add(t, large)
	cluster.add(t, usual)

	compare := func(name, tenant string) {
		c := New(Target{Config: cluster.config(), Name: name, Namespace: "apps", Tenant: tenant}, logr.Discard(), time.Second)

		if found, err := c.Drift(t.Context(), 1, nil); err != nil || len(found) != 1 {
			t.Errorf("%s: %v, %v", name, found, err)
		}
	}

	foreigntest.WantPeak(t, 256<<20, func() {
		var all sync.WaitGroup

		for i := range hostile {
			all.Go(func() { compare("demo", fmt.Sprint("hostile-", i%4)) })
		}

		for int(comparing.Load())+waiters() < hostile { // as many as may have read theirs
			time.Sleep(time.Millisecond)
		}

		compare("usual", "other")
		close(end)

		all.Wait()
	})

	free()
	wantNothingHeld(t)
}

// An action that finds no memory for its second record gives back that of the first, waits for both, and begins anew.
func TestAnActionWaitsForMemoryForItsRecords(t *testing.T) {
	cluster := newFakeCluster(t)
	cluster.configMaps = func(to http.ResponseWriter, _ *http.Request) {
		refuse(to, apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "a", errors.New("not now")))
	}

	cluster.add(t, applied(1, common.StatusSuperseded, largeManifest(4_000), nil))
	cluster.add(t, applied(2, common.StatusDeployed, largeManifest(4_000), nil))

	c := New(Target{Config: cluster.config(), Name: "demo", Namespace: "apps", Tenant: "busy"}, logr.Discard(), time.Second)
	rollBackWithin := func(ctx context.Context, timeout time.Duration) error {
		return c.Run(ctx, Request{
			Decision: Decision{Action: ActionRollback, Revision: 1}, Settings: Settings{Timeout: timeout},
			Observed: &Observed{Revisions: []Revision{{Number: 2, Status: StatusDeployed}, {Number: 1, Status: StatusSuperseded}}},
		})
	}

	rollBack := func(ctx context.Context) error { return rollBackWithin(ctx, await.Limit) }

	busy := int64(tenantBytes - 3*mib)
	release := mustTake(t, "busy", busy)
	ended := make(chan error)

	go func() { ended <- rollBack(t.Context()) }()

	await.Until(t, "it waits for room", func() bool { return waiters() > 0 })

	if held, _ := heldMemory.Load(); held != busy {
		t.Errorf("%d MiB are held beside what was there before", (held-busy)>>20)
	}

	impatient := newImpatient(t)

	go func() { ended <- rollBack(impatient) }()

	await.Until(t, "another one waits", func() bool { return waiters() > 1 })
	impatient.end()

	var failure *Error
	if err := <-ended; !errors.As(err, &failure) || failure.Reason != ReasonInterrupted || !strings.Contains(err.Error(), "wait until other large charts and records") {
		t.Errorf("got %v", err)
	}

	// Time that is over in such a wait is no failure of the release.
	if err := rollBackWithin(t.Context(), 10*time.Second); !errors.As(err, &failure) || failure.Reason != ReasonUnavailable || !strings.Contains(err.Error(), "rollback was not tried: wait until other large charts and records") {
		t.Errorf("got %v", err)
	}

	release()

	if err := <-ended; !errors.As(err, &failure) || failure.Reason != ReasonForbidden || !strings.Contains(err.Error(), "not now") {
		t.Errorf("got %v", err)
	}

	wantNothingHeld(t)
}

// The memory that is free next goes to an uninstall, although others waited before: when it has not had any for an hour, its release is
// left behind.
func TestAnUninstallHasMemoryBeforeOthers(t *testing.T) {
	asked := make(chan string, 1)
	cluster := newFakeCluster(t)
	cluster.configMaps = func(to http.ResponseWriter, request *http.Request) {
		select {
		case asked <- path.Base(request.URL.Path):
		default: // only the first counts
		}

		refuse(to, apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "a", errors.New("not now")))
	}

	compared := applied(1, common.StatusDeployed, largeManifest(foreigntest.Load(40_000)), nil)
	removed := applied(1, common.StatusDeployed, strings.Replace(compared.Manifest, "name: a", "name: b", 1), nil)
	removed.Name = "removed"

	cluster.add(t, compared)
	cluster.add(t, removed)

	clientOf := func(name string) *Client {
		return New(Target{Config: cluster.config(), Name: name, Namespace: "apps", Tenant: "busy"}, logr.Discard(), time.Second)
	}
	forOne := int64(foreigntest.Load(30 * mib))
	others, rest := mustTake(t, "busy", tenantBytes-forOne), mustTake(t, "busy", forOne)

	var all sync.WaitGroup

	for i, do := range []func(){
		func() { _, _ = clientOf("demo").Drift(t.Context(), 1, nil) },
		func() {
			_ = clientOf("removed").Run(t.Context(), Request{
				Decision: Decision{Action: ActionUninstall}, Settings: Settings{Timeout: time.Minute},
				Observed: &Observed{Revisions: []Revision{{Number: 1, Status: StatusDeployed}}},
			})
		},
	} {
		all.Go(do)

		for waiters() <= i {
			time.Sleep(time.Millisecond)
		}
	}

	rest()

	if name := <-asked; name != "b" {
		t.Errorf("%s was asked for, which is not in the release that is uninstalled", name)
	}

	others()
	all.Wait()
	wantNothingHeld(t)
}
