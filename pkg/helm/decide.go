package helm

import (
	"context"
	"fmt"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"omni.texashpc.com/omni-cluster-operator/pkg/helm/kubeclient"
	"omni.texashpc.com/omni-cluster-operator/pkg/helm/values"
	"omni.texashpc.com/omni-cluster-operator/pkg/words"
)

// handoverTime is how long a pending revision of ours counts as being worked on
// by the process that began it: a leader that lost its lease, or hangs, may still
// be at it, and what it began goes on for its grace.
const handoverTime = DefaultGrace + abandonTime + 3*time.Second

// foreignLockTime is how long an action of another client may take, in time,
// before its lock counts as left behind: six times Helm's default timeout.
const foreignLockTime = 30 * time.Minute

// Action is what to do next with a release.
type Action string

// The actions.
const (
	// ActionNone: the release is as wanted.
	ActionNone Action = "none"
	// ActionWait: another client works on the release; look again later.
	ActionWait Action = "wait"
	// ActionStall: every attempt that was allowed has failed.
	ActionStall Action = "stall"
	// ActionInstall installs the release.
	ActionInstall Action = "install"
	// ActionUpgrade upgrades the release.
	ActionUpgrade Action = "upgrade"
	// ActionRollback goes back to Decision.Revision.
	ActionRollback Action = "rollback"
	// ActionUninstall uninstalls the release and removes its history.
	ActionUninstall Action = "uninstall"
	// ActionTest runs the tests of the deployed revision.
	ActionTest Action = "test"
	// ActionUnlock marks Decision.Revision as failed, whose action ended without a result.
	ActionUnlock Action = "unlock"
)

// Wanted is what a release should be.
type Wanted struct {
	// Absent wants the release gone; nothing else counts then.
	Absent bool
	// Content is the digest of chart, values and options.
	Content string
	// Attempt is the digest of Content and of all settings of the action, RollBack among them: a new one starts the count of
	// failures anew.
	Attempt string
	// Owner is the UID of the OmniHelmRelease.
	Owner string
	// Hub is the ID of its hub.
	Hub string
	// Generation is that of the OmniHelmRelease.
	Generation int64
	// Process names the running controller; see Revision.Process.
	Process string
	// Failures are those of this attempt that left no revision behind, or whose revision is gone.
	Failures int
	// Retries is how often a failed action is tried again.
	Retries int
	// RollBack goes back to the last good revision after a failed upgrade.
	RollBack bool
	// Test wants the tests run once for each revision.
	Test bool
	// LockTime is how long another client's action may take; at least 30 minutes are given.
	LockTime time.Duration
}

// Decision is what to do next.
type Decision struct {
	// Action to take.
	Action Action
	// Revision is what a rollback goes back to, what is unlocked, or what is tested.
	Revision int
	// Resume is the number of an interrupted revision that an install or upgrade makes again. 0 makes a new one.
	Resume int
	// After is when to look again with ActionWait.
	After time.Duration
	// Failures are all failures of the attempt so far.
	Failures int
	// Why says it to people.
	Why string
}

// Decide says what to do next. It is pure, and right after a crash at any point.
func Decide(wanted Wanted, observed Observed, now time.Time) Decision {
	latest := observed.Latest()
	failures := max(wanted.Failures, observed.failures(wanted.Attempt, wanted.RollBack))

	if wanted.Absent {
		return decideAbsent(wanted, latest, now)
	}

	decision := decidePresent(wanted, observed, latest, now)
	decision.Failures = failures

	// A rollback is still due when the last attempt has failed, and has as many attempts of its own.
	if decision.Action == ActionRollback && failures > 2*wanted.Retries+1 {
		return Decision{Action: ActionStall, Failures: failures, Why: fmt.Sprintf("%d attempts and rollbacks failed", failures)}
	}

	if failures > wanted.Retries && (decision.Action == ActionInstall || decision.Action == ActionUpgrade) && decision.Resume == 0 {
		return Decision{Action: ActionStall, Failures: failures, Why: fmt.Sprintf("%d attempts failed", failures)}
	}

	return decision
}

func decideAbsent(wanted Wanted, latest *Revision, now time.Time) Decision {
	if latest == nil {
		return Decision{Action: ActionNone, Why: "the release is gone"}
	}

	if wait := lockedFor(wanted, latest, now); wait > 0 {
		return waitForLock(wanted, latest, wait)
	}

	return Decision{Action: ActionUninstall, Why: "the release is not wanted any more"}
}

