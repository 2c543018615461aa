package consent

import (
	"strings"
	"testing"
	"time"

	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/hubs"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/loop"
)

func TestDeletionDecision(t *testing.T) {
	working := Released("connected")
	broken := loop.Wait(0, "ConnectionNotReady", "there is no key")
	missing := loop.Wait(0, "ConnectionNotFound", "there is no OmniConnection")
	late := loop.Wait(time.Second, "MirrorNotSynced", "the copy is behind")
	ours := omni.Live{Exists: true, Marks: omni.Marks{UID: "uid-1"}}
	locked, leaving := ours, ours
	locked.Locked = true
	leaving.TearingDown, leaving.Locked = true, true
	copied := omni.Live{Exists: true, Marks: omni.Marks{UID: "uid-1", Hub: "hub-2"}}
	here, moved := hubs.Hubs{Own: "hub-1"}, hubs.Hubs{Own: "hub-1", Previous: "hub-2"}
	secondWriter := "something else writes it"
	identified, unidentified := ours, leaving
	identified.UUID = "new"

	for name, test := range map[string]struct {
		deletion Deletion
		step     Step
		reason   string
		blocks   bool
		text     string
	}{
		"ours":                           {Deletion{Claim: Claim{Live: ours}, EverSynced: true, Connected: working}, StepDestroy, "Deleting", false, "being destroyed"},
		"ours, being torn down":          {Deletion{Claim: Claim{Live: leaving}, EverSynced: true, Connected: working}, StepDestroy, "Deleting", false, ""},
		"observed, being torn down":      {Deletion{Claim: Claim{Live: leaving}, Observe: true, EverSynced: true, Connected: working}, StepLetGo, "Deleting", false, "does not stay: it is being torn down"},
		"locked":                         {Deletion{Claim: Claim{Live: locked}, EverSynced: true, Connected: working}, StepWait, "RemoteLocked", true, "unlock"},
		"without a mark":                 {Deletion{Claim: Claim{Live: omni.Live{Exists: true}}, EverSynced: true, Connected: working}, StepLetGo, "Deleting", false, "left alone"},
		"another's":                      {Deletion{Claim: Claim{Live: omni.Live{Exists: true, Marks: omni.Marks{UID: "uid-2"}}}, EverSynced: true, Connected: working}, StepLetGo, "Deleting", false, "left alone"},
		"another hub's":                  {Deletion{Claim: Claim{Hubs: here, Live: copied}, EverSynced: true, Connected: working}, StepLetGo, "Deleting", false, "on another hub, hub-2; it is left alone"},
		"another hub's, no status":       {Deletion{Claim: Claim{Hubs: here, Live: copied}, Connected: working}, StepLetGo, "Deleting", false, "on another hub"},
		"another hub's, elsewhere":       {Deletion{Claim: Claim{Hubs: here, Live: copied, LastSeen: "https://a", Endpoint: "https://b"}, EverSynced: true, Connected: working}, StepWait, "EndpointChanged", true, "https://a"},
		"the previous hub's":             {Deletion{Claim: Claim{Hubs: moved, Live: copied}, EverSynced: true, Connected: working}, StepDestroy, "Deleting", false, "being destroyed"},
		"orphan, another hub's":          {Deletion{Claim: Claim{Hubs: here, Live: copied}, Orphan: true, EverSynced: true, Connected: working}, StepLetGo, "Deleting", false, "nothing is changed"},
		"second writer":                  {Deletion{Claim: Claim{Live: ours}, SecondWriter: secondWriter, EverSynced: true, Connected: working}, StepWait, "SecondWriter", true, "is not destroyed: something else writes it. To leave it"},
		"orphan, unmarked unseen":        {Deletion{Claim: Claim{Live: omni.Live{Exists: true}}, Orphan: true, Unmarking: true, EverSynced: true, Connected: working}, StepUnmark, "Deleting", false, "without this object's mark"},
		"orphan, unmarked, and gone":     {Deletion{Orphan: true, Unmarking: true, EverSynced: true, Connected: working}, StepLetGo, "Deleting", false, "nothing is changed"},
		"second writer, orphan":          {Deletion{Claim: Claim{Live: ours}, SecondWriter: secondWriter, Orphan: true, EverSynced: true, Connected: working}, StepLetGo, "Deleting", false, "with this object's mark"},
		"second writer, being torn down": {Deletion{Claim: Claim{Live: leaving}, SecondWriter: secondWriter, EverSynced: true, Connected: working}, StepDestroy, "Deleting", false, ""},
		"orphan, a copy of it elsewhere": {
			Deletion{Claim: Claim{Live: identified, KnownID: "old", LastSeen: "https://a", Endpoint: "https://b"}, Orphan: true, EverSynced: true, Connected: working},
			StepLetGo, "Deleting", false, "last seen at https://a, stays with this object's mark",
		},
		"second writer, gone":          {Deletion{SecondWriter: secondWriter, EverSynced: true, Connected: working}, StepLetGo, "Deleting", false, "no cluster"},
		"gone":                         {Deletion{Claim: Claim{LastSeen: "https://a", Endpoint: "https://a"}, EverSynced: true, Connected: working}, StepLetGo, "Deleting", false, "no cluster"},
		"gone at another endpoint":     {Deletion{Claim: Claim{LastSeen: "https://a", Endpoint: "https://b"}, EverSynced: true, Connected: working}, StepWait, "EndpointChanged", true, "https://a"},
		"gone, written in another way": {Deletion{Claim: Claim{LastSeen: "https://a", Endpoint: "https://A:443/"}, EverSynced: true, Connected: working}, StepLetGo, "Deleting", false, "no cluster"},
		"our mark on another, at another endpoint": {
			Deletion{Claim: Claim{Live: identified, KnownID: "old", Recreate: "old", LastSeen: "https://a", Endpoint: "https://b"}, EverSynced: true, Connected: working},
			StepWait, "EndpointChanged", true, "change it back, or set spec.deletePolicy.orphan",
		},
		"ours at another endpoint, its ID is not known yet": {
			Deletion{Claim: Claim{Live: ours, KnownID: "old", Recreate: "old", LastSeen: "https://a", Endpoint: "https://b"}, EverSynced: true, Connected: working},
			StepWait, "Deleting", false, "waiting for Omni to tell the ID",
		},
		"ours at another endpoint":                  {Deletion{Claim: Claim{Live: ours, LastSeen: "https://a", Endpoint: "https://b"}, EverSynced: true, Connected: working}, StepDestroy, "Deleting", false, ""},
		"another's at another endpoint":             {Deletion{Claim: Claim{Live: omni.Live{Exists: true, Marks: omni.Marks{UID: "uid-2"}}, LastSeen: "https://a", Endpoint: "https://b"}, EverSynced: true, Connected: working}, StepWait, "EndpointChanged", true, "https://a"},
		"ours, the one that we made":                {Deletion{Claim: Claim{Live: identified, KnownID: "new"}, EverSynced: true, Connected: working}, StepDestroy, "Deleting", false, ""},
		"our mark on another one":                   {Deletion{Claim: Claim{Live: identified, KnownID: "old"}, EverSynced: true, Connected: working}, StepWait, "RemoteClusterReplaced", true, "recreate: old; to leave it in Omni set spec.deletePolicy.orphan"},
		"our mark on another, allowed":              {Deletion{Claim: Claim{Live: identified, KnownID: "old", Recreate: "old"}, EverSynced: true, Connected: working}, StepDestroy, "Deleting", false, ""},
		"our mark on another, orphan":               {Deletion{Claim: Claim{Live: identified, KnownID: "old"}, Orphan: true, EverSynced: true, Connected: working}, StepUnmark, "Deleting", false, ""},
		"ours, its ID is not known yet":             {Deletion{Claim: Claim{Live: ours, KnownID: "old"}, EverSynced: true, Connected: working}, StepWait, "Deleting", false, "waiting for Omni to tell the ID"},
		"ours, made again, its ID is not known yet": {Deletion{Claim: Claim{Live: ours, KnownID: "old", Recreate: "old"}, EverSynced: true, Connected: working}, StepDestroy, "Deleting", false, "being destroyed"},
		"ours, its ID has gone already":             {Deletion{Claim: Claim{Live: unidentified, KnownID: "old"}, EverSynced: true, Connected: working}, StepDestroy, "Deleting", false, ""},
		"ours, but the status was lost":             {Deletion{Claim: Claim{Live: ours}, Connected: working}, StepDestroy, "Deleting", false, "being destroyed"},
		"never synced":                              {Deletion{Claim: Claim{Live: omni.Live{Exists: true}}, Connected: working}, StepLetGo, "Deleting", false, "never wrote"},
		"never synced, no session yet":              {Deletion{Connected: broken}, StepWait, "ConnectionNotReady", false, "no key"},
		"never synced, no session":                  {Deletion{Connected: broken, Outage: time.Hour}, StepLetGo, "Deleting", false, "never wrote"},
		"never synced, no connection":               {Deletion{Connected: missing}, StepLetGo, "Deleting", false, "never wrote"},
		"no session yet":                            {Deletion{EverSynced: true, Connected: broken, Outage: time.Second}, StepWait, "ConnectionNotReady", false, "no key"},
		"no session for long enough":                {Deletion{EverSynced: true, Connected: broken, Outage: OutageTimeout}, StepWait, "ConnectionNotReady", true, "Restore the connection"},
		"the connection is gone":                    {Deletion{EverSynced: true, Connected: missing, Outage: time.Second}, StepWait, "ConnectionNotFound", false, "waiting for Omni"},
		"the connection is gone for long":           {Deletion{EverSynced: true, Connected: missing, Outage: time.Hour}, StepWait, "ConnectionNotFound", true, "Restore the connection"},
		"no session for long":                       {Deletion{EverSynced: true, Connected: broken, Outage: time.Hour}, StepWait, "ConnectionNotReady", true, "Restore the connection"},
		"the copy is behind":                        {Deletion{EverSynced: true, Connected: late, Behind: true, Outage: time.Hour}, StepWait, "MirrorNotSynced", false, "behind"},
		"never synced, behind":                      {Deletion{Connected: late, Behind: true}, StepWait, "MirrorNotSynced", false, "behind"},
		"orphan, behind":                            {Deletion{Orphan: true, EverSynced: true, Connected: late, Behind: true, Outage: time.Hour}, StepWait, "MirrorNotSynced", false, "behind"},
		"observe, behind":                           {Deletion{Observe: true, EverSynced: true, Connected: late, Behind: true}, StepLetGo, "Deleting", false, "Observe"},
		"observe":                                   {Deletion{Claim: Claim{Live: ours}, Observe: true, EverSynced: true, Connected: working}, StepLetGo, "Deleting", false, "stays in Omni as it is"},
		"observe, another's, being torn down":       {Deletion{Claim: Claim{Live: omni.Live{Exists: true, TearingDown: true}}, Observe: true, EverSynced: true, Connected: working}, StepLetGo, "Deleting", false, "stays in Omni as it is"},
		"observe, no session":                       {Deletion{Observe: true, EverSynced: true, Connected: broken}, StepLetGo, "Deleting", false, "Observe"},
		"orphan":                                    {Deletion{Claim: Claim{Live: ours}, Orphan: true, EverSynced: true, Connected: working}, StepUnmark, "Deleting", false, "without this object's mark"},
		"orphan, too late":                          {Deletion{Claim: Claim{Live: leaving}, Orphan: true, EverSynced: true, Connected: working}, StepLetGo, "Deleting", false, "cannot be undone"},
		"orphan, locked":                            {Deletion{Claim: Claim{Live: locked}, Orphan: true, EverSynced: true, Connected: working}, StepUnmark, "Deleting", false, ""},
		"orphan, not ours":                          {Deletion{Claim: Claim{Live: omni.Live{Exists: true}}, Orphan: true, EverSynced: true, Connected: working}, StepLetGo, "Deleting", false, "nothing is changed"},
		"orphan, another's, being torn down":        {Deletion{Claim: Claim{Live: omni.Live{Exists: true, TearingDown: true}}, Orphan: true, EverSynced: true, Connected: working}, StepLetGo, "Deleting", false, "nothing is changed"},
		"orphan, another's, second writer":          {Deletion{Claim: Claim{Live: omni.Live{Exists: true}}, SecondWriter: secondWriter, Orphan: true, EverSynced: true, Connected: working}, StepLetGo, "Deleting", false, "nothing is changed"},
		"orphan, no session for long enough":        {Deletion{Orphan: true, EverSynced: true, Connected: broken, Outage: OutageTimeout}, StepLetGo, "Deleting", false, "Omni cannot be used"},
		"orphan, never synced for long enough":      {Deletion{Orphan: true, Connected: broken, Outage: OutageTimeout}, StepLetGo, "Deleting", false, "nothing is changed"},
		"orphan, gone":                              {Deletion{Orphan: true, EverSynced: true, Connected: working}, StepLetGo, "Deleting", false, "nothing is changed"},
		"orphan, no session yet":                    {Deletion{Orphan: true, EverSynced: true, Connected: broken, Outage: time.Second}, StepWait, "Deleting", false, "mark"},
		"orphan, no session for long":               {Deletion{Orphan: true, EverSynced: true, Connected: broken, Outage: time.Hour}, StepLetGo, "Deleting", false, "Omni cannot be used"},
		"orphan, never synced yet":                  {Deletion{Orphan: true, Connected: broken}, StepWait, "Deleting", false, "mark"},
		"orphan, never synced":                      {Deletion{Orphan: true, Connected: broken, Outage: time.Hour}, StepLetGo, "Deleting", false, "nothing is changed"},
		"orphan, no connection":                     {Deletion{Orphan: true, Connected: missing}, StepLetGo, "Deleting", false, "nothing is changed"},
	} {
		t.Run(name, func(t *testing.T) {
			test.deletion.Name, test.deletion.UID = "demo", "uid-1"

			next, outcome := test.deletion.Decide()
			if next != test.step || outcome.Reason() != test.reason || outcome.Blocks() != test.blocks {
				t.Errorf("step %d, reason %s, blocks %t (%s); want step %d, %s, %t", next, outcome.Reason(), outcome.Blocks(), outcome.Message(), test.step, test.reason, test.blocks)
			}

			if !strings.Contains(outcome.Message(), test.text) {
				t.Errorf("message %q does not say %q", outcome.Message(), test.text)
			}
		})
	}
}

// A deletion that is shown as blocked does not seem to go on because Omni is out of reach for a moment.
func TestBlockedDeletionStaysBlockedMeanwhile(t *testing.T) {
	for _, blocked := range []bool{false, true} {
		_, outcome := Deletion{EverSynced: true, Connected: loop.Wait(0, "ConnectionNotReady", "x"), Outage: time.Second, Blocked: blocked}.Decide()
		if outcome.Postpones() != blocked {
			t.Errorf("blocked %t: it postpones %t, reason %s: %s", blocked, outcome.Postpones(), outcome.Reason(), outcome.Message())
		}
	}
}
