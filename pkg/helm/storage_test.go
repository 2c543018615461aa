package helm

import (
	"errors"
	"slices"
	"testing"

	"helm.sh/helm/v4/pkg/release"
	"helm.sh/helm/v4/pkg/release/common"
	releasev1 "helm.sh/helm/v4/pkg/release/v1"
	"helm.sh/helm/v4/pkg/storage"
	"helm.sh/helm/v4/pkg/storage/driver"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func record(version int, status common.Status) *releasev1.Release {
	return &releasev1.Release{Name: "demo", Namespace: "default", Version: version, Info: &releasev1.Info{Status: status}}
}

func newStorage(t *testing.T, hidden int, records ...*releasev1.Release) (*storage.Storage, *resumable, *int) {
	t.Helper()

	memory := driver.NewMemory()

	for _, one := range records {
		if err := memory.Create(key("demo", one.Version), one); err != nil {
			t.Fatal(err)
		}
	}

	begun := 0
	wrapped := newResumable(memory, "demo", func() (Observed, error) {
		found, err := memory.Query(map[string]string{"name": "demo", "owner": "helm"})
		if errors.Is(err, driver.ErrReleaseNotFound) {
			return Observed{}, nil
		}

		var observed Observed

		for _, one := range found {
			revision := one.(*releasev1.Release)
			observed.Revisions = append(observed.Revisions, Revision{Number: revision.Version, Status: Status(revision.Info.Status)})
		}

		return observed, err
	})
	wrapped.hidden, wrapped.begun, wrapped.process = hidden, func() { begun++ }, "this"

	return storage.Init(wrapped), wrapped, &begun
}

// counting counts what a driver is asked.
type counting struct {
	driver.Driver

	gets []string
}

// Get implements driver.Driver.
func (c *counting) Get(name string) (release.Releaser, error) {
	c.gets = append(c.gets, name)

	return c.Driver.Get(name)
}

// Helm looks at the history again and again; each record that it needs is read once, and the others never.
func TestRecordsAreReadOnce(t *testing.T) {
	store, wrapped, _ := newStorage(t, 0, record(1, common.StatusSuperseded), record(2, common.StatusDeployed), record(3, common.StatusFailed))
	counted := &counting{Driver: wrapped.Driver}
	wrapped.Driver = counted

	for range 3 {
		history, err := store.History("demo")
		if err != nil || len(history) != 3 {
			t.Fatalf("history: %v, %v", history, err)
		}

		deployed, err := store.Deployed("demo")
		if err != nil || deployed.(*releasev1.Release).Version != 2 {
			t.Fatalf("deployed: %v, %v", deployed, err)
		}

		last, err := store.Last("demo")
		if err != nil || last.(*releasev1.Release).Version != 3 {
			t.Fatalf("last: %v, %v", last, err)
		}

		// What is changed and not written does not count.
		last.(*releasev1.Release).Info.Status = common.StatusDeployed
	}

	if want := []string{key("demo", 2), key("demo", 3)}; !slices.Equal(counted.gets, want) {
		t.Errorf("read %v, want %v", counted.gets, want)
	}

	history, err := store.History("demo")
	if err != nil {
		t.Fatal(err)
	}

	if err := store.Update(history[0]); err == nil {
		t.Error("a record that was not read was written")
	}

	// What is written counts at once.
	if err := store.Update(record(2, common.StatusSuperseded)); err != nil {
		t.Fatal(err)
	}

	if err := store.Create(record(4, common.StatusDeployed)); err != nil {
		t.Fatal(err)
	}

	deployed, err := store.DeployedAll("demo")
	if err != nil || len(deployed) != 1 || deployed[0].(*releasev1.Release).Version != 4 {
		t.Errorf("deployed: %v, %v", deployed, err)
	}

	if _, err := store.Delete("demo", 4); err != nil {
		t.Fatal(err)
	}

	if _, err := store.Deployed("demo"); !errors.Is(err, driver.ErrNoDeployedReleases) {
		t.Errorf("deployed after the removal: %v", err)
	}
}

// Somebody else makes or removes a revision between the look and the action.
func TestSomebodyElseIsQuicker(t *testing.T) {
	store, wrapped, _ := newStorage(t, 0, record(1, common.StatusDeployed))

	if _, err := store.Last("demo"); err != nil {
		t.Fatal(err)
	}

	if err := wrapped.Driver.Create(key("demo", 2), record(2, common.StatusDeployed)); err != nil {
		t.Fatal(err)
	}

	var failure *Error
	if err := store.Create(record(2, common.StatusPendingUpgrade)); !errors.As(err, &failure) || failure.Reason != ReasonInterrupted {
		t.Errorf("made: %v", err)
	}

	store, _, _ = newStorage(t, 2, record(1, common.StatusDeployed))
	if err := store.Create(record(2, common.StatusPendingUpgrade)); !errors.As(err, &failure) || failure.Reason != ReasonInterrupted {
		t.Errorf("removed what is made again: %v", err)
	}

	store, wrapped, _ = newStorage(t, 0, record(1, common.StatusDeployed))
	wrapped.statuses = map[int]Status{1: StatusSuperseded, 2: StatusDeployed}

	if _, err := store.Last("demo"); !errors.As(err, &failure) || failure.Reason != ReasonInterrupted {
		t.Errorf("removed: %v", err)
	}
}

func TestRecordsThatAreKept(t *testing.T) {
	store, wrapped, _ := newStorage(t, 0, record(1, common.StatusUninstalling))
	wrapped.keep = func() error { return errors.New("objects are left") }

	if _, err := store.Delete("demo", 1); err == nil {
		t.Error("the record was removed")
	}

	if _, err := store.Last("demo"); err != nil {
		t.Error(err)
	}
}

func TestAnInterruptedRevisionIsMadeAgain(t *testing.T) {
	store, _, begun := newStorage(t, 2, record(1, common.StatusDeployed), record(2, common.StatusPendingUpgrade))

	last, err := store.Last("demo")
	if err != nil || last.(*releasev1.Release).Version != 1 {
		t.Fatalf("the last visible revision is %v, %v", last, err)
	}

	if _, err := store.Get("demo", 2); !errors.Is(err, driver.ErrReleaseNotFound) {
		t.Errorf("revision 2: %v", err)
	}

	if err := store.Create(record(2, common.StatusPendingUpgrade)); err != nil {
		t.Fatal(err)
	}

	if last, err = store.Last("demo"); err != nil || last.(*releasev1.Release).Version != 2 || *begun != 1 {
		t.Errorf("the last revision is %v, %v, begun %d", last, err, *begun)
	}

	if err := store.Create(record(2, common.StatusPendingUpgrade)); err == nil {
		t.Error("a second record was made")
	}
}

// The write that says that a revision failed says, too, that a stop ended it: a process that dies behind it must not leave
// a failure, from which the next one rolls back.
func TestAStopIsWrittenWithTheFailure(t *testing.T) {
	store, wrapped, _ := newStorage(t, 0)
	stopped := false
	wrapped.stopped = func() bool { return stopped }

	for number, test := range []struct {
		stopped bool
		status  common.Status
		want    string
	}{
		{false, common.StatusFailed, ""},
		{true, common.StatusDeployed, ""},
		{true, common.StatusFailed, "true"},
	} {
		stopped = false

		made := record(number+1, common.StatusPendingUpgrade)
		if err := store.Create(made); err != nil {
			t.Fatal(err)
		}

		stopped = test.stopped
		made.Info = &releasev1.Info{Status: test.status}

		if err := store.Update(made); err != nil {
			t.Fatal(err)
		}

		written, err := wrapped.Driver.Get(key("demo", number+1))
		if err != nil {
			t.Fatal(err)
		}

		if got := written.(*releasev1.Release).Labels[labelInterrupted]; got != test.want {
			t.Errorf("%+v: interrupted is %q", test, got)
		}
	}

	// What failed before the stop is a failure.
	before := record(1, common.StatusFailed)
	if err := store.Update(before); err != nil || before.Labels[labelInterrupted] != "" {
		t.Errorf("an old failure: %v, labels %v", err, before.Labels)
	}
}

// undeletable is a driver that removes nothing: an API server that refuses it, or a process that has died before.
type undeletable struct{ driver.Driver }

// Delete implements driver.Driver.
func (undeletable) Delete(string) (release.Releaser, error) { return nil, errors.New("refused") }

// Helm counts anew from what it sees. What was before an interrupted revision may be gone, because Helm keeps so many
// revisions only; then the next one gets a number that it had before. There is one revision without a result all the same, at every
// moment, and it can be made again and again.
func TestAnInterruptedRevisionAlone(t *testing.T) {
	for name, test := range map[string]struct {
		before []*releasev1.Release
		number int // that Helm gives
		status common.Status
		action Action
	}{
		"install": {nil, 1, common.StatusPendingInstall, ActionInstall},
		"upgrade": {[]*releasev1.Release{record(1, common.StatusDeployed)}, 2, common.StatusPendingUpgrade, ActionUpgrade},
	} {
		t.Run(name, func(t *testing.T) {
			store, wrapped, _ := newStorage(t, 3, append(test.before, record(3, test.status))...)
			wrapped.Driver = undeletable{wrapped.Driver}

			for range 2 {
				history, err := store.History("demo")
				if len(history) != len(test.before) || err != nil && !errors.Is(err, driver.ErrReleaseNotFound) {
					t.Fatalf("history: %v, %v", history, err)
				}

				made := record(test.number, test.status)
				if err := store.Create(made); err != nil {
					t.Fatal(err)
				}

				// Helm goes on with what it made.
				if made.Version != 3 || made.Labels[labelRevision] != "3" {
					t.Errorf("made revision %d with labels %v", made.Version, made.Labels)
				}

				if last, err := store.Last("demo"); err != nil || last.(*releasev1.Release).Version != 3 {
					t.Errorf("the last revision is %v, %v", last, err)
				}

				found, err := wrapped.list()
				if err != nil || len(found.Revisions) != len(test.before)+1 {
					t.Fatalf("%+v, %v", found, err)
				}

				slices.SortFunc(found.Revisions, func(a, b Revision) int { return b.Number - a.Number })

				if decision := Decide(Wanted{}, found, testTime()); decision.Action != test.action || decision.Resume != 3 {
					t.Errorf("decided %+v", decision)
				}

				wrapped = newResumable(wrapped.Driver, "demo", wrapped.list)
				wrapped.hidden = 3
				store = storage.Init(wrapped)
			}

			if err := store.Create(record(4, test.status)); err == nil {
				t.Error("a revision was made beside the interrupted one")
			}
		})
	}
}

// Helm copies labels from revision to revision. Those that we did not write for a revision say nothing about it.
func TestLabelsThatWereCopied(t *testing.T) {
	store, wrapped, _ := newStorage(t, 0)
	wrapped.owner, wrapped.hub, wrapped.generation = "uid", "hub-1", 7
	// As a rollback copies them from a revision that was made before the release was taken over.
	shared := map[string]string{labelOwner: "former", labelHub: "former-hub", labelContent: "content", labelGeneration: "2"}

	made := record(3, common.StatusPendingRollback)
	made.Labels = shared

	if err := store.Create(made); err != nil {
		t.Fatal(err)
	}

	if made.Labels[labelRevision] != "3" || made.Labels[labelProcess] != "this" || shared[labelRevision] != "" ||
		made.Labels[labelOwner] != "uid" || made.Labels[labelHub] != "hub-1" || made.Labels[labelGeneration] != "7" {
		t.Errorf("labels %v, shared %v", made.Labels, shared)
	}

	for version, owner := range map[string]string{"3": "uid", "4": ""} {
		labels := map[string]string{"version": version, "status": "deployed", labelOwner: "uid", labelHub: "hub-1", labelContent: "content", labelAttempt: "attempt",
			labelTested: "Passed", labelRevision: "3", labelGeneration: "7"}

		got, ok := parseRevision(&metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Labels: labels}})
		if !ok || got.Owner != owner || (got.Hub == "hub-1") != (owner != "") || (got.Content == "") != (owner == "") || got.Status != StatusDeployed || (got.Tested == "") != (owner == "") || (got.Generation == 7) != (owner != "") {
			t.Errorf("revision %s: %+v", version, got)
		}
	}
}

// Helm calls what was uninstalled superseded when the release is installed again.
func TestWhatWasUninstalledStaysUninstalled(t *testing.T) {
	store, wrapped, _ := newStorage(t, 0, record(1, common.StatusUninstalled), record(2, common.StatusUninstalled))

	if _, err := store.Last("demo"); err != nil {
		t.Fatal(err)
	}

	if err := store.Update(record(2, common.StatusSuperseded)); err != nil {
		t.Fatal(err)
	}

	kept, err := wrapped.Driver.Get(key("demo", 2))
	if err != nil {
		t.Fatal(err)
	}

	if got := kept.(*releasev1.Release).Info.Status; got != common.StatusUninstalled {
		t.Errorf("the record says %s", got)
	}
}
