package helm

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"

	"omni.texashpc.com/omni-cluster-operator/pkg/foreign/answer"
	"omni.texashpc.com/omni-cluster-operator/pkg/helm/values"
)

// Labels that we write on Helm's records of a release.
const (
	labelPrefix = "omni.texashpc.com/"
	// labelContent is the digest of what the revision was made from.
	labelContent = labelPrefix + "content"
	// labelAttempt is the digest of content and of all settings of the action.
	labelAttempt = labelPrefix + "attempt"
	// labelOwner is the UID of the OmniHelmRelease that made the revision.
	labelOwner = labelPrefix + "owner"
	// labelHub is the ID of the hub of that OmniHelmRelease. Revisions from before it was written have none.
	labelHub = labelPrefix + "hub-id"
	// labelGeneration is the generation of the OmniHelmRelease that made the revision. Revisions from before it was written
	// have none.
	labelGeneration = labelPrefix + "generation"
	// labelRevision is the number of the revision whose labels these are.
	labelRevision = labelPrefix + "revision"
	// labelProcess names the process of the controller that made the revision.
	labelProcess = labelPrefix + "process"
	// labelChartVersion is the version of the chart, with _ for +.
	labelChartVersion = labelPrefix + "chart-version"
	// labelTested is the result of the chart's tests.
	labelTested = labelPrefix + "tested"
	// labelInterrupted marks a revision whose action was not finished and did not fail.
	labelInterrupted = labelPrefix + "interrupted"
	// labelUnchecked marks a revision whose values were not checked against a schema of its chart.
	labelUnchecked = labelPrefix + "values-unchecked"
	// labelLeftUninstalling marks a revision that an uninstall has left without a result, and that was unlocked. It holds the
	// number of the revision: another client's next revision has a copy, which says nothing.
	labelLeftUninstalling = labelPrefix + "left-uninstalling"
)

// digestLength is how many hex digits of a digest a label holds; a label's
// value has 63 characters at most.
const digestLength = 40

// year10000 is when the first year begins, in seconds, that a time in JSON cannot have.
const year10000 = 253_402_300_800

// Status is Helm's status of a revision.
type Status string

// The statuses, as Helm writes them.
const (
	StatusUnknown         Status = "unknown"
	StatusDeployed        Status = "deployed"
	StatusUninstalled     Status = "uninstalled"
	StatusSuperseded      Status = "superseded"
	StatusFailed          Status = "failed"
	StatusUninstalling    Status = "uninstalling"
	StatusPendingInstall  Status = "pending-install"
	StatusPendingUpgrade  Status = "pending-upgrade"
	StatusPendingRollback Status = "pending-rollback"
)

// pending reports whether an action was begun and not ended.
func (x Status) pending() bool {
	return x == StatusPendingInstall || x == StatusPendingUpgrade || x == StatusPendingRollback
}

// good reports whether the revision was in effect once.
func (x Status) good() bool { return x == StatusDeployed || x == StatusSuperseded }

// Tested is the result of a chart's tests.
type Tested string

// The results. Empty means that they were not run.
const (
	TestsPassed Tested = "Passed"
	TestsFailed Tested = "Failed"
)

// Revision is one revision of a release, as the labels of its record say.
type Revision struct {
	// Number is Helm's number of the revision.
	Number int
	// Status is Helm's status.
	Status Status
	// Content and Attempt are what was asked for; empty if another client made the revision.
	Content, Attempt string
	// Owner is the UID of the OmniHelmRelease that made the revision; empty if another client did.
	Owner string
	// Hub is the ID of the hub of that OmniHelmRelease; empty if another client made the revision.
	Hub string
	// Generation is that of the OmniHelmRelease when it made the revision; 0 if another client did.
	Generation int64
	// Process names the process of the controller that made the revision; empty if another client did.
	Process string
	// ChartVersion is the version of the chart; empty if another client made the revision.
	ChartVersion string
	// Tested is the result of the tests.
	Tested Tested
	// Interrupted tells that the action was ended by a stop of the controller and not by a failure.
	Interrupted bool
	// Unchecked tells that the values were not checked against a schema of the chart or of its subcharts, because the schema is broken
	// or refers to something outside the chart.
	Unchecked bool
	// LeftUninstalling tells that an uninstall was begun that never ended, and whose lock was taken off.
	LeftUninstalling bool
	// Created is when the record was made, by the workload cluster's clock, to the second.
	Created time.Time
	// Modified is when Helm changed the record last, by the clock of the computer on which it ran, to the second.
	Modified time.Time
	// Written is when the workload cluster took that change, by its clock; zero if the revision has a result.
	Written time.Time
}