func decidePresent(wanted Wanted, observed Observed, latest *Revision, now time.Time) Decision {
	switch {
	case latest == nil:
		return Decision{Action: ActionInstall, Why: "the release does not exist"}
	case latest.Status.pending() || latest.Status == StatusUnknown:
		return decidePending(wanted, observed, latest, now)
	case latest.Status == StatusUninstalling:
		return decideUninstalling(wanted, latest, now)
	case latest.Status == StatusDeployed && latest.Content == wanted.Content:
		return decideDeployed(wanted, latest)
	case latest.Status == StatusFailed && latest.LeftUninstalling:
		return Decision{Action: ActionUpgrade, Why: fmt.Sprintf("an uninstall of revision %d was not finished", latest.Number)}
	case latest.Status == StatusFailed && latest.Attempt == wanted.Attempt:
		return decideFailed(wanted, observed, latest)
	case latest.Status == StatusUninstalled:
		return Decision{Action: ActionInstall, Why: "the release was uninstalled"}
	case wanted.RollBack && observed.rollBackDue(wanted.Attempt):
		return rollBack(observed, latest, fmt.Sprintf("the rollback in revision %d was not finished", latest.Number))
	default:
		// Also over a failed install: only an upgrade removes what that left behind and nobody wants any more.
		return Decision{Action: ActionUpgrade, Why: "the chart, the values or the options are other ones"}
	}
}

// decideUninstalling deals with an uninstall that has no result, of a release that is wanted. This object did not ask for it:
// an uninstall of its own ends with the object. Somebody else began it, whose record keeps this object's labels, or the object
// is back from a snapshot. What it has left stays, and the upgrade over it makes what is missing.
func decideUninstalling(wanted Wanted, latest *Revision, now time.Time) Decision {
	if wait := remaining(wanted.foreignLock(), latest.lockedSince(), now); wait > 0 {
		return Decision{Action: ActionWait, After: wait, Why: fmt.Sprintf("an uninstall by another Helm client, or by this object before a snapshot of it was restored, left revision %d %s at %s "+
			"and may still be at work; if it is not, roll the release back by hand, or wait until the lock expires", latest.Number, latest.Status, words.Time(latest.lockedSince()))}
	}

	return unlock(latest)
}

func decideDeployed(wanted Wanted, latest *Revision) Decision {
	if wanted.Test && latest.Tested == "" {
		return Decision{Action: ActionTest, Revision: latest.Number, Why: "the tests were not run yet"}
	}

	return Decision{Action: ActionNone, Why: "the release is as wanted"}
}

func decideFailed(wanted Wanted, observed Observed, latest *Revision) Decision {
	if latest.Interrupted {
		return resume(observed, latest)
	}

	if wanted.RollBack && observed.goBackTo(latest.Number) != nil {
		return rollBack(observed, latest, fmt.Sprintf("revision %d failed", latest.Number))
	}

	return installOrUpgrade(observed, latest.Number+1, 0, fmt.Sprintf("revision %d failed", latest.Number))
}

// rollBack goes back from the latest revision to an earlier one, which there is.
func rollBack(observed Observed, latest *Revision, why string) Decision {
	return Decision{Action: ActionRollback, Revision: observed.goBackTo(latest.Number).Number, Why: why}
}

// decidePending deals with a revision whose action has no result. A controller
// looks at a release only when its own action on it has ended: a pending revision
// that this process made is one that nobody works on any more. For another
// process's and another client's, only time tells.
func decidePending(wanted Wanted, observed Observed, latest *Revision, now time.Time) Decision {
	if wait := lockedFor(wanted, latest, now); wait > 0 {
		return waitForLock(wanted, latest, wait)
	}

	if latest.Owner == wanted.Owner && latest.Content == wanted.Content && latest.Status != StatusPendingRollback {
		return resume(observed, latest)
	}

	return unlock(latest)
}

// resume makes the latest revision again.
func resume(observed Observed, latest *Revision) Decision {
	return installOrUpgrade(observed, latest.Number, latest.Number, "the last action was interrupted")
}

func unlock(left *Revision) Decision {
	return Decision{Action: ActionUnlock, Revision: left.Number, Why: fmt.Sprintf("revision %d was left %s", left.Number, left.Status)}
}

