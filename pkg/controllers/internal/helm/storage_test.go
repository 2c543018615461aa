package helm

import (
	"errors"
	"testing"

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
	wrapped := &resumable{Driver: memory, release: "demo", hidden: hidden, begun: func() { begun++ }}

	return storage.Init(wrapped), wrapped, &begun
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

	if err := store.Create(record(2, common.StatusPendingUpgrade)); !errors.Is(err, driver.ErrReleaseExists) {
		t.Errorf("a second record: %v", err)
	}
}

func TestAnInterruptedRevisionAlone(t *testing.T) {
	store, _, _ := newStorage(t, 3, record(3, common.StatusPendingInstall))

	if _, err := store.History("demo"); !errors.Is(err, driver.ErrReleaseNotFound) {
		t.Errorf("history: %v", err)
	}

	if err := store.Create(record(1, common.StatusPendingInstall)); err != nil {
		t.Fatal(err)
	}

	history, err := store.History("demo")
	if err != nil || len(history) != 1 || history[0].(*releasev1.Release).Version != 1 {
		t.Errorf("history: %v, %v", history, err)
	}
}

// Helm copies labels from revision to revision. Those that we did not write for a revision say nothing about it.
func TestLabelsThatWereCopied(t *testing.T) {
	store, _, _ := newStorage(t, 0)
	shared := map[string]string{labelOwner: "uid", labelContent: "content"}

	made := record(3, common.StatusPendingRollback)
	made.Labels = shared

	if err := store.Create(made); err != nil {
		t.Fatal(err)
	}

	if made.Labels[labelRevision] != "3" || shared[labelRevision] != "" {
		t.Errorf("labels %v, shared %v", made.Labels, shared)
	}

	for version, owner := range map[string]string{"3": "uid", "4": ""} {
		labels := map[string]string{"version": version, "status": "deployed", labelOwner: "uid", labelContent: "content", labelAttempt: "attempt",
			labelTested: "Passed", labelRevision: "3"}

		got, ok := parseRevision(&metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Labels: labels}})
		if !ok || got.Owner != owner || (got.Content == "") != (owner == "") || got.Status != StatusDeployed || (got.Tested == "") != (owner == "") {
			t.Errorf("revision %s: %+v", version, got)
		}
	}
}
