package helm

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// now is the time in the tables below.
func testTime() time.Time { return time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC) }

// rev makes a revision of ours with the wanted content.
func rev(number int, status Status, changes ...func(*Revision)) Revision {
	r := Revision{Number: number, Status: status, Content: "C", Attempt: "A", Owner: "me", Modified: testTime().Add(-time.Minute)}
	for _, change := range changes {
		change(&r)
	}

	return r
}

func other(r *Revision)       { r.Content, r.Attempt = "old", "old" }
func third(r *Revision)       { r.Content, r.Attempt = "third", "third" }
func anothers(r *Revision)    { r.Content, r.Attempt, r.Owner = "", "", "" }
func interrupted(r *Revision) { r.Interrupted = true }
func left(r *Revision)        { r.LeftUninstalling = true }
func former(r *Revision)      { r.Owner = "former" }
func old(r *Revision)         { r.Modified = testTime().Add(-31 * time.Minute) }
func elsewhere(r *Revision)   { r.Process = "another" }
func recent(r *Revision)      { r.Modified = testTime().Add(-5 * time.Second) }
func future(r *Revision)      { r.Modified = testTime().Add(time.Hour) }

// ahead has the workload cluster's clock be ahead of ours.
func ahead(r *Revision)  { r.Written = testTime().Add(time.Hour) }
func passed(r *Revision) { r.Tested = TestsPassed }

