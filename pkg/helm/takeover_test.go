package helm

import (
	"strconv"
	"testing"
	"time"

	"helm.sh/helm/v4/pkg/release/common"
)

// leftUninstalling makes a revision look as an uninstall of another owner leaves it that ended some time ago without a result.
func (r *tried) leftUninstalling(version int, owner string, ago time.Duration) {
	r.t.Helper()

	record := r.read(r.t, version)
	record.Info.Status = common.StatusUninstalling
	record.Labels[labelOwner] = owner

	if err := r.records(r.t).Update(key("demo", version), record); err != nil {
		r.t.Fatal(err)
	}

	r.madeAgo(version, ago)
}

// madeAgo makes a record look as if it was written some time ago.
func (r *tried) madeAgo(version int, ago time.Duration) {
	secret := r.get("/api/v1/namespaces/apps/secrets/" + key("demo", version)).DeepCopy()
	labels := secret.GetLabels()
	labels["modifiedAt"] = strconv.FormatInt(time.Now().Add(-ago).Unix(), 10)
	secret.SetLabels(labels)
	r.put("/api/v1/namespaces/apps/secrets/"+secret.GetName(), secret.Object)
}

// Who takes a release over did not ask for the uninstall that its former owner did not finish: what that left stays.
func TestATakeoverDoesNotFinishAnUninstall(t *testing.T) {
	for name, owner := range map[string]string{"of another object": "uid-former", "of another client": ""} {
		t.Run(name, func(t *testing.T) {
			r := newTried(t)
			r.settings.TakeOwnership = true
			r.want(ActionInstall, configMap("kept")+configMap("gone"))
			r.remove(configMapPath("gone"))
			uid := r.get(configMapPath("kept")).GetUID()

			next := configMap("kept") + configMap("gone") + configMap("new")

			r.leftUninstalling(1, owner, time.Minute)

			if action, _ := r.step(next); action != ActionWait {
				t.Fatalf("%s while the uninstall may be under way", action)
			}

			r.leftUninstalling(1, owner, time.Hour)
			r.want(ActionUnlock, next)
			r.want(ActionUpgrade, next)

			if got := r.get(configMapPath("kept")); got == nil || got.GetUID() != uid {
				t.Errorf("what was left is %v, want the one of UID %s", got, uid)
			}

			if r.of("gone") != "demo" || r.of("new") != "demo" {
				t.Errorf("gone is of %q, new of %q", r.of("gone"), r.of("new"))
			}

			if status := r.read(t, 2).Info.Status; status != common.StatusDeployed {
				t.Errorf("revision 2 is %s", status)
			}
		})
	}
}

// Nor does it make again what that uninstall was removing: a rollback goes to no revision from before it.
func TestATakeoverDoesNotRollBackOverAnUninstall(t *testing.T) {
	for name, owner := range map[string]string{"of another object": "uid-former", "of another client": ""} {
		t.Run(name, func(t *testing.T) {
			r := newTried(t)
			r.settings.TakeOwnership, r.wanted.RollBack = true, true
			r.want(ActionInstall, configMap("old"))
			r.want(ActionUpgrade, configMap("kept"))
			r.leftUninstalling(2, owner, time.Hour)

			next := configMap("kept") + configMap("new")
			bad := next + notValid

			r.want(ActionUnlock, bad)
			r.wantError(ActionUpgrade, bad, "Not-Valid")
			r.wantError(ActionUpgrade, bad, "Not-Valid")

			if r.of("old") != "" || r.of("kept") != "demo" {
				t.Errorf("old is of %q, kept of %q", r.of("old"), r.of("kept"))
			}

			r.want(ActionUpgrade, next)

			if status := r.read(t, 5).Info.Status; status != common.StatusDeployed {
				t.Errorf("revision 5 is %s", status)
			}

			// From then on there is something to go back to.
			worse := bad + configMap("worse")

			r.wantError(ActionUpgrade, worse, "Not-Valid")
			r.want(ActionRollback, worse)

			if r.of("new") != "demo" || r.of("old") != "" {
				t.Errorf("new is of %q, old of %q", r.of("new"), r.of("old"))
			}
		})
	}
}

// What the former hub may be at work on has the time from the takeover on in which a process that stops ends it. Of what has a result,
// only the mark changes.
func TestATakeoverGivesTheFormerHubTime(t *testing.T) {
	for name, test := range map[string]struct {
		status common.Status
		from   string
		waits  bool
	}{
		"an upgrade without a result":    {common.StatusPendingUpgrade, "hub-0", true},
		"a mark from before it had hubs": {common.StatusPendingUpgrade, "", false},
		"an upgrade that has failed":     {common.StatusFailed, "hub-0", false},
	} {
		t.Run(name, func(t *testing.T) {
			r := newTried(t)
			r.wanted.Hub, r.wanted.Process = test.from, "theirs"
			r.want(ActionInstall, configMap("kept"))

			record := r.read(t, 1)
			record.Info.Status = test.status

			if err := r.records(t).Update(key("demo", 1), record); err != nil {
				t.Fatal(err)
			}

			r.madeAgo(1, time.Hour)

			if err := r.client.Mark(t.Context(), Mark{Revision: 1, Owner: "uid-1", From: test.from, To: "hub-1"}); err != nil {
				t.Fatal(err)
			}

			observed, err := r.client.Observe(t.Context())
			if err != nil || observed.Latest().Hub != "hub-1" {
				t.Fatalf("%+v, %v", observed.Latest(), err)
			}

			r.wanted.Process = "ours"

			decision := Decide(r.wanted, observed, time.Now())
			if waits := decision.Action == ActionWait; waits != test.waits || waits && (decision.After <= handoverTime-5*time.Second || decision.After > handoverTime) {
				t.Errorf("%+v", decision)
			}

			if ago := time.Since(observed.Latest().Modified); ago < 30*time.Minute != test.waits {
				t.Errorf("changed %s ago", ago)
			}
		})
	}
}