// UnderWay reports whether the action that made the revision has no result: it is at work, or was left behind.
func (r *Revision) UnderWay() bool { return r.Status.pending() }

// Observed is what there is of a release.
type Observed struct {
	// Revisions are sorted, the newest first.
	Revisions []Revision
}

// Latest is the newest revision, or nil.
func (o Observed) Latest() *Revision {
	if len(o.Revisions) == 0 {
		return nil
	}

	return &o.Revisions[0]
}

// lastGood is the newest revision before a number that was in effect and was not
// uninstalled since, or nil.
func (o Observed) lastGood(before int) *Revision {
	for i := range o.Revisions {
		r := &o.Revisions[i]

		switch {
		case r.Number >= before:
		case r.Status == StatusUninstalled:
			return nil
		case r.Status.good():
			return r
		}
	}

	return nil
}

// goBackTo is what a rollback of a revision goes back to: the last good one, or nil if an uninstall since that was left without
// a result: what that was removing must not be made again. It may have left anything, so what follows is an upgrade all the same.
func (o Observed) goBackTo(failed int) *Revision {
	good := o.lastGood(failed)
	if good == nil || slices.ContainsFunc(o.Revisions, func(r Revision) bool { return r.LeftUninstalling && r.Number >= good.Number && r.Number <= failed }) {
		return nil
	}

	return good
}

// attemptsBegan is when the first of the attempts began that came to nothing: those
// since the last revision that was in effect, up to a number. It is zero if that one
// was in effect.
func (o Observed) attemptsBegan(number int) time.Time {
	var began time.Time

	for i := range o.Revisions {
		r := &o.Revisions[i]
		if r.Number > number {
			continue
		}

		if r.Status.good() || r.Status == StatusUninstalled {
			break
		}

		began = r.Created
	}

	return began
}

// rollBackDue reports whether a rollback after a failed attempt was begun and did
// not end well: nothing after the failed revision was ever in effect, and the
// newest is no attempt but what a rollback has left.
func (o Observed) rollBackDue(attempt string) bool {
	for i := range o.Revisions {
		r := &o.Revisions[i]

		switch {
		case r.Status.good() || r.Interrupted || r.Status == StatusUninstalled || r.LeftUninstalling:
			return false
		case r.Attempt == attempt && r.Status == StatusFailed:
			return i > 0 && o.goBackTo(r.Number) != nil
		}
	}

	return false
}

// failures counts the failed revisions of an attempt, since another one of this object was put into effect: then
// something else was wanted meanwhile. A rollback says nothing like that; there is none if the attempt does not roll back.
func (o Observed) failures(attempt string, rollsBack bool) int {
	count := 0

	for i := range o.Revisions {
		switch r := &o.Revisions[i]; {
		case r.Attempt == attempt && r.Status == StatusFailed && !r.Interrupted && !r.LeftUninstalling:
			count++
		case r.Status.good() && r.Attempt != "" && r.Attempt != attempt && (!rollsBack || o.noRollback(i)):
			return count
		}
	}

	return count
}

// noRollback reports whether a revision cannot be what a rollback made: that follows a failure at once.
func (o Observed) noRollback(i int) bool {
	return i+1 < len(o.Revisions) && o.Revisions[i+1].Number == o.Revisions[i].Number-1 && o.Revisions[i+1].Status.good()
}

// Digest is a digest over texts that fits into a label.
func Digest(texts ...string) string {
	hash := sha256.New()

	for _, text := range texts {
		inner := sha256.Sum256([]byte(text))
		hash.Write(inner[:])
	}

	return hex.EncodeToString(hash.Sum(nil))[:digestLength]
}

// secretsResource is where Helm keeps its records.
func secretsResource() schema.GroupVersionResource {
	return schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
}

// Observe lists the revisions of the release. Only labels are read.
func (c *Client) Observe(ctx context.Context) (Observed, error) {
	client, err := c.metadata(ctx)
	if err != nil {
		return Observed{}, err
	}

	selector := labels.Set{"owner": "helm", "name": c.target.Name}.String()

	list, err := client.Resource(secretsResource()).Namespace(c.target.Namespace).List(ctx, metav1.ListOptions{LabelSelector: selector})

	var limit *answer.LimitError
	if errors.As(err, &limit) {
		return Observed{}, c.tooMany(limit)
	}

	if err != nil {
		return Observed{}, classify("list the revisions of the release", err, c.redactorFor(values.Values{}))
	}

	observed := Observed{Revisions: make([]Revision, 0, len(list.Items))}

	for i := range list.Items {
		// Records are read and written by their names: what has the labels of one and another name, as a copy that somebody keeps, is none.
		if revision, ok := parseRevision(&list.Items[i]); ok && list.Items[i].Name == key(c.target.Name, revision.Number) {
			observed.Revisions = append(observed.Revisions, revision)
		}
	}

	slices.SortFunc(observed.Revisions, func(a, b Revision) int { return cmp.Compare(b.Number, a.Number) })

	return observed, nil
}