func TestDecide(t *testing.T) {
	plain := Wanted{Content: "C", Attempt: "A", Owner: "me", Retries: 1}
	with := func(change func(*Wanted)) Wanted { w := plain; change(&w); return w }
	rolling := with(func(w *Wanted) { w.RollBack = true })
	testing_ := with(func(w *Wanted) { w.Test = true })
	absent := with(func(w *Wanted) { w.Absent = true })

	for _, test := range []struct {
		name      string
		wanted    Wanted
		revisions []Revision // the newest first
		want      Decision
	}{
		{"nothing there", plain, nil, Decision{Action: ActionInstall}},
		{"as wanted", plain, []Revision{rev(1, StatusDeployed)}, Decision{Action: ActionNone}},
		{"as wanted, made by a former object", plain, []Revision{rev(1, StatusDeployed, func(r *Revision) { r.Owner = "former" })}, Decision{Action: ActionNone}},
		{"other settings make no revision", plain, []Revision{rev(1, StatusDeployed, func(r *Revision) { r.Attempt = "B" })}, Decision{Action: ActionNone}},
		{"other content", plain, []Revision{rev(1, StatusDeployed, other)}, Decision{Action: ActionUpgrade}},
		{"another client's release", plain, []Revision{rev(7, StatusDeployed, anothers)}, Decision{Action: ActionUpgrade}},
		{"uninstalled with history", plain, []Revision{rev(2, StatusUninstalled), rev(1, StatusSuperseded)}, Decision{Action: ActionInstall}},
		{"uninstall of what is wanted not finished", plain, []Revision{rev(2, StatusUninstalling, old)}, Decision{Action: ActionUnlock, Revision: 2}},
		{"somebody uninstalls what is wanted", plain, []Revision{rev(2, StatusUninstalling)}, Decision{Action: ActionWait, After: 29 * time.Minute}},
		{"what an unfinished uninstall left of what is wanted", plain, []Revision{rev(2, StatusFailed, left)}, Decision{Action: ActionUpgrade}},
		{"another's uninstall not finished", plain, []Revision{rev(2, StatusUninstalling, anothers, old)}, Decision{Action: ActionUnlock, Revision: 2}},
		{"the uninstall of another object not finished", plain, []Revision{rev(2, StatusUninstalling, old, func(r *Revision) { r.Owner = "former" })},
			Decision{Action: ActionUnlock, Revision: 2}},
		{"another client uninstalls", plain, []Revision{rev(2, StatusUninstalling, anothers)}, Decision{Action: ActionWait, After: 29 * time.Minute}},

		{"tests due", testing_, []Revision{rev(3, StatusDeployed)}, Decision{Action: ActionTest, Revision: 3}},
		{"tests done", testing_, []Revision{rev(3, StatusDeployed, passed)}, Decision{Action: ActionNone}},

		{"failed install is tried again", plain, []Revision{rev(1, StatusFailed)}, Decision{Action: ActionInstall, Failures: 1}},
		{"failed installs are enough", plain, []Revision{rev(2, StatusFailed), rev(1, StatusFailed)}, Decision{Action: ActionStall, Failures: 2}},
		{"failures without a revision count", with(func(w *Wanted) { w.Failures = 2 }), nil, Decision{Action: ActionStall, Failures: 2}},
		{"a new attempt counts anew", plain, []Revision{rev(2, StatusFailed, other), rev(1, StatusFailed, other)}, Decision{Action: ActionUpgrade}},
		{"failed upgrade is tried again", plain, []Revision{rev(2, StatusFailed), rev(1, StatusDeployed, other)}, Decision{Action: ActionUpgrade, Failures: 1}},
		{"back and forth is a new attempt", plain, []Revision{rev(4, StatusDeployed, other), rev(3, StatusFailed), rev(2, StatusFailed), rev(1, StatusSuperseded, other)},
			Decision{Action: ActionUpgrade}},
		{"back and forth, and failed again", plain, []Revision{rev(5, StatusFailed), rev(4, StatusDeployed, other), rev(3, StatusFailed), rev(2, StatusFailed)},
			Decision{Action: ActionUpgrade, Failures: 1}},
		{"what another client put into effect is no change of what is wanted", plain, []Revision{rev(4, StatusDeployed, anothers), rev(3, StatusFailed), rev(2, StatusFailed)},
			Decision{Action: ActionStall, Failures: 2}},
		{"a third after the rollback, and forth", rolling, []Revision{rev(6, StatusDeployed, third), rev(5, StatusSuperseded, other), rev(4, StatusFailed), rev(3, StatusSuperseded, other), rev(2, StatusFailed)},
			Decision{Action: ActionUpgrade}},
		{"what may be a rollback is no change of what is wanted", rolling, []Revision{rev(6, StatusDeployed, other), rev(4, StatusSuperseded, other), rev(3, StatusFailed), rev(2, StatusFailed)},
			Decision{Action: ActionStall, Failures: 2}},
		{"failed upgrade is rolled back", rolling, []Revision{rev(2, StatusFailed), rev(1, StatusDeployed, other)},
			Decision{Action: ActionRollback, Revision: 1, Failures: 1}},
		{"rolled back even if it was the last attempt", rolling, []Revision{rev(4, StatusFailed), rev(3, StatusDeployed, other), rev(2, StatusFailed), rev(1, StatusSuperseded, other)},
			Decision{Action: ActionRollback, Revision: 3, Failures: 2}},
		{"tried again after the rollback", rolling, []Revision{rev(3, StatusDeployed, other), rev(2, StatusFailed), rev(1, StatusSuperseded, other)},
			Decision{Action: ActionUpgrade, Failures: 1}},
		{"stalled after the rollback", rolling, []Revision{rev(5, StatusDeployed, other), rev(4, StatusFailed), rev(3, StatusSuperseded, other), rev(2, StatusFailed)},
			Decision{Action: ActionStall, Failures: 2}},
		{"a failed install has nothing to go back to", rolling, []Revision{rev(1, StatusFailed)}, Decision{Action: ActionInstall, Failures: 1}},

		{"what was uninstalled does not come back", rolling, []Revision{rev(3, StatusFailed), rev(2, StatusUninstalled, anothers), rev(1, StatusSuperseded, anothers)},
			Decision{Action: ActionInstall, Failures: 1}},
		{"an older rollback does not come back, either", rolling, []Revision{rev(4, StatusFailed, other), rev(3, StatusUninstalled), rev(2, StatusFailed), rev(1, StatusSuperseded)},
			Decision{Action: ActionUpgrade, Failures: 1}},
		{"back to what was good since", rolling, []Revision{rev(4, StatusFailed), rev(3, StatusDeployed, other), rev(2, StatusUninstalled), rev(1, StatusSuperseded)},
			Decision{Action: ActionRollback, Revision: 3, Failures: 1}},

		{"what an unfinished uninstall was removing does not come back", rolling, []Revision{rev(3, StatusFailed), rev(2, StatusFailed, anothers, left), rev(1, StatusSuperseded, anothers)},
			Decision{Action: ActionUpgrade, Failures: 1}},
		{"nor does what it left in effect", rolling, []Revision{rev(3, StatusFailed), rev(2, StatusFailed, anothers, left), rev(1, StatusDeployed, anothers)},
			Decision{Action: ActionUpgrade, Failures: 1}},
		{"nor after a rollback that failed", rolling, []Revision{rev(4, StatusFailed, other), rev(3, StatusFailed), rev(2, StatusFailed, other, left), rev(1, StatusSuperseded, other)},
			Decision{Action: ActionUpgrade, Failures: 1}},
		{"nor by a rollback from before it", rolling, []Revision{rev(3, StatusFailed, other, left), rev(2, StatusFailed), rev(1, StatusSuperseded, other)},
			Decision{Action: ActionUpgrade, Failures: 1}},
		{"back to what was good since an unfinished uninstall", rolling, []Revision{rev(4, StatusFailed), rev(3, StatusDeployed, other), rev(2, StatusFailed, left), rev(1, StatusSuperseded)},
			Decision{Action: ActionRollback, Revision: 3, Failures: 1}},
		{"an unfinished uninstall of the same is no failure of it", with(func(w *Wanted) { w.RollBack, w.Retries = true, 0 }),
			[]Revision{rev(2, StatusFailed, former, left), rev(1, StatusSuperseded, other)}, Decision{Action: ActionUpgrade}},
		{"nor is it begun again as one that was interrupted", plain, []Revision{rev(2, StatusFailed, former, left, interrupted), rev(1, StatusSuperseded, other)},
			Decision{Action: ActionUpgrade}},

		{"crash during install", plain, []Revision{rev(1, StatusPendingInstall)}, Decision{Action: ActionInstall, Resume: 1}},
		{"crash during the last allowed install", plain, []Revision{rev(3, StatusPendingInstall), rev(2, StatusFailed), rev(1, StatusFailed)},
			Decision{Action: ActionInstall, Resume: 3, Failures: 2}},
		{"crash during upgrade", plain, []Revision{rev(2, StatusPendingUpgrade), rev(1, StatusDeployed, other)}, Decision{Action: ActionUpgrade, Resume: 2}},
		{"crash during an upgrade to something else", plain, []Revision{rev(2, StatusPendingUpgrade, other), rev(1, StatusDeployed)},
			Decision{Action: ActionUnlock, Revision: 2}},
		{"crash during rollback", rolling, []Revision{rev(3, StatusPendingRollback, other), rev(2, StatusFailed), rev(1, StatusDeployed, other)},
			Decision{Action: ActionUnlock, Revision: 3, Failures: 1}},
		{"stop during install", plain, []Revision{rev(1, StatusFailed, interrupted)}, Decision{Action: ActionInstall, Resume: 1}},
		{"stop during upgrade", rolling, []Revision{rev(2, StatusFailed, interrupted), rev(1, StatusDeployed, other)}, Decision{Action: ActionUpgrade, Resume: 2}},

		{"another client is at work", plain, []Revision{rev(2, StatusPendingUpgrade, anothers), rev(1, StatusDeployed)}, Decision{Action: ActionWait, After: 29 * time.Minute}},
		{"another client with our longer timeout", with(func(w *Wanted) { w.LockTime = time.Hour }), []Revision{rev(2, StatusPendingUpgrade, anothers)},
			Decision{Action: ActionWait, After: 59 * time.Minute}},
		{"another client died", plain, []Revision{rev(2, StatusPendingUpgrade, anothers, old), rev(1, StatusDeployed)}, Decision{Action: ActionUnlock, Revision: 2}},
		{"another object's lock", plain, []Revision{rev(2, StatusPendingUpgrade, func(r *Revision) { r.Owner = "other" })}, Decision{Action: ActionWait, After: 29 * time.Minute}},

		{"another process may be at it", plain, []Revision{rev(1, StatusPendingInstall, elsewhere, recent)}, Decision{Action: ActionWait, After: 20 * time.Second}},
		{"another process, in a cluster whose clock is ahead", plain, []Revision{rev(1, StatusPendingInstall, elsewhere, ahead)}, Decision{Action: ActionInstall, Resume: 1}},
		{"another process at work, in a cluster whose clock is ahead", plain, []Revision{rev(1, StatusPendingInstall, elsewhere, recent, ahead)},
			Decision{Action: ActionWait, After: 20 * time.Second}},
		{"to be removed, another process, in a cluster whose clock is ahead", absent, []Revision{rev(1, StatusPendingInstall, elsewhere, ahead)},
			Decision{Action: ActionUninstall}},
		{"another client, in a cluster whose clock is ahead", plain, []Revision{rev(1, StatusPendingInstall, anothers, old, ahead)},
			Decision{Action: ActionWait, After: 30 * time.Minute}},
		{"another process, whose clock is wrong", plain, []Revision{rev(1, StatusPendingInstall, elsewhere, future)}, Decision{Action: ActionWait, After: 25 * time.Second}},
		{"this process is not at it any more", plain, []Revision{rev(1, StatusPendingInstall, recent)}, Decision{Action: ActionInstall, Resume: 1}},
		{"another process has died", plain, []Revision{rev(1, StatusPendingInstall, elsewhere)}, Decision{Action: ActionInstall, Resume: 1}},
		{"another process has begun to roll back", rolling, []Revision{rev(3, StatusPendingRollback, other, elsewhere, recent), rev(2, StatusFailed), rev(1, StatusDeployed, other)},
			Decision{Action: ActionWait, After: 20 * time.Second, Failures: 1}},
		{"to be removed, another process may be at it", absent, []Revision{rev(1, StatusPendingInstall, elsewhere, recent)}, Decision{Action: ActionWait, After: 20 * time.Second}},

		{"a rollback that was not finished is finished", rolling, []Revision{rev(3, StatusFailed, other), rev(2, StatusFailed), rev(1, StatusDeployed, other)},
			Decision{Action: ActionRollback, Revision: 1, Failures: 1}},
		{"a failed upgrade to something else is no rollback", rolling, []Revision{rev(2, StatusFailed, other), rev(1, StatusDeployed, other)},
			Decision{Action: ActionUpgrade}},
		{"a rollback that is not wanted any more", plain, []Revision{rev(3, StatusFailed, other), rev(2, StatusFailed), rev(1, StatusDeployed, other)},
			Decision{Action: ActionUpgrade, Failures: 1}},
		{"rollbacks are tried again", with(func(w *Wanted) { w.RollBack, w.Failures = true, 3 }), []Revision{rev(2, StatusFailed), rev(1, StatusDeployed, other)},
			Decision{Action: ActionRollback, Revision: 1, Failures: 3}},
		{"rollbacks end, too", with(func(w *Wanted) { w.RollBack, w.Failures = true, 4 }), []Revision{rev(2, StatusFailed), rev(1, StatusDeployed, other)},
			Decision{Action: ActionStall, Failures: 4}},

		{"gone", absent, nil, Decision{Action: ActionNone}},
		{"to be removed", absent, []Revision{rev(1, StatusFailed)}, Decision{Action: ActionUninstall}},
		{"to be removed, crashed", absent, []Revision{rev(1, StatusPendingInstall)}, Decision{Action: ActionUninstall}},
		{"removal not finished", absent, []Revision{rev(1, StatusUninstalling)}, Decision{Action: ActionUninstall}},
		{"another's removal not finished", absent, []Revision{rev(1, StatusUninstalling, anothers)}, Decision{Action: ActionUninstall}},
		{"to be removed, another client at work", absent, []Revision{rev(1, StatusPendingInstall, anothers)}, Decision{Action: ActionWait, After: 29 * time.Minute}},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := Decide(test.wanted, Observed{Revisions: test.revisions}, testTime())
			if diff := cmp.Diff(test.want, got, cmpopts.IgnoreFields(Decision{}, "Why")); diff != "" {
				t.Error(diff)
			}

			if got.Why == "" {
				t.Error("the decision does not say why")
			}
		})
	}
}

