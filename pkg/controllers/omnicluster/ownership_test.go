package omnicluster

import (
	"strings"
	"testing"
	"time"

	"omni.texashpc.com/omni-cluster-operator/pkg/controllers/internal/omni"
)

func TestJudgeClaim(t *testing.T) {
	ours := omni.Marks{UID: "uid-1", Namespace: "team", Name: "demo"}
	theirs := omni.Marks{UID: "uid-2", Namespace: "other", Name: "boss", ManagementCluster: "hub-b"}

	for name, test := range map[string]struct {
		claim  claim
		goesOn bool
		stalls bool
		reason string
		text   string
	}{
		"free name": {claim{}, true, false, "UpToDate", "free"},
		"ours":      {claim{live: omni.Live{Exists: true, Marks: ours}}, true, false, "UpToDate", "mark"},
		"ours, with another ID than before": {
			claim{knownID: "old", live: omni.Live{Exists: true, Marks: ours, UUID: "new"}}, true, false, "UpToDate", "mark",
		},
		"somebody made it by hand": {claim{live: omni.Live{Exists: true}}, false, true, "NotOwned", `cluster "demo" exists`},
		"somebody made it by hand, adopt": {
			claim{adopt: true, live: omni.Live{Exists: true}}, false, true, "NotOwned", "adopting it is not available yet",
		},
		"another object's": {
			claim{live: omni.Live{Exists: true, Marks: theirs}}, false, true, "NotOwned", "OmniCluster other/boss of management cluster hub-b (UID uid-2)",
		},
		"another object's, adopt": {
			claim{adopt: true, live: omni.Live{Exists: true, Marks: theirs}}, false, true, "NotOwned", "not available",
		},
		"another object took it": {
			claim{knownID: "id", live: omni.Live{Exists: true, Marks: theirs}}, false, true, "OwnershipLost", "other/boss",
		},
		"another object took it, adopt": {
			claim{adopt: true, knownID: "id", live: omni.Live{Exists: true, Marks: theirs}}, false, true, "OwnershipLost", "not taken back",
		},
		"somebody erased the mark": {
			claim{knownID: "id", live: omni.Live{Exists: true, UUID: "id"}}, false, true, "NotOwned", "was not made by this object",
		},
		"gone": {claim{knownID: "id"}, false, true, "RemoteClusterGone", "omni.texashpc.com/recreate: id"},
		"gone, to be made again": {
			claim{knownID: "id", recreate: "id"}, true, false, "UpToDate", "free",
		},
		"gone, an old permission": {
			claim{knownID: "id", recreate: "older"}, false, true, "RemoteClusterGone", "empty",
		},
		"ours, being torn down": {
			claim{live: omni.Live{Exists: true, Marks: ours, TearingDown: true, TearingDownSince: time.Unix(0, 0)}},
			false, false, "RemoteDeleting", "since 1970-01-01T00:00:00Z",
		},
		"not ours, being torn down": {
			claim{live: omni.Live{Exists: true, TearingDown: true}}, false, false, "RemoteDeleting", "torn down",
		},
	} {
		t.Run(name, func(t *testing.T) {
			test.claim.name, test.claim.uid = "demo", "uid-1"

			got := judgeClaim(test.claim)
			if got.Continues() != test.goesOn || got.Stalls() != test.stalls || got.Reason() != test.reason {
				t.Errorf("%+v", got)
			}

			if !strings.Contains(got.Message(), test.text) {
				t.Errorf("message %q does not say %q", got.Message(), test.text)
			}
		})
	}
}

// A cluster without any mark never belongs to an object without a UID.
func TestNobodyOwnsByAccident(t *testing.T) {
	if owned(omni.Live{Exists: true}, "") {
		t.Error("an empty mark equals an empty UID")
	}

	if owned(omni.Live{Marks: omni.Marks{UID: "uid-1"}}, "uid-1") {
		t.Error("owned, but it does not exist")
	}
}