// tooMany is the error of a release of which not even the labels of the records are read. Nothing keeps their number small
// with maxHistory: 0.
func (c *Client) tooMany(limit *answer.LimitError) error {
	return &Error{Reason: ReasonRecord, Message: fmt.Sprintf("the release has so many revisions that they are not listed, and nothing was changed: the workload cluster %s. "+
		"Delete the records of older ones there (kubectl delete secrets --namespace %s --selector owner=helm,name=%s,status=superseded), and let spec.maxHistory keep fewer",
		limit, c.target.Namespace, c.target.Name)}
}

// parseRevision reads the labels of a record. What of them gets into statuses has no other bound: with a value that no API
// server accepts, it is no record.
func parseRevision(record *metav1.PartialObjectMetadata) (Revision, bool) {
	for _, value := range record.Labels {
		if !validLabel(value) {
			return Revision{}, false
		}
	}

	number, err := strconv.Atoi(record.Labels["version"])
	if err != nil || number < 1 || number > math.MaxInt32 { // statuses have 32 bits for it
		return Revision{}, false
	}

	created, modified, written := record.CreationTimestamp.Time, modifiedAt(record), writtenAt(record)
	left := record.Labels[labelLeftUninstalling] == record.Labels["version"]

	// Helm copies labels to the next revision, also of another client's upgrade.
	if record.Labels[labelRevision] != record.Labels["version"] {
		return Revision{Number: number, Status: Status(record.Labels["status"]), LeftUninstalling: left, Created: created, Modified: modified, Written: written}, true
	}

	generation, _ := strconv.ParseInt(record.Labels[labelGeneration], 10, 64) // there is none, or somebody wrote another text

	return Revision{
		Number: number, Status: Status(record.Labels["status"]), Generation: generation,
		Content: record.Labels[labelContent], Attempt: record.Labels[labelAttempt], Owner: record.Labels[labelOwner], Hub: record.Labels[labelHub], Process: record.Labels[labelProcess],
		ChartVersion: strings.ReplaceAll(record.Labels[labelChartVersion], "_", "+"), Tested: Tested(record.Labels[labelTested]),
		Interrupted: record.Labels[labelInterrupted] != "", Unchecked: record.Labels[labelUnchecked] != "", LeftUninstalling: left, Created: created, Modified: modified, Written: written,
	}, true
}

// labelModifiedAt is where Helm writes when it changed a record last, by the clock of the computer on which it runs.
const labelModifiedAt = "modifiedAt"

// modifiedAt is when a record was changed last. Helm writes a label; if it names no time that JSON can show, the record's own
// time counts.
func modifiedAt(record *metav1.PartialObjectMetadata) time.Time {
	if seconds, err := strconv.ParseInt(record.Labels[labelModifiedAt], 10, 64); err == nil && seconds >= 0 && seconds < year10000 {
		return time.Unix(seconds, 0)
	}

	return record.CreationTimestamp.Time
}

// writtenAt is when the API server took the last change of a revision without a result; zero for another one.
func writtenAt(record *metav1.PartialObjectMetadata) time.Time {
	if status := Status(record.Labels["status"]); !status.pending() && status != StatusUnknown && status != StatusUninstalling {
		return time.Time{}
	}

	return later(record.CreationTimestamp.Time, labelledAt(record))
}

// later is the later of two times.
func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}

	return a
}

// labelledAt is when the API server took Helm's label, by its clock; zero if it does not say. What others write, such as a mark of
// a backup, is no work on the release.
func labelledAt(record *metav1.PartialObjectMetadata) time.Time {
	var at time.Time

	for _, entry := range record.ManagedFields {
		if entry.Time != nil && entry.FieldsV1 != nil && entry.Time.After(at) && strings.Contains(entry.FieldsV1.GetRawString(), `"f:`+labelModifiedAt+`"`) {
			at = entry.Time.Time
		}
	}

	return at
}

// validLabel reports whether an API server accepts a label with this value. The length comes first: that is cheap.
func validLabel(value string) bool {
	return len(value) <= validation.LabelValueMaxLength && len(validation.IsValidLabelValue(value)) == 0
}

// key is the name of Helm's record of a revision.
func key(release string, revision int) string {
	return fmt.Sprintf("sh.helm.release.v1.%s.v%d", release, revision)
}
