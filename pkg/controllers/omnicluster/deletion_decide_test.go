package omnicluster

import (
	"strings"
	"testing"
	"time"

	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/hubs"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/loop"
)

func TestDeletionDecision(t *testing.T) {
	working := released("connected")
	broken := loop.Wait(0, "ConnectionNotReady", "there is no key")
	missing := loop.Wait(0, "ConnectionNotFound", "there is no OmniConnection")
	late := loop.Wait(time.Second, "MirrorNotSynced", "the copy is behind")
	ours := omni.Live{Exists: true, Marks: omni.Marks{UID: "uid-1"}}
	locked, leaving := ours, ours
	locked.Locked = true
	leaving.TearingDown, leaving.Locked = true, true
	copied := omni.Live{Exists: true, Marks: omni.Marks{UID: "uid-1", Hub: "hub-2"}}
	here, moved := hubs.Hubs{Own: "hub-1"}, hubs.Hubs{Own: "hub-1", Previous: "hub-2"}
	rival := "something else writes it"
	identified, unidentified := ours, leaving
	identified.UUID = "new"

	for name, test := range map[string]struct {
		deletion deletion
		step     step
		reason   string
		blocks   bool
		text     string
	}{
		"ours":                           {deletion{everSynced: true, session: working, live: ours}, stepDestroy, "Deleting", false, "being destroyed"},
		"ours, being torn down":          {deletion{everSynced: true, session: working, live: leaving}, stepDestroy, "Deleting", false, ""},
		"locked":                         {deletion{everSynced: true, session: working, live: locked}, stepWait, "RemoteLocked", true, "unlock"},
		"without a mark":                 {deletion{everSynced: true, session: working, live: omni.Live{Exists: true}}, stepLetGo, "Deleting", false, "left alone"},
		"another's":                      {deletion{everSynced: true, session: working, live: omni.Live{Exists: true, Marks: omni.Marks{UID: "uid-2"}}}, stepLetGo, "Deleting", false, "left alone"},
		"another hub's":                  {deletion{hubs: here, everSynced: true, session: working, live: copied}, stepLetGo, "Deleting", false, "on another hub, hub-2; it is left alone"},
		"another hub's, no status":       {deletion{hubs: here, session: working, live: copied}, stepLetGo, "Deleting", false, "on another hub"},
		"another hub's, elsewhere":       {deletion{hubs: here, everSynced: true, session: working, live: copied, recorded: "https://a", current: "https://b"}, stepWait, "EndpointChanged", true, "https://a"},
		"the previous hub's":             {deletion{hubs: moved, everSynced: true, session: working, live: copied}, stepDestroy, "Deleting", false, "being destroyed"},
		"orphan, another hub's":          {deletion{hubs: here, orphan: true, everSynced: true, session: working, live: copied}, stepLetGo, "Deleting", false, "nothing is changed"},
		"second writer":                  {deletion{rival: rival, everSynced: true, session: working, live: ours}, stepWait, "SecondWriter", true, "is not destroyed: something else writes it. To leave it"},
		"second writer, orphan":          {deletion{rival: rival, orphan: true, everSynced: true, session: working, live: ours}, stepLetGo, "Deleting", false, "with this object's mark"},
		"second writer, being torn down": {deletion{rival: rival, everSynced: true, session: working, live: leaving}, stepDestroy, "Deleting", false, ""},
		"orphan, a copy of it elsewhere": {
			deletion{orphan: true, everSynced: true, session: working, live: identified, knownID: "old", recorded: "https://a", current: "https://b"},
			stepLetGo, "Deleting", false, "last seen at https://a, stays with this object's mark",
		},
		"second writer, gone":          {deletion{rival: rival, everSynced: true, session: working}, stepLetGo, "Deleting", false, "no cluster"},
		"gone":                         {deletion{everSynced: true, session: working, recorded: "https://a", current: "https://a"}, stepLetGo, "Deleting", false, "no cluster"},
		"gone at another endpoint":     {deletion{everSynced: true, session: working, recorded: "https://a", current: "https://b"}, stepWait, "EndpointChanged", true, "https://a"},
		"gone, written in another way": {deletion{everSynced: true, session: working, recorded: "https://a", current: "https://A:443/"}, stepLetGo, "Deleting", false, "no cluster"},
		"our mark on another, at another endpoint": {
			deletion{everSynced: true, session: working, live: identified, knownID: "old", recreate: "old", recorded: "https://a", current: "https://b"},
			stepWait, "EndpointChanged", true, "change it back, or set spec.deletePolicy.orphan",
		},
		"ours at another endpoint, its ID is not known yet": {
			deletion{everSynced: true, session: working, live: ours, knownID: "old", recreate: "old", recorded: "https://a", current: "https://b"},
			stepWait, "Deleting", false, "waiting for Omni to tell the ID",
		},
		"ours at another endpoint":      {deletion{everSynced: true, session: working, live: ours, recorded: "https://a", current: "https://b"}, stepDestroy, "Deleting", false, ""},
		"another's at another endpoint": {deletion{everSynced: true, session: working, live: omni.Live{Exists: true, Marks: omni.Marks{UID: "uid-2"}}, recorded: "https://a", current: "https://b"}, stepWait, "EndpointChanged", true, "https://a"},
		"ours, the one that we made":    {deletion{everSynced: true, session: working, live: identified, knownID: "new"}, stepDestroy, "Deleting", false, ""},
		"our mark on another one":       {deletion{everSynced: true, session: working, live: identified, knownID: "old"}, stepWait, "RemoteClusterReplaced", true, "recreate: old; to leave it in Omni set spec.deletePolicy.orphan"},
		"our mark on another, allowed":  {deletion{everSynced: true, session: working, live: identified, knownID: "old", recreate: "old"}, stepDestroy, "Deleting", false, ""},
		"our mark on another, orphan":   {deletion{orphan: true, everSynced: true, session: working, live: identified, knownID: "old"}, stepUnmark, "Deleting", false, ""},
		"ours, its ID is not known yet": {deletion{everSynced: true, session: working, live: ours, knownID: "old"}, stepWait, "Deleting", false, "waiting for Omni to tell the ID"},
		"ours, its ID has gone already": {deletion{everSynced: true, session: working, live: unidentified, knownID: "old"}, stepDestroy, "Deleting", false, ""},
		"ours, but the status was lost": {deletion{session: working, live: ours}, stepDestroy, "Deleting", false, "being destroyed"},
		"never synced":                  {deletion{session: working, live: omni.Live{Exists: true}}, stepLetGo, "Deleting", false, "never wrote"},
		"never synced, no session yet":  {deletion{session: broken}, stepWait, "ConnectionNotReady", false, "no key"},
		"never synced, no session":      {deletion{session: broken, outage: time.Hour}, stepLetGo, "Deleting", false, "never wrote"},
		"never synced, no connection":   {deletion{session: missing}, stepLetGo, "Deleting", false, "never wrote"},
		"no session yet":                {deletion{everSynced: true, session: broken, outage: time.Second}, stepWait, "ConnectionNotReady", false, "no key"},
		"no session for long":           {deletion{everSynced: true, session: broken, outage: time.Hour}, stepWait, "ConnectionNotReady", true, "Restore the connection"},
		"the copy is behind":            {deletion{everSynced: true, session: late, behind: true, outage: time.Hour}, stepWait, "MirrorNotSynced", false, "behind"},
		"never synced, behind":          {deletion{session: late, behind: true}, stepWait, "MirrorNotSynced", false, "behind"},
		"orphan, behind":                {deletion{orphan: true, everSynced: true, session: late, behind: true, outage: time.Hour}, stepWait, "MirrorNotSynced", false, "behind"},
		"observe, behind":               {deletion{observe: true, everSynced: true, session: late, behind: true}, stepLetGo, "Deleting", false, "Observe"},
		"observe":                       {deletion{observe: true, everSynced: true, session: working, live: ours}, stepLetGo, "Deleting", false, "Observe"},
		"observe, no session":           {deletion{observe: true, everSynced: true, session: broken}, stepLetGo, "Deleting", false, "Observe"},
		"orphan":                        {deletion{orphan: true, everSynced: true, session: working, live: ours}, stepUnmark, "Deleting", false, "without this object's mark"},
		"orphan, too late":              {deletion{orphan: true, everSynced: true, session: working, live: leaving}, stepLetGo, "Deleting", false, "cannot be undone"},
		"orphan, locked":                {deletion{orphan: true, everSynced: true, session: working, live: locked}, stepUnmark, "Deleting", false, ""},
		"orphan, not ours":              {deletion{orphan: true, everSynced: true, session: working, live: omni.Live{Exists: true}}, stepLetGo, "Deleting", false, "nothing is changed"},
		"orphan, gone":                  {deletion{orphan: true, everSynced: true, session: working}, stepLetGo, "Deleting", false, "nothing is changed"},
		"orphan, no session yet":        {deletion{orphan: true, everSynced: true, session: broken, outage: time.Second}, stepWait, "Deleting", false, "mark"},
		"orphan, no session for long":   {deletion{orphan: true, everSynced: true, session: broken, outage: time.Hour}, stepLetGo, "Deleting", false, "Omni cannot be used"},
		"orphan, never synced yet":      {deletion{orphan: true, session: broken}, stepWait, "Deleting", false, "mark"},
		"orphan, never synced":          {deletion{orphan: true, session: broken, outage: time.Hour}, stepLetGo, "Deleting", false, "nothing is changed"},
		"orphan, no connection":         {deletion{orphan: true, session: missing}, stepLetGo, "Deleting", false, "nothing is changed"},
	} {
		t.Run(name, func(t *testing.T) {
			test.deletion.name, test.deletion.uid = "demo", "uid-1"

			next, outcome := test.deletion.decide()
			if next != test.step || outcome.Reason() != test.reason || outcome.Blocks() != test.blocks {
				t.Errorf("step %d, %q, blocks %v", next, outcome.Reason(), outcome.Blocks())
			}

			if !strings.Contains(outcome.Message(), test.text) {
				t.Errorf("message %q does not say %q", outcome.Message(), test.text)
			}
		})
	}
}