// lockedFor is how long another's action has to be waited for.
func lockedFor(wanted Wanted, latest *Revision, now time.Time) time.Duration {
	own := latest.Owner != "" && latest.Owner == wanted.Owner

	switch {
	case !latest.Status.pending(), own && latest.Process == wanted.Process:
		return 0
	case own:
		return remaining(handoverTime, latest.Modified, now) // by the clock of a controller, as now
	default:
		return remaining(wanted.foreignLock(), latest.lockedSince(), now)
	}
}

// lockedSince is when another client's action counts as begun. By a clock that is behind where that runs the lock would be over before
// its action is, so the workload cluster's clock counts, too.
func (r *Revision) lockedSince() time.Time { return later(r.Modified, r.Written) }

// foreignLock is how long an action of another may take.
func (w *Wanted) foreignLock() time.Duration { return max(foreignLockTime, w.LockTime) }

// remaining is what is left of a lock. Clocks differ: nothing is locked for longer than it can be.
func remaining(lock time.Duration, since, now time.Time) time.Duration {
	return min(lock, max(0, since.Add(lock).Sub(now)))
}

func waitForLock(wanted Wanted, latest *Revision, wait time.Duration) Decision {
	if latest.Owner != "" && latest.Owner == wanted.Owner {
		return Decision{Action: ActionWait, After: wait, Why: fmt.Sprintf("another process of the controller left revision %d %s at %s and may still be at work; "+
			"it is finished here %s after that", latest.Number, latest.Status, words.Time(latest.Modified), handoverTime)}
	}

	return waitForClient(latest, wait)
}

// waitForClient waits for a client of Helm that is not this controller.
func waitForClient(latest *Revision, wait time.Duration) Decision {
	return Decision{Action: ActionWait, After: wait, Why: fmt.Sprintf("another Helm client left revision %d %s at %s; if it is not at work any more, "+
		"roll the release back by hand, or wait until the lock expires", latest.Number, latest.Status, words.Time(latest.lockedSince()))}
}

// installOrUpgrade installs if nothing before the revision to make was ever in effect, else upgrades.
func installOrUpgrade(observed Observed, number, resume int, why string) Decision {
	if observed.lastGood(number) == nil {
		return Decision{Action: ActionInstall, Resume: resume, Why: why}
	}

	return Decision{Action: ActionUpgrade, Resume: resume, Why: why}
}

// Mark is a hub to write into the mark of ownership on the record of a revision.
type Mark struct {
	// Revision is the number of the revision.
	Revision int
	// Owner and From are the UID and the hub that the record has to name; another one is left as it is.
	Owner, From string
	// To is the ID of the hub to write.
	To string
	// DryRun has the cluster answer and write nothing.
	DryRun bool
}

// Mark writes a hub into the mark of ownership on a record, with one write that changes nothing else: Helm knows nothing of
// it, and no revision is made. It updates instead of patching, because Helm needs the right to update records anyway. In
// the place of another hub it renews the time of a revision without a result, too: that hub may be at work, and has handoverTime from
// now on to end it.
func (c *Client) Mark(ctx context.Context, mark Mark) error {
	client, err := typedcorev1.NewForConfig(kubeclient.Bounded(ctx, c.target.Config))
	if err != nil {
		return fmt.Errorf("make a client for the workload cluster: %w", err)
	}

	records, name := client.Secrets(c.target.Namespace), key(c.target.Name, mark.Revision)

	record, err := records.Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return changedMeanwhile(c.target.Name, mark.Revision)
	}

	if err != nil {
		return classify("read Secret "+name, err, c.redactorFor(values.Values{}))
	}

	if record.Labels[labelOwner] != mark.Owner || record.Labels[labelHub] != mark.From {
		return changedMeanwhile(c.target.Name, mark.Revision)
	}

	record.Labels[labelHub] = mark.To

	if mark.From != "" && Status(record.Labels["status"]).pending() {
		record.Labels["modifiedAt"] = strconv.FormatInt(time.Now().Unix(), 10)
	}

	options := metav1.UpdateOptions{}
	if mark.DryRun {
		options.DryRun = []string{metav1.DryRunAll}
	}

	_, err = records.Update(ctx, record, options)

	switch {
	case err == nil:
		return nil
	case apierrors.IsConflict(err), apierrors.IsNotFound(err):
		return changedMeanwhile(c.target.Name, mark.Revision)
	default:
		return classify("write the hub on Secret "+name, err, c.redactorFor(values.Values{}))
	}
}
