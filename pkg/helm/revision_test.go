package helm

import (
	"encoding/json"
	"math"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/rest"

	"omni.texashpc.com/omni-cluster-operator/test/foreigntest"
)

// labelsOf are the labels of a record of ours.
func labelsOf(changes ...string) map[string]string {
	labels := map[string]string{
		"owner": "helm", "name": "demo", "version": "3", "status": "deployed", "modifiedAt": "1767355200",
		labelRevision: "3", labelLeftUninstalling: "3", labelOwner: "uid", labelHub: "hub-1", labelGeneration: "7", labelProcess: "this", labelContent: "content",
		labelAttempt: "attempt", labelChartVersion: "1.0.0", labelTested: "Passed",
	}

	for i := 0; i < len(changes); i += 2 {
		labels[changes[i]] = changes[i+1]
	}

	return labels
}

// A server may send labels that no API server accepts. What is read of them gets into statuses.
func TestHostileLabels(t *testing.T) {
	long := strings.Repeat("x", 1<<20)

	for name := range labelsOf(labelInterrupted, "true") {
		for what, value := range map[string]string{"long": long, "two lines": "a\nb"} {
			record := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Labels: labelsOf(name, value)}}

			// What is kept of a label, or looked at, is no larger than a label may be.
			foreigntest.WantAllocated(t, 512<<10, func() {
				got, _ := parseRevision(record)

				for field, fields := 0, reflect.ValueOf(got); field < fields.NumField(); field++ {
					if text := fields.Field(field); text.Kind() == reflect.String && (text.Len() > validation.LabelValueMaxLength || strings.Contains(text.String(), "\n")) {
						t.Errorf("%s in label %s: %s has %d bytes", what, name, fields.Type().Field(field).Name, text.Len())
					}
				}
			})
		}
	}

	got, ok := parseRevision(&metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Labels: labelsOf()}})
	if !ok || got.Number != 3 || got.ChartVersion != "1.0.0" || got.Owner != "uid" {
		t.Errorf("a record of ours: %+v, %t", got, ok)
	}
}

// observed is what Observe makes of a list of records.
func observed(t *testing.T, records ...metav1.ObjectMeta) Observed {
	t.Helper()

	list := metav1.PartialObjectMetadataList{TypeMeta: metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadataList"}}
	for _, record := range records {
		list.Items = append(list.Items, metav1.PartialObjectMetadata{ObjectMeta: record})
	}

	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")

		if err := json.NewEncoder(w).Encode(list); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(server.Close)

	found, err := New(Target{Config: &rest.Config{Host: server.URL}, Name: "demo", Namespace: "apps"}, logr.Discard(), 0).Observe(t.Context())
	if err != nil {
		t.Fatal(err)
	}

	return found
}

// Helm finds a record by its name, and a status lists a revision once: a copy that somebody keeps is no revision.
func TestCopiesOfRecordsAreNoRevisions(t *testing.T) {
	for what, another := range map[string]metav1.ObjectMeta{
		"a copy":          {Name: key("demo", 3) + "-bak", Labels: labelsOf()},
		"of another name": {Name: "saved", Labels: labelsOf("version", "4")},
		"too large":       {Name: key("demo", math.MaxUint32+4), Labels: labelsOf("version", strconv.Itoa(math.MaxUint32+4))},
		"0":               {Name: key("demo", 0), Labels: labelsOf("version", "0")},
		"negative":        {Name: key("demo", -3), Labels: labelsOf("version", "-3")},
	} {
		found := observed(t, metav1.ObjectMeta{Name: key("demo", 3), Labels: labelsOf()}, another)
		if len(found.Revisions) != 1 || found.Revisions[0].Number != 3 {
			t.Errorf("%s: %+v", what, found.Revisions)
		}
	}
}

// A time that cannot be read back makes the whole status unreadable.
func TestTimesOfRecordsCanBeShown(t *testing.T) {
	made := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

	for label, want := range map[string]time.Time{
		"1767355260": made.Add(time.Minute), "": made, "soon": made, "99999999999999": made, "253402300800": made,
		"9223372036854775807": made,
	} {
		got, ok := parseRevision(&metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.Time{Time: made}, Labels: labelsOf("modifiedAt", label)}})
		if !ok || !got.Modified.Equal(want) {
			t.Errorf("%q: %s, want %s", label, got.Modified, want)
		}
	}
}

