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
