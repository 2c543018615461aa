package consent

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
	anew := omni.Marks{UID: "uid-2", Namespace: "team", Name: "demo", Hub: "hub-2", ManagementCluster: "berlin"}
	beside := omni.Marks{UID: "uid-2", Namespace: "other", Name: "boss", Hub: "hub-1"}
	here := hubs.Hubs{Own: "hub-1"}
	moved := hubs.Hubs{Own: "hub-1", Previous: "hub-2"}

	for name, test := range map[string]struct {
		claim  Claim
		goesOn bool
		stalls bool
		reason string
		text   string
	}{
		"free name":                                  {Claim{}, true, false, "UpToDate", "free"},
		"free name, adopt":                           {Claim{Adopt: true}, true, false, "UpToDate", "free"},
		"free name, seen nowhere before":             {Claim{Endpoint: "https://b"}, true, false, "UpToDate", "free"},
		"free name, an annotation of another object": {Claim{Recreate: "id"}, true, false, "UpToDate", "free"},
		"ours": {Claim{Live: omni.Live{Exists: true, Marks: ours}}, true, false, "UpToDate", "mark"},
		"ours, with the ID that we know": {
			Claim{KnownID: "id", Live: omni.Live{Exists: true, Marks: ours, UUID: "id"}}, true, false, "UpToDate", "mark",
		},
		"ours, with an ID that was not recorded, and an annotation": {
			Claim{Recreate: "old", Live: omni.Live{Exists: true, Marks: ours, UUID: "new"}}, true, false, "UpToDate", "mark",
		},
		"ours, but another one than we made": {
			Claim{KnownID: "old", Live: omni.Live{Exists: true, Marks: ours, UUID: "new"}}, false, true, "RemoteClusterReplaced",
			"its ID is new, not old; nothing is changed. To take the new one, set the annotation omni.texashpc.com/recreate: old",
		},
		"ours, another one, allowed": {
			Claim{KnownID: "old", Recreate: "old", Live: omni.Live{Exists: true, Marks: ours, UUID: "new"}}, true, false, "UpToDate", "mark",
		},
		"ours, another one, an old permission": {
			Claim{KnownID: "old", Recreate: "older", Live: omni.Live{Exists: true, Marks: ours, UUID: "new"}}, false, true, "RemoteClusterReplaced", "old",
		},
		"ours, Omni has not told the ID": {
			Claim{KnownID: "old", Live: omni.Live{Exists: true, Marks: ours}}, false, false, "Progressing", "waiting for Omni to tell the ID",
		},
		"ours, made again by us, Omni has not told the ID": {
			Claim{KnownID: "old", Recreate: "old", Live: omni.Live{Exists: true, Marks: ours}}, true, false, "UpToDate", "mark",
		},
		"ours, with our hub": {Claim{Hubs: here, Live: omni.Live{Exists: true, Marks: complete}}, true, false, "UpToDate", "mark"},
		"ours, an old mark":  {Claim{Hubs: here, Live: omni.Live{Exists: true, Marks: ours}}, true, false, "UpToDate", "mark"},
		"another hub's": {
			Claim{Hubs: here, Connection: "omni", KnownID: "id", Live: omni.Live{Exists: true, Marks: copied, UUID: "id"}}, false, true, "OwnedByOtherHub",
			"on another hub, hub-2 (management cluster berlin); this hub is hub-1",
		},
		"another hub's, what to do": {
			Claim{Hubs: here, Connection: "omni", Live: omni.Live{Exists: true, Marks: copied}}, false, true, "OwnedByOtherHub",
			`set the annotation omni.texashpc.com/previous-hub: hub-2 on OmniConnection "omni"`,
		},
		"another hub's, adopt": {
			Claim{Hubs: here, Adopt: true, Live: omni.Live{Exists: true, Marks: copied, UUID: "id"}}, false, true, "OwnedByOtherHub", "hub-2",
		},
		"another hub's, another one than we made": {
			Claim{Hubs: here, KnownID: "old", Recreate: "old", Live: omni.Live{Exists: true, Marks: copied, UUID: "new"}}, false, true, "OwnedByOtherHub", "hub-2",
		},
		"another hub's, elsewhere once": {
			Claim{Hubs: here, LastSeen: "https://a", Endpoint: "https://b", Live: omni.Live{Exists: true, Marks: copied}}, false, true, "OwnedByOtherHub", "hub-2",
		},
		"the previous hub's":              {Claim{Hubs: moved, KnownID: "id", Live: omni.Live{Exists: true, Marks: copied, UUID: "id"}}, true, false, "UpToDate", "mark"},
		"ours, and there was another hub": {Claim{Hubs: moved, Live: omni.Live{Exists: true, Marks: complete}}, true, false, "UpToDate", "mark"},
		"a third hub's": {
			Claim{Hubs: hubs.Hubs{Own: "hub-1", Previous: "hub-3"}, Live: omni.Live{Exists: true, Marks: copied}}, false, true, "OwnedByOtherHub", "hub-2",
		},
		"somebody made it by hand": {Claim{Live: omni.Live{Exists: true}}, false, true, "NotOwned", `cluster "demo" exists in Omni and was not made by this object; nothing is changed`},
		"somebody made it by hand, adopt": {
			Claim{Adopt: true, Live: omni.Live{Exists: true, UUID: "id"}}, true, false, "UpToDate", "to be adopted",
		},
		"somebody made it by hand, adopt, Omni has not told the ID": {
			Claim{Adopt: true, Live: omni.Live{Exists: true}}, false, false, "Progressing", "waiting for Omni to tell its ID",
		},
		"another object's": {
			Claim{Live: omni.Live{Exists: true, Marks: theirs}}, false, true, "NotOwned", "OmniCluster other/boss of management cluster hub-b (UID uid-2)",
		},
		"another object's, which is gone": {
			Claim{Owner: OwnerGone, Live: omni.Live{Exists: true, Marks: theirs}}, false, true, "NotOwned", "(UID uid-2), which does not exist in this management cluster; nothing is changed. To take it over, set spec.adopt",
		},
		"another object took it, and is gone": {
			Claim{KnownID: "id", Owner: OwnerGone, Live: omni.Live{Exists: true, Marks: theirs}}, false, true, "OwnershipLost", "(UID uid-2), which does not exist in this management cluster; it is not taken back",
		},
		"another object's, which exists": {
			Claim{Owner: OwnerExists, Live: omni.Live{Exists: true, Marks: theirs}}, false, true, "NotOwned",
			"nothing is changed. To take it over, release it there first (spec.deletePolicy.orphan: true, then delete it) and set spec.adopt: true here, or make a new OmniCluster",
		},
		"another object's, which is gone, adopt": {
			Claim{Owner: OwnerGone, Adopt: true, Live: omni.Live{Exists: true, Marks: theirs, UUID: "id"}}, true, false, "UpToDate", "to be adopted",
		},
		"another object's of this hub, which is gone, adopt": {
			Claim{Owner: OwnerGone, Hubs: here, Adopt: true, Live: omni.Live{Exists: true, Marks: beside, UUID: "id"}}, true, false, "UpToDate", "to be adopted",
		},
		"another object's, an old mark, which is gone, adopt": {
			Claim{Owner: OwnerGone, Hubs: here, Adopt: true, Live: omni.Live{Exists: true, Marks: theirs, UUID: "id"}}, true, false, "UpToDate", "to be adopted",
		},
		"another object's of this hub, which exists, adopt": {
			Claim{Owner: OwnerExists, Hubs: here, Adopt: true, Live: omni.Live{Exists: true, Marks: beside, UUID: "id"}}, false, true, "NotOwned",
			`cluster "demo" in Omni belongs to OmniCluster other/boss (UID uid-2, hub hub-1), which exists: spec.adopt takes nothing from it, and nothing is changed. ` +
				"To take the cluster over, release it there first: set spec.deletePolicy.orphan: true, then delete it",
		},
		"another object's, an old mark, which exists, adopt": {
			Claim{Owner: OwnerExists, Hubs: here, Adopt: true, Live: omni.Live{Exists: true, Marks: theirs, UUID: "id"}}, false, true, "NotOwned", "release it there first",
		},
		"another object's, which exists, adopt, Omni has not told the ID": {
			Claim{Owner: OwnerExists, Hubs: here, Adopt: true, Live: omni.Live{Exists: true, Marks: beside}}, false, true, "NotOwned", "release it there first",
		},
		"another object's, which exists, adopt, being torn down": {
			Claim{Owner: OwnerExists, Hubs: here, Adopt: true, Live: omni.Live{Exists: true, Marks: beside, TearingDown: true}}, false, false, "RemoteDeleting", "torn down",
		},
		"another object's, which may exist, adopt": {
			Claim{Hubs: here, Adopt: true, Live: omni.Live{Exists: true, Marks: beside, UUID: "id"}}, false, true, "NotOwned",
			"whether it exists cannot be seen from here, and nothing is changed. Release the cluster there first: set spec.deletePolicy.orphan: true, then delete the object. " +
				"If it is gone, take the annotation omni.texashpc.com/owner-uid off the cluster in Omni",
		},
		"an object's of the previous hub, which was restored, adopt": {
			Claim{Owner: OwnerExists, Hubs: moved, Adopt: true, Live: omni.Live{Exists: true, Marks: anew, UUID: "id"}}, false, true, "NotOwned", "which exists",
		},
		"nobody's, adopt": {
			Claim{Hubs: here, Adopt: true, Live: omni.Live{Exists: true, UUID: "id"}}, true, false, "UpToDate", "to be adopted",
		},
		"an object's of another hub": {
			Claim{Hubs: here, Connection: "omni", Live: omni.Live{Exists: true, Marks: anew, UUID: "id"}}, false, true, "NotOwned",
			`set spec.adopt: true and the annotation omni.texashpc.com/previous-hub: hub-2 on OmniConnection "omni", if that hub is gone for good`,
		},
		"an object's of another hub, adopt": {
			Claim{Hubs: here, Connection: "omni", Adopt: true, Live: omni.Live{Exists: true, Marks: anew, UUID: "id"}}, false, true, "OwnedByOtherHub",
			"OmniCluster team/demo of management cluster berlin (UID uid-2, hub hub-2), and this hub is hub-1",
		},
		"an object's of another hub, adopt, what to do": {
			Claim{Hubs: here, Connection: "omni", Adopt: true, Live: omni.Live{Exists: true, Marks: anew}}, false, true, "OwnedByOtherHub",
			`set the annotation omni.texashpc.com/previous-hub: hub-2 on OmniConnection "omni"`,
		},
		"an object's of the previous hub, adopt": {
			Claim{Owner: OwnerGone, Hubs: moved, Adopt: true, Live: omni.Live{Exists: true, Marks: anew, UUID: "id"}}, true, false, "UpToDate", "to be adopted",
		},
		"an object's of the previous hub": {
			Claim{Owner: OwnerGone, Hubs: moved, Live: omni.Live{Exists: true, Marks: anew, UUID: "id"}}, false, true, "NotOwned", "To take it over, set spec.adopt: true, or",
		},
		"an object's of a third hub, adopt": {
			Claim{Hubs: hubs.Hubs{Own: "hub-1", Previous: "hub-3"}, Adopt: true, Live: omni.Live{Exists: true, Marks: anew, UUID: "id"}},
			false, true, "OwnedByOtherHub", "hub-2",
		},
		"an object's of another hub, adopt, being torn down": {
			Claim{Hubs: here, Adopt: true, Live: omni.Live{Exists: true, Marks: anew, TearingDown: true}}, false, false, "RemoteDeleting", "torn down",
		},
		"an object of another hub took it, adopt": {
			Claim{Hubs: here, Adopt: true, KnownID: "id", Live: omni.Live{Exists: true, Marks: anew}}, false, true, "OwnershipLost", "not taken back",
		},
		"an object of the previous hub took it, adopt": {
			Claim{Hubs: moved, Adopt: true, KnownID: "id", Live: omni.Live{Exists: true, Marks: anew}}, false, true, "OwnershipLost", "not taken back",
		},
		"another object took it": {
			Claim{KnownID: "id", Live: omni.Live{Exists: true, Marks: theirs}}, false, true, "OwnershipLost", "other/boss",
		},
		"another object took it, adopt": {
			Claim{Adopt: true, KnownID: "id", Live: omni.Live{Exists: true, Marks: theirs}}, false, true, "OwnershipLost", "not taken back",
		},
		"somebody erased the mark": {
			Claim{KnownID: "id", Live: omni.Live{Exists: true, UUID: "id"}}, false, true, "NotOwned", "put the annotation back in Omni: omni.texashpc.com/owner-uid: uid-1",
		},
		"somebody erased the mark, adopt": {
			Claim{Adopt: true, KnownID: "id", Live: omni.Live{Exists: true, UUID: "id"}}, false, true, "NotOwned", "put the annotation back",
		},
		"somebody else's, adopt, being torn down": {
			Claim{Adopt: true, Live: omni.Live{Exists: true, TearingDown: true}}, false, false, "RemoteDeleting", "torn down",
		},
		"elsewhere once": {Claim{LastSeen: "https://a", Endpoint: "https://b"}, false, true, "EndpointChanged", "may be at https://a"},
		"elsewhere once, somebody else's here, adopt": {
			Claim{Adopt: true, LastSeen: "https://a", Endpoint: "https://b", Live: omni.Live{Exists: true, UUID: "id"}}, false, true, "EndpointChanged", "https://b",
		},
		"the endpoint has another name": {
			Claim{LastSeen: "https://a", Endpoint: "https://b", Live: omni.Live{Exists: true, Marks: ours}}, true, false, "UpToDate", "mark",
		},
		"the endpoint has another name, its ID told": {
			Claim{LastSeen: "https://a", Endpoint: "https://b", Live: omni.Live{Exists: true, Marks: ours, UUID: "id"}}, true, false, "UpToDate", "mark",
		},
		"elsewhere once, only its ID is here": {
			Claim{KnownID: "id", LastSeen: "https://a", Endpoint: "https://b", Live: omni.Live{UUID: "id"}}, false, true, "EndpointChanged", "which has no such cluster",
		},
		"elsewhere once, its ID known": {
			Claim{KnownID: "id", LastSeen: "https://a", Endpoint: "https://b"}, false, true, "EndpointChanged", `cluster "demo" was last seen at https://a, but the connection leads to https://b, which has no such cluster`,
		},
		"elsewhere once, to be made again here": {
			Claim{KnownID: "id", Recreate: "id", LastSeen: "https://a", Endpoint: "https://b"}, false, true, "EndpointChanged", "the annotation omni.texashpc.com/recreate does not help",
		},
		"elsewhere once, another's of the name here": {
			Claim{KnownID: "id", LastSeen: "https://a", Endpoint: "https://b", Live: omni.Live{Exists: true, UUID: "other", Marks: theirs}}, false, true, "EndpointChanged",
			"change it back (spec.endpoint of the OmniConnection). To make the cluster anew at https://b and leave what is at https://a, delete this object with spec.deletePolicy.orphan",
		},
		"elsewhere once, another's of the name is being torn down here": {
			Claim{KnownID: "id", LastSeen: "https://a", Endpoint: "https://b", Live: omni.Live{Exists: true, TearingDown: true, UUID: "other", Marks: theirs}}, false, true, "EndpointChanged", "does not carry this object's mark",
		},
		"elsewhere once, our mark on another one here, allowed": {
			Claim{KnownID: "id", Recreate: "id", LastSeen: "https://a", Endpoint: "https://b", Live: omni.Live{Exists: true, UUID: "other", Marks: ours}}, false, true, "EndpointChanged", "has the ID other, not id",
		},
		"elsewhere once, our mark here, Omni has not told the ID, allowed": {
			Claim{KnownID: "id", Recreate: "id", LastSeen: "https://a", Endpoint: "https://b", Live: omni.Live{Exists: true, Marks: ours}}, false, false, "Progressing", "waiting for Omni to tell the ID",
		},
		"the Omni has another name": {
			Claim{KnownID: "id", LastSeen: "https://a", Endpoint: "https://b", Live: omni.Live{Exists: true, UUID: "id", Marks: ours}}, true, false, "UpToDate", "mark",
		},
		"the Omni has another name, the mark was erased": {
			Claim{KnownID: "id", LastSeen: "https://a", Endpoint: "https://b", Live: omni.Live{Exists: true, UUID: "id"}}, false, true, "NotOwned", "put the annotation back in Omni",
		},
		"the endpoint is written in another way, gone": {
			Claim{KnownID: "id", LastSeen: "https://A:443", Endpoint: "https://a/"}, false, true, "RemoteClusterGone", "empty",
		},
		"gone": {Claim{KnownID: "id"}, false, true, "RemoteClusterGone", "omni.texashpc.com/recreate: id"},
		"gone, to be made again": {
			Claim{KnownID: "id", Recreate: "id"}, true, false, "UpToDate", "free",
		},
		"gone, an old permission": {
			Claim{KnownID: "id", Recreate: "older"}, false, true, "RemoteClusterGone", "empty",
		},
		"ours, being torn down": {
			Claim{Live: omni.Live{Exists: true, Marks: ours, TearingDown: true, TearingDownSince: time.Unix(0, 0)}},
			false, false, "RemoteDeleting", "since 1970-01-01T00:00:00Z",
		},
		"not ours, being torn down": {
			Claim{Live: omni.Live{Exists: true, TearingDown: true}}, false, false, "RemoteDeleting", "torn down",
		},
	} {
		t.Run(name, func(t *testing.T) {
			test.claim.Name, test.claim.UID = "demo", "uid-1"

			got := test.claim.Judge()
			if got.Continues() != test.goesOn || got.Stalls() != test.stalls || got.Reason() != test.reason {
				t.Errorf("goes on %t, stalls %t, reason %s (%s); want %t, %t, %s",
					got.Continues(), got.Stalls(), got.Reason(), got.Message(), test.goesOn, test.stalls, test.reason)
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
	distant := omni.Live{Exists: true, UUID: "id", Marks: omni.Marks{UID: "uid-2", Hub: "hub-2"}}

	for name, test := range map[string]struct {
		claim  Claim
		status bool
		want   bool
	}{
		"ours":                                     {Claim{KnownID: "id", Live: ours}, false, false},
		"ours, adopt is still set":                 {Claim{Adopt: true, KnownID: "id", Live: ours}, false, false},
		"ours, not finished":                       {Claim{Adopt: true, KnownID: "id", Live: ours}, true, true},
		"ours, not finished, adopt is unset":       {Claim{KnownID: "id", Live: ours}, true, true},
		"ours, the status was lost":                {Claim{Adopt: true, Live: ours}, false, true},
		"ours, the status was lost, without adopt": {Claim{Live: ours}, false, false},
		"theirs":                            {Claim{Adopt: true, Owner: OwnerGone, Live: theirs}, false, true},
		"theirs, who exist":                 {Claim{Adopt: true, Owner: OwnerExists, Live: theirs}, false, false},
		"theirs, who were made anew":        {Claim{Adopt: true, Owner: OwnerMadeAnew, Live: theirs}, false, false},
		"theirs, who may exist":             {Claim{Adopt: true, Live: theirs}, false, false},
		"nobody's":                          {Claim{Adopt: true, Live: omni.Live{Exists: true}}, false, true},
		"another hub's":                     {Claim{Adopt: true, Hubs: hubs.Hubs{Own: "hub-1"}, Live: distant}, false, false},
		"the previous hub's":                {Claim{Adopt: true, Owner: OwnerGone, Hubs: hubs.Hubs{Own: "hub-1", Previous: "hub-2"}, Live: distant}, false, true},
		"nobody's, without adopt":           {Claim{Live: omni.Live{Exists: true}}, false, false},
		"no cluster":                        {Claim{Adopt: true}, false, false},
		"no cluster any more":               {Claim{Adopt: true, KnownID: "id"}, true, false},
		"another one than we made, allowed": {Claim{KnownID: "old", Recreate: "old", Live: ours}, false, true},
		"another one than we made":          {Claim{KnownID: "old", Live: ours}, false, false},
		"somebody else's one, allowed":      {Claim{KnownID: "old", Recreate: "old", Owner: OwnerGone, Live: theirs}, false, false},
		"the one that we made again":        {Claim{KnownID: "id", Recreate: "id", Live: ours}, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			test.claim.UID = "uid-1"

			if got := test.claim.IsAdopting(test.status); got != test.want {
				t.Errorf("got %v", got)
			}
		})
	}
}

// A cluster without any mark never belongs to an object without a UID.
func TestNobodyOwnsByAccident(t *testing.T) {
	if (Claim{Live: omni.Live{Exists: true}, Hubs: hubs.Hubs{Own: "hub-1"}}).Owned() {
		t.Error("an empty mark equals an empty UID")
	}

	if (Claim{Live: omni.Live{Marks: omni.Marks{UID: "uid-1"}}, UID: "uid-1", Hubs: hubs.Hubs{Own: "hub-1"}}).Owned() {
		t.Error("owned, but it does not exist")
	}
}

// What a status says of another hub keeps everybody's hands off the workload cluster.
func TestOtherHub(t *testing.T) {
	here := hubs.Hubs{Own: "hub-1"}
	copied := omni.Live{Exists: true, UUID: "id", Marks: omni.Marks{UID: "uid-1", Hub: "hub-2"}}
	theirs := omni.Live{Exists: true, UUID: "id", Marks: omni.Marks{UID: "uid-2", Hub: "hub-2"}}
	beside := omni.Live{Exists: true, UUID: "id", Marks: omni.Marks{UID: "uid-2", Hub: "hub-1"}}
	hostile := omni.Live{Exists: true, Marks: omni.Marks{UID: "uid-1", Hub: "hub-2\nis fine"}}

	for name, test := range map[string]struct {
		claim Claim
		want  string
	}{
		"no cluster":                               {Claim{Hubs: here, KnownID: "id"}, ""},
		"without a mark":                           {Claim{Hubs: here, KnownID: "id", Live: omni.Live{Exists: true}}, ""},
		"this object's on another hub":             {Claim{Hubs: here, Live: copied}, "hub-2"},
		"this object's on another hub, elsewhere":  {Claim{Hubs: here, LastSeen: "https://a", Endpoint: "https://b", Live: copied}, "hub-2"},
		"this object's on the previous hub":        {Claim{Hubs: hubs.Hubs{Own: "hub-1", Previous: "hub-2"}, Live: copied}, ""},
		"another's on another hub, who took it":    {Claim{Hubs: here, KnownID: "id", Live: theirs}, "hub-2"},
		"another's on another hub, to be adopted":  {Claim{Hubs: here, Adopt: true, Live: theirs}, "hub-2"},
		"another's on another hub, only looked at": {Claim{Hubs: here, Live: theirs}, ""},
		"another's on another hub, elsewhere":      {Claim{Hubs: here, KnownID: "mine", LastSeen: "https://a", Endpoint: "https://b", Live: theirs}, ""},
		"another's on this hub":                    {Claim{Hubs: here, KnownID: "id", Live: beside}, ""},
		"the name is foreign text":                 {Claim{Hubs: here, Live: hostile}, "hub-2 is fine"},
	} {
		t.Run(name, func(t *testing.T) {
			test.claim.UID = "uid-1"

			if got := test.claim.OtherHub(); got != test.want {
				t.Errorf("got %q", got)
			}
		})
	}
}

// The message that begins a takeover names who loses the cluster.
func TestTakeoverNamesTheOwner(t *testing.T) {
	ours := omni.Live{Exists: true, Marks: omni.Marks{UID: "uid-1", Hub: "hub-1"}}
	previous := omni.Live{Exists: true, Marks: omni.Marks{UID: "uid-1", Hub: "hub-2"}}
	theirs := omni.Live{Exists: true, Marks: omni.Marks{UID: "uid-2", Namespace: "other", Name: "boss"}}

	for name, test := range map[string]struct {
		live omni.Live
		want string
	}{
		"no cluster":       {omni.Live{}, ""},
		"ours":             {ours, ""},
		"the previous hub": {previous, `; cluster "demo" is taken over from hub hub-2, which OmniConnection "omni" names (omni.texashpc.com/previous-hub)`},
		"nobody's":         {omni.Live{Exists: true}, `; cluster "demo", which has no owner, is taken over (spec.adopt)`},
		"another object's": {theirs, `; cluster "demo" is taken over (spec.adopt) from OmniCluster other/boss (UID uid-2)`},
	} {
		claim := Claim{Name: "demo", UID: "uid-1", Connection: "omni", Live: test.live, Hubs: hubs.Hubs{Own: "hub-1", Previous: "hub-2"}}
		if got := claim.Takeover(); got != test.want {
			t.Errorf("%s: %q", name, got)
		}
	}
}