// A lock lasts from when the API server saw the last write of Helm, however wrong the clock is where that runs.
func TestALockCountsFromTheServersClock(t *testing.T) {
	written := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	seconds := func(at time.Time) string { return strconv.FormatInt(at.Unix(), 10) }

	fields := func(text string, at time.Time) metav1.ManagedFieldsEntry {
		entry := metav1.ManagedFieldsEntry{Manager: "helm", Operation: metav1.ManagedFieldsOperationUpdate, FieldsV1: &metav1.FieldsV1{}, Time: &metav1.Time{Time: at}}
		entry.FieldsV1.SetRawString(text)

		return entry
	}

	const helms, others = `{"f:data":{"f:release":{}},"f:metadata":{"f:labels":{"f:modifiedAt":{},"f:status":{}}}}`, `{"f:metadata":{"f:annotations":{"f:backup":{}}}}`

	for name, test := range map[string]struct {
		label         time.Time // zero: none
		created       time.Time
		managed       []metav1.ManagedFieldsEntry
		locked, ended time.Time // what counts for a revision without a result, and for one with
	}{
		"a clock that is behind": {
			label: written.Add(-time.Hour), created: written.Add(-2 * time.Hour), managed: []metav1.ManagedFieldsEntry{fields(helms, written)},
			locked: written, ended: written.Add(-time.Hour),
		},
		"a clock that is ahead": {
			label: written.Add(time.Hour), created: written.Add(-time.Minute), managed: []metav1.ManagedFieldsEntry{fields(helms, written)},
			locked: written.Add(time.Hour), ended: written.Add(time.Hour),
		},
		"just made": {label: written.Add(-time.Hour), created: written, locked: written, ended: written.Add(-time.Hour)},
		"no label":  {created: written, locked: written, ended: written},
		"somebody else wrote since": {
			label: written, created: written.Add(-time.Minute),
			managed: []metav1.ManagedFieldsEntry{fields(others, written.Add(time.Hour)), fields(helms, written), {Time: &metav1.Time{Time: written.Add(time.Hour)}}, fields(helms, written.Add(-time.Minute))},
			locked:  written, ended: written,
		},
	} {
		for status, want := range map[Status]time.Time{
			StatusPendingInstall: test.locked, StatusPendingUpgrade: test.locked, StatusPendingRollback: test.locked, StatusUninstalling: test.locked, StatusUnknown: test.locked,
			StatusDeployed: test.ended, StatusFailed: test.ended, StatusUninstalled: test.ended, StatusSuperseded: test.ended,
		} {
			labels := labelsOf("status", string(status))
			delete(labels, "modifiedAt")

			if !test.label.IsZero() {
				labels["modifiedAt"] = seconds(test.label)
			}

			got, ok := parseRevision(&metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
				Labels: labels, CreationTimestamp: metav1.Time{Time: test.created}, ManagedFields: test.managed,
			}})
			if !ok || !got.lockedSince().Equal(want) {
				t.Errorf("%s, %s: %s, want %s", name, status, got.lockedSince(), want)
			}

			if !got.Modified.Equal(test.ended) {
				t.Errorf("%s, %s: modified %s, want %s", name, status, got.Modified, test.ended)
			}
		}
	}
}

// Helm copies labels to the next revision, and another client's records have no mark of ours beside this one.
func TestWhichRevisionAnUninstallLeft(t *testing.T) {
	for version, want := range map[string]bool{"3": true, "4": false} {
		for name, of := range map[string]string{"ours": version, "another client's": ""} {
			got, ok := parseRevision(&metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Labels: labelsOf("version", version, labelRevision, of)}})
			if !ok || got.LeftUninstalling != want {
				t.Errorf("%s, revision %s: %+v", name, version, got)
			}
		}
	}
}
