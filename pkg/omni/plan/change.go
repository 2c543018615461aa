package plan

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
)

// Action is what a change does in Omni.
type Action string

// The actions, in the order in which they are applied.
const (
	ActionCreate  Action = "create"
	ActionUpdate  Action = "update"
	ActionDestroy Action = "destroy"
)

// Change is one write of a plan.
type Change struct {
	// Action is create, update or destroy.
	Action Action
	// Type is the COSI resource type, such as "MachineSets.omni.sidero.dev"; KindOf shortens it.
	Type string
	// ID is the resource's ID in Omni.
	ID string
	// Set is the ID of the MachineSet that the resource is or belongs to; empty if it belongs to none.
	Set string
	// Machine is the UUID of the one machine that the resource is about; empty for resources of a set or the cluster.
	Machine string
	// Destructive is true if machines lose their data or leave the cluster: the teardown of a Cluster, MachineSet,
	// MachineSetNode or Link, or an update that lowers a MachineSet's machine count, changes its class or goes from
	// unlimited to a number. A machine that moves to another set is torn down in the old set and created in the new one.
	// Destructive is also true if Omni removes objects from the running cluster because a manifest group is destroyed or
	// leaves mode full, and, with Options.EveryDestroyIsDestructive, if an update takes a patch from machines.
	Destructive bool
	// Reason is why the change is destructive, or, in Plan.WaitingForOmni, what it waits for, in a few words; else empty.
	Reason string
	// Created is when Omni created the existing resource; zero for a create.
	Created time.Time
	// OldSize and NewSize are how many machines a MachineSet requests: a number for a static set, "class/3" or
	// "class/unlimited" for a class; empty for other types and where there is no such side.
	OldSize, NewSize string
	// Version is the version of the existing resource that a destructive update or the removal of a manifest group starts
	// from; else empty. Omni increments it with every change. It is a part of Hash but not of Key: an approval is for this
	// one update, and not for the next one between the same sizes.
	Version string
	// Members identifies what consent is given for besides the resource: the machines of a MachineSet to destroy, except those
	// that Omni took from a class; the place that a destructive update of a patch takes it to; the objects that a manifest group
	// loses in an adoption. Else it is empty. It is a part of Key: consent was given for no others.
	Members string
	// Kind is what the change is about, for a rollout.
	Kind v1alpha1.ChangeKind
	// Part is the part of the Cluster that an update is about, the Kind of its version, if the update is split: see
	// Options.Rollout; else if a version has to wait for the other one. Empty for a change of the whole resource, and for
	// everything but the versions of a Cluster. It is a part of Key.
	Part v1alpha1.ChangeKind
	// From and To are the versions that such an update goes from and to.
	From, To string
	// Digest identifies the change with the content that it writes: 32 hexadecimal digits, in a plan with Options.Rollout;
	// empty for a change of KindFree.
	Digest string
	// DocumentGone is true for a change that takes settings from a machine which stays, because its Machine document is gone. That
	// may be the beginning of the deletion of the whole cluster. Such a change needs consent, and is no part of Hash.
	DocumentGone bool
	// Lacks says, for a removal, which machine the same plan adds in its place that cannot come. Such a removal needs an approval.
	// It is no part of Key: an approval is for what is destroyed.
	Lacks string
	// TearingDown is true for the destroy of a resource that is already being torn down: it only has to be finished, and
	// needs no consent again.
	TearingDown bool
}

// Key identifies a destructive change across plans: type, ID, Omni's created time, old and new size, the machines of a
// set, and Part. Hash is made of it, together with Version; an approval holds it until the change is made.
func (c Change) Key() string {
	key := strings.Join([]string{c.Type, c.ID, c.Created.UTC().Format(time.RFC3339Nano), c.OldSize, c.NewSize, c.Members}, "|")
	if c.Part != "" {
		key += "|" + string(c.Part)
	}

	return key
}

// String returns one short line, such as `destroy MachineSet "demo-workers" (3 -> 0)`.
func (c Change) String() string {
	line := fmt.Sprintf("%s %s %q", c.Action, omni.KindOf(c.Type), c.ID)
	if c.OldSize != c.NewSize {
		line += fmt.Sprintf(" (%s -> %s)", cmp.Or(c.OldSize, "none"), cmp.Or(c.NewSize, "none"))
	}

	if c.Part != "" {
		line += fmt.Sprintf(" (%s v%s -> v%s)", c.Part, c.From, c.To)
	}

	return line
}

// DestructiveFirst compares changes for sorting: the destructive ones come first.
func DestructiveFirst(a, b Change) int {
	switch {
	case a.Destructive == b.Destructive:
		return 0
	case a.Destructive:
		return -1
	default:
		return 1
	}
}

// adds reports whether the change gives the cluster machines: a new set, a machine in a set, or more machines of a class.
// Machines that a set lists are changes of their own, whatever sizes an update of the set names.
func (c Change) adds() bool {
	switch {
	case c.Type == TypeMachineSetNode:
		return c.Action == ActionCreate
	case c.Type == TypeMachineSet && c.Action == ActionUpdate:
		return !c.Destructive && c.OldSize != c.NewSize && IsOfClass(c.NewSize)
	default:
		return c.Type == TypeMachineSet && c.Action == ActionCreate
	}
}

// BringsMachines reports whether machines join the cluster by the change: one that a set lists, or those of a class.
func (c Change) BringsMachines() bool {
	return c.adds() && (c.Type == TypeMachineSetNode || IsOfClass(c.NewSize))
}

// destroys reports whether the change is destructive, and has not begun.
func (c Change) destroys() bool { return c.Destructive && !c.TearingDown }

// needsConsent reports whether the change needs consent: it has not begun, and is destructive or perhaps not meant.
func (c Change) needsConsent() bool { return (c.Destructive || c.DocumentGone) && !c.TearingDown }

// HashOf returns the sha256, in hexadecimal, over the sorted keys of the destructive changes that have not begun; empty if there is
// none. Updates and manifest groups count with the version that they start from. Plan.Hash is that of all of a plan's
// changes. A resource that is created again has another created time, but one that is updated keeps it, and an old hash
// may stay in a spec for years. Nothing else of a plan is hashed, so that an approval survives a harmless edit.
func HashOf(changes []Change) string {
	var keys []string

	for _, change := range changes {
		switch {
		case !change.destroys():
		case change.Version != "":
			keys = append(keys, change.Key()+"|"+change.Version)
		default:
			keys = append(keys, change.Key())
		}
	}

	if len(keys) == 0 {
		return ""
	}

	slices.Sort(keys)

	sum := sha256.Sum256([]byte(strings.Join(keys, "\n")))

	return hex.EncodeToString(sum[:])
}