// TestWhoLeftAnUninstall: nobody knows who began an uninstall that has no result, so the message names all who may have.
func TestWhoLeftAnUninstall(t *testing.T) {
	left := Revision{Number: 2, Status: StatusUninstalling, Owner: "uid", Modified: testTime(), Written: testTime()}

	got := Decide(Wanted{Owner: "uid"}, Observed{Revisions: []Revision{left}}, testTime())
	for _, who := range []string{"another Helm client", "this object before a snapshot of it was restored"} {
		if got.Action != ActionWait || !strings.Contains(got.Why, who) {
			t.Errorf("%s: %q does not name %s", got.Action, got.Why, who)
		}
	}
}

// What failed attempts made is younger than the first of them.
func TestWhenAttemptsBegan(t *testing.T) {
	at := func(hour int) time.Time { return time.Date(2026, 1, 2, hour, 0, 0, 0, time.UTC) }

	for name, test := range map[string]struct {
		statuses []Status // the oldest first, numbered from 1 and made in that hour
		number   int
		want     time.Time
	}{
		"in effect":                       {[]Status{StatusFailed, StatusDeployed}, 2, time.Time{}},
		"in effect, with newer ones":      {[]Status{StatusDeployed, StatusFailed}, 1, time.Time{}},
		"failed":                          {[]Status{StatusDeployed, StatusFailed}, 2, at(2)},
		"failed again":                    {[]Status{StatusDeployed, StatusFailed, StatusFailed}, 3, at(2)},
		"failed after a rollback":         {[]Status{StatusSuperseded, StatusFailed, StatusDeployed, StatusFailed}, 4, at(4)},
		"never in effect":                 {[]Status{StatusFailed, StatusFailed}, 2, at(1)},
		"failed since it was uninstalled": {[]Status{StatusFailed, StatusUninstalled, StatusFailed}, 3, at(3)},
	} {
		var observed Observed
		for i, status := range test.statuses {
			observed.Revisions = append([]Revision{{Number: i + 1, Status: status, Created: at(i + 1)}}, observed.Revisions...)
		}

		if got := observed.attemptsBegan(test.number); !got.Equal(test.want) {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
}
