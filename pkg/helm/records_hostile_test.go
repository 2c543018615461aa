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

	"omni.texashpc.com/omni-cluster-operator/pkg/foreign"
	"omni.texashpc.com/omni-cluster-operator/pkg/foreign/foreigntest"
	"omni.texashpc.com/omni-cluster-operator/pkg/helm/records"
	"omni.texashpc.com/omni-cluster-operator/test/await"
)

// largeManifest is one ConfigMap with so many maps of one key.
func largeManifest(maps int) string {
	return object("a") + "x:\n" + strings.Repeat("- {a: bcd}\n", maps)
}

// Many releases are compared whose records are small and become large. What their comparisons hold together is bounded,
// and a usual one does not wait for them.
func TestManyLargeRecordsAtOnce(t *testing.T) {
	hostile := foreigntest.AtOnce(6)
	free := occupied(t, recordMemory, totalRecordBytes)

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

		for int(comparing.Load())+waiters(recordMemory) < hostile { // as many as may have read theirs
			time.Sleep(time.Millisecond)
		}

		compare("usual", "other")
		close(end)

		all.Wait()
	})

	free()
	recordMemory.wantEmpty(t)
}

// An action that finds no room for its second record gives back that of the first, waits for both, and begins anew.
func TestAnActionWaitsForRoomForItsRecords(t *testing.T) {
	cluster := newFakeCluster(t)
	cluster.configMaps = func(to http.ResponseWriter, _ *http.Request) {
		refuse(to, apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "a", errors.New("not now")))
	}

	cluster.add(t, applied(1, common.StatusSuperseded, largeManifest(foreigntest.Load(40_000)), nil))
	cluster.add(t, applied(2, common.StatusDeployed, largeManifest(foreigntest.Load(40_000)), nil))

	c := New(Target{Config: cluster.config(), Name: "demo", Namespace: "apps", Tenant: "busy"}, logr.Discard(), time.Second)
	rollBackWithin := func(ctx context.Context, timeout time.Duration) error {
		return c.Run(ctx, Request{
			Decision: Decision{Action: ActionRollback, Revision: 1}, Settings: Settings{Timeout: timeout},
			Observed: &Observed{Revisions: []Revision{{Number: 2, Status: StatusDeployed}, {Number: 1, Status: StatusSuperseded}}},
		})
	}

	rollBack := func(ctx context.Context) error { return rollBackWithin(ctx, await.Limit) }

	busy := tenantRecordBytes - int64(foreigntest.Load(30*mib))
	release := mustTry(t, recordMemory, "busy", busy)
	ended := make(chan error)

	go func() { ended <- rollBack(t.Context()) }()

	await.Until(t, "it waits for room", func() bool { return waiters(recordMemory) > 0 })

	if held, _ := recordMemory.bytes.Load(); held != busy {
		t.Errorf("%d MiB are held beside what was there before", (held-busy)>>20)
	}

	impatient := newImpatient(t)

	go func() { ended <- rollBack(impatient) }()

	await.Until(t, "another one waits", func() bool { return waiters(recordMemory) > 1 })
	impatient.end()

	var failure *Error
	if err := <-ended; !errors.As(err, &failure) || failure.Reason != ReasonInterrupted || !strings.Contains(err.Error(), "wait until other large records") {
		t.Errorf("got %v", err)
	}

	// Time that is over in such a wait is no failure of the release.
	if err := rollBackWithin(t.Context(), 10*time.Second); !errors.As(err, &failure) || failure.Reason != ReasonUnavailable || !strings.Contains(err.Error(), "rollback was not tried: wait until other large records") {
		t.Errorf("got %v", err)
	}

	release()

	if err := <-ended; !errors.As(err, &failure) || failure.Reason != ReasonForbidden || !strings.Contains(err.Error(), "not now") {
		t.Errorf("got %v", err)
	}

	recordMemory.wantEmpty(t)
}

// The room that is free next goes to an uninstall, although others waited before: when it has not had any for an hour, its release is
// left behind.
func TestAnUninstallHasRoomBeforeOthers(t *testing.T) {
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
	others, room := mustTry(t, recordMemory, "busy", tenantRecordBytes-forOne), mustTry(t, recordMemory, "busy", forOne)

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

		for waiters(recordMemory) <= i {
			time.Sleep(time.Millisecond)
		}
	}

	room()

	if name := <-asked; name != "b" {
		t.Errorf("%s was asked for, which is not in the release that is uninstalled", name)
	}

	others()
	all.Wait()
	recordMemory.wantEmpty(t)
}

// Who is refused again waits for twice as much, and not for all that one namespace may have: smaller requests pass it.
func TestAgainRefusedWaitsForTwiceAsMuch(t *testing.T) {
	room, calls := newRecordRoom("one"), 0

	err := room.inRoom(t.Context(), func() error {
		if calls++; calls == 1 {
			return &fullError{room.room, 10 * mib}
		}

		if calls == 2 {
			return &fullError{room.room, 15 * mib}
		}

		return nil
	}, func() error { room.giveBack(); return nil })
	if err != nil || room.has != 20*mib {
		t.Errorf("%v, it has %d MiB", err, room.has/mib)
	}

	room.giveBack()
	recordMemory.wantEmpty(t)
}

// Room that is not needed any more serves the next record, and a record that is read again takes none twice.
func TestRoomOfRecords(t *testing.T) {
	room := newRecordRoom("one")
	size := records.Size{Record: foreign.Size{Bytes: 30 * mib}}

	for _, name := range []string{"a", "b", "b"} {
		if err := room.admit(name, size); err != nil {
			t.Fatal(err)
		}
	}

	if room.has != 60*mib {
		t.Errorf("it has %d MiB", room.has/mib)
	}

	room.forget("a")

	if err := room.admit("c", size); err != nil || room.has != 60*mib {
		t.Errorf("%v, it has %d MiB", err, room.has/mib)
	}

	room.giveBack()
	recordMemory.wantEmpty(t)
}
