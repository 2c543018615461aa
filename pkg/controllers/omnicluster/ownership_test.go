package omnicluster

import (
	"strings"
	"testing"
	"time"

	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/hubs"
)

func TestJudgeClaim(t *testing.T) {
	ours := omni.Marks{UID: "uid-1", Namespace: "team", Name: "demo"}
	theirs := omni.Marks{UID: "uid-2", Namespace: "other", Name: "boss", ManagementCluster: "hub-b"}

	copied := omni.Marks{UID: "uid-1", Namespace: "team", Name: "demo", Hub: "hub-2", ManagementCluster: "berlin"}
	complete := omni.Marks{UID: "uid-1", Namespace: "team", Name: "demo", Hub: "hub-1"}
	here := hubs.Hubs{Own: "hub-1"}
	moved := hubs.Hubs{Own: "hub-1", Previous: "hub-2"}

	for name, test := range map[string]struct {
		claim  claim
		goesOn bool
		stalls bool
		reason string
		text   string
	}{
		"free name": {claim{}, true, false, "UpToDate", "free"},
		"ours":      {claim{live: omni.Live{Exists: true, Marks: ours}}, true, false, "UpToDate", "mark"},
		"ours, with the ID that we know": {
			claim{knownID: "id", live: omni.Live{Exists: true, Marks: ours, UUID: "id"}}, true, false, "UpToDate", "mark",
		},
		"ours, but another one than we made": {
			claim{knownID: "old", live: omni.Live{Exists: true, Marks: ours, UUID: "new"}}, false, true, "RemoteClusterReplaced",
			"its ID is new, not old; nothing is changed. To take the new one, set the annotation omni.texashpc.com/recreate: old",
		},
		"ours, another one, allowed": {
			claim{knownID: "old", recreate: "old", live: omni.Live{Exists: true, Marks: ours, UUID: "new"}}, true, false, "UpToDate", "mark",
		},
		"ours, another one, an old permission": {
			claim{knownID: "old", recreate: "older", live: omni.Live{Exists: true, Marks: ours, UUID: "new"}}, false, true, "RemoteClusterReplaced", "old",
		},
		"ours, Omni has not told the ID": {
			claim{knownID: "old", live: omni.Live{Exists: true, Marks: ours}}, false, false, "Progressing", "waiting for Omni to tell the ID",
		},
		"ours, made again by us, Omni has not told the ID": {
			claim{knownID: "old", recreate: "old", live: omni.Live{Exists: true, Marks: ours}}, true, false, "UpToDate", "mark",
		},
		"ours, with our hub": {claim{hubs: here, live: omni.Live{Exists: true, Marks: complete}}, true, false, "UpToDate", "mark"},
		"ours, an old mark":  {claim{hubs: here, live: omni.Live{Exists: true, Marks: ours}}, true, false, "UpToDate", "mark"},
		"another hub's": {
			claim{hubs: here, connection: "omni", knownID: "id", live: omni.Live{Exists: true, Marks: copied, UUID: "id"}}, false, true, "OwnedByOtherHub",
			"on another hub, hub-2 (management cluster berlin); this hub is hub-1",
		},
		"another hub's, what to do": {
			claim{hubs: here, connection: "omni", live: omni.Live{Exists: true, Marks: copied}}, false, true, "OwnedByOtherHub",
			`set the annotation omni.texashpc.com/previous-hub: hub-2 on OmniConnection "omni"`,
		},
		"another hub's, adopt": {
			claim{hubs: here, adopt: true, live: omni.Live{Exists: true, Marks: copied, UUID: "id"}}, false, true, "OwnedByOtherHub", "hub-2",
		},
		"another hub's, another one than we made": {
			claim{hubs: here, knownID: "old", recreate: "old", live: omni.Live{Exists: true, Marks: copied, UUID: "new"}}, false, true, "OwnedByOtherHub", "hub-2",
		},
		"another hub's, elsewhere once": {
			claim{hubs: here, lastSeen: "https://a", endpoint: "https://b", live: omni.Live{Exists: true, Marks: copied}}, false, true, "OwnedByOtherHub", "hub-2",
		},
		"the previous hub's":              {claim{hubs: moved, knownID: "id", live: omni.Live{Exists: true, Marks: copied, UUID: "id"}}, true, false, "UpToDate", "mark"},
		"ours, and there was another hub": {claim{hubs: moved, live: omni.Live{Exists: true, Marks: complete}}, true, false, "UpToDate", "mark"},
		"a third hub's": {
			claim{hubs: hubs.Hubs{Own: "hub-1", Previous: "hub-3"}, live: omni.Live{Exists: true, Marks: copied}}, false, true, "OwnedByOtherHub", "hub-2",
		},
		"somebody made it by hand": {claim{live: omni.Live{Exists: true}}, false, true, "NotOwned", `cluster "demo" exists`},
		"somebody made it by hand, adopt": {
			claim{adopt: true, live: omni.Live{Exists: true, UUID: "id"}}, true, false, "UpToDate", "to be adopted",
		},
		"somebody made it by hand, adopt, Omni has not told the ID": {
			claim{adopt: true, live: omni.Live{Exists: true}}, false, false, "Progressing", "waiting for Omni to tell its ID",
		},
		"another object's": {
			claim{live: omni.Live{Exists: true, Marks: theirs}}, false, true, "NotOwned", "OmniCluster other/boss of management cluster hub-b (UID uid-2)",
		},
		"another object's, which is gone": {
			claim{ownerGone: true, live: omni.Live{Exists: true, Marks: theirs}}, false, true, "NotOwned", "(UID uid-2), which does not exist in this management cluster; nothing is changed. To take it over set spec.adopt",
		},
		"another object took it, and is gone": {
			claim{knownID: "id", ownerGone: true, live: omni.Live{Exists: true, Marks: theirs}}, false, true, "OwnershipLost", "(UID uid-2), which does not exist in this management cluster; it is not taken back",
		},
		"another object's, adopt": {
			claim{adopt: true, live: omni.Live{Exists: true, Marks: theirs, UUID: "id"}}, true, false, "UpToDate", "to be adopted",
		},
		"another object took it": {
			claim{knownID: "id", live: omni.Live{Exists: true, Marks: theirs}}, false, true, "OwnershipLost", "other/boss",
		},
		"another object took it, adopt": {
			claim{adopt: true, knownID: "id", live: omni.Live{Exists: true, Marks: theirs}}, false, true, "OwnershipLost", "not taken back",
		},
		"somebody erased the mark": {
			claim{knownID: "id", live: omni.Live{Exists: true, UUID: "id"}}, false, true, "NotOwned", "put the annotation back in Omni: omni.texashpc.com/owner-uid: uid-1",
		},
		"somebody erased the mark, adopt": {
			claim{adopt: true, knownID: "id", live: omni.Live{Exists: true, UUID: "id"}}, false, true, "NotOwned", "put the annotation back",
		},
		"somebody else's, adopt, being torn down": {
			claim{adopt: true, live: omni.Live{Exists: true, TearingDown: true}}, false, false, "RemoteDeleting", "torn down",
		},
		"elsewhere once": {claim{lastSeen: "https://a", endpoint: "https://b"}, false, true, "EndpointChanged", "may be at https://a"},
		"elsewhere once, somebody else's here, adopt": {
			claim{adopt: true, lastSeen: "https://a", endpoint: "https://b", live: omni.Live{Exists: true, UUID: "id"}}, false, true, "EndpointChanged", "https://b",
		},
		"the endpoint has another name": {
			claim{lastSeen: "https://a", endpoint: "https://b", live: omni.Live{Exists: true, Marks: ours}}, true, false, "UpToDate", "mark",
		},
		"elsewhere once, its ID known": {
			claim{knownID: "id", lastSeen: "https://a", endpoint: "https://b"}, false, true, "EndpointChanged", `cluster "demo" was last seen at https://a, but the connection leads to https://b, which has no such cluster`,
		},
		"elsewhere once, to be made again here": {
			claim{knownID: "id", recreate: "id", lastSeen: "https://a", endpoint: "https://b"}, false, true, "EndpointChanged", "the annotation omni.texashpc.com/recreate does not help",
		},
		"elsewhere once, another's of the name here": {
			claim{knownID: "id", lastSeen: "https://a", endpoint: "https://b", live: omni.Live{Exists: true, UUID: "other", Marks: theirs}}, false, true, "EndpointChanged",
			"change it back (spec.endpoint of the OmniConnection). To make the cluster anew at https://b and leave what is at https://a, delete this object with spec.deletePolicy.orphan",
		},
		"elsewhere once, another's of the name is being torn down here": {
			claim{knownID: "id", lastSeen: "https://a", endpoint: "https://b", live: omni.Live{Exists: true, TearingDown: true, UUID: "other", Marks: theirs}}, false, true, "EndpointChanged", "does not carry this object's mark",
		},
		"elsewhere once, our mark on another one here, allowed": {
			claim{knownID: "id", recreate: "id", lastSeen: "https://a", endpoint: "https://b", live: omni.Live{Exists: true, UUID: "other", Marks: ours}}, false, true, "EndpointChanged", "has the ID other, not id",
		},
		"elsewhere once, our mark here, Omni has not told the ID, allowed": {
			claim{knownID: "id", recreate: "id", lastSeen: "https://a", endpoint: "https://b", live: omni.Live{Exists: true, Marks: ours}}, false, false, "Progressing", "waiting for Omni to tell the ID",
		},
		"the Omni has another name": {
			claim{knownID: "id", lastSeen: "https://a", endpoint: "https://b", live: omni.Live{Exists: true, UUID: "id", Marks: ours}}, true, false, "UpToDate", "mark",
		},
		"the Omni has another name, the mark was erased": {
			claim{knownID: "id", lastSeen: "https://a", endpoint: "https://b", live: omni.Live{Exists: true, UUID: "id"}}, false, true, "NotOwned", "put the annotation back in Omni",
		},
		"the endpoint is written in another way, gone": {
			claim{knownID: "id", lastSeen: "https://A:443", endpoint: "https://a/"}, false, true, "RemoteClusterGone", "empty",
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

func TestIsAdopting(t *testing.T) {
	ours := omni.Live{Exists: true, UUID: "id", Marks: omni.Marks{UID: "uid-1"}}
	theirs := omni.Live{Exists: true, UUID: "id", Marks: omni.Marks{UID: "uid-2"}}

	for name, test := range map[string]struct {
		claim  claim
		status bool
		want   bool
	}{
		"ours":                                     {claim{knownID: "id", live: ours}, false, false},
		"ours, adopt is still set":                 {claim{adopt: true, knownID: "id", live: ours}, false, false},
		"ours, not finished":                       {claim{adopt: true, knownID: "id", live: ours}, true, true},
		"ours, not finished, adopt is unset":       {claim{knownID: "id", live: ours}, true, true},
		"ours, the status was lost":                {claim{adopt: true, live: ours}, false, true},
		"ours, the status was lost, without adopt": {claim{live: ours}, false, false},
		"theirs":                            {claim{adopt: true, live: theirs}, false, true},
		"nobody's":                          {claim{adopt: true, live: omni.Live{Exists: true}}, false, true},
		"nobody's, without adopt":           {claim{live: omni.Live{Exists: true}}, false, false},
		"no cluster":                        {claim{adopt: true}, false, false},
		"no cluster any more":               {claim{adopt: true, knownID: "id"}, true, false},
		"another one than we made, allowed": {claim{knownID: "old", recreate: "old", live: ours}, false, true},
		"another one than we made":          {claim{knownID: "old", live: ours}, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			test.claim.uid = "uid-1"

			if got := isAdopting(test.claim, test.status); got != test.want {
				t.Errorf("got %v", got)
			}
		})
	}
}

// A cluster without any mark never belongs to an object without a UID.
func TestNobodyOwnsByAccident(t *testing.T) {
	if owned(omni.Live{Exists: true}, "", hubs.Hubs{Own: "hub-1"}) {
		t.Error("an empty mark equals an empty UID")
	}

	if owned(omni.Live{Marks: omni.Marks{UID: "uid-1"}}, "uid-1", hubs.Hubs{Own: "hub-1"}) {
		t.Error("owned, but it does not exist")
	}
}
