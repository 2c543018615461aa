package consent

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/plan"
)

// maxGated is how many changes one turn is for. More wait for the next one.
const maxGated = 256

// Gate is what the OmniRolloutPolicies of the namespace say of a cluster. The zero Gate lets everything through.
type Gate struct {
	// Policy is the name of the policy that selects the cluster, or that held changes of it before; Stage the name of
	// its stage, and Place says both for people.
	Policy, Stage, Place string
	// Gates says which kinds of changes wait for their turn. Nil: none do.
	Gates func(v1alpha1.ChangeKind) bool
	// OnlyBefore is true if the policy selects the cluster no more: what it held stays held, other changes are free.
	OnlyBefore bool
	// Governed is false for a cluster that was never Ready: its changes are free.
	Governed bool
	// Judge says what changes of these kinds wait for besides a free turn.
	Judge func(v1alpha1.OmniClusterRollout) Wait
	// Ticket is the cluster's ticket that the cache has; nil if it has none.
	Ticket *v1alpha1.RolloutTicket
	// Override is the hash of the annotation rollout-override.
	Override string
	// Turn is how the cluster is, for the end of a turn.
	Turn Turn
}

// Wait is what changes wait for: a reason of the condition Held, empty if for nothing; and a message.
type Wait struct {
	Reason, Message string
	// NotBefore is the next instant at which they may begin, as far as it is known, in the form of the status.
	NotBefore *metav1.Time
}

// admission is what a run found of the cluster's turn.
type admission struct {
	gated    []Item          // the changes that could be made now, and need a turn
	admitted map[string]bool // digests of those that may be made
	next     *v1alpha1.OmniClusterRollout
	message  string // of the condition Held
}

// isGated reports whether a change waits for a turn.
func (d Decision) isGated(change plan.Change) bool {
	gate := d.facts.Gate

	return gate.Gates != nil && gate.Governed && change.Kind != plan.KindFree && !change.TearingDown && gate.Gates(v1alpha1.ChangeKind(change.Kind))
}

// MayBegin reports whether a change does not have to wait for its turn in a rollout. It is plan.ApplyOptions.Admit.
func (d Decision) MayBegin(change plan.Change) bool {
	if !d.isGated(change) || d.admission == nil {
		return true
	}

	digest := d.salted(change)
	if d.facts.Gate.OnlyBefore && !slices.Contains(d.before().Changes, digest) {
		return true
	}

	return d.admission.admitted[digest]
}

// Waiting are the changes that wait for their turn, with what depends on them.
func (d Decision) Waiting() []plan.Change {
	return d.where(func(item Item) bool { return item.Hold == HoldRollout })
}

// Rollout is what the status says of the cluster's turn from now on; nil if no policy was ever concerned.
func (d Decision) Rollout() *v1alpha1.OmniClusterRollout {
	if d.admission == nil {
		return nil
	}

	return d.admission.next
}

// Held says why changes wait for their turn: the reason and the message of the condition Held. Both are empty if none do.
func (d Decision) Held() (reason, message string) {
	if d.admission == nil || len(d.Waiting()) == 0 {
		return "", ""
	}

	return d.admission.next.Reason, d.admission.message
}

// Begins reports whether the run is about to make changes whose turn it is: their ticket is looked at past the cache then.
func (d Decision) Begins() bool {
	return d.admission != nil && slices.ContainsFunc(d.Items, func(item Item) bool {
		return item.State == Planned && d.isGated(item.Change) && d.admission.admitted[d.salted(item.Change)]
	})
}

// HasBegun reports whether changes of the cluster's turn were made before this run.
func (d Decision) HasBegun() bool {
	before := d.before()

	return d.admission != nil && before.State == v1alpha1.RolloutAdmitted && len(d.digestsOf(d.ofTurn(d.admission.gated))) < len(before.Changes)
}

// ofTurn are the items that the status names as those of the cluster's turn, or as held.
func (d Decision) ofTurn(items []Item) []Item {
	named := d.before().Changes

	return slices.DeleteFunc(slices.Clone(items), func(item Item) bool { return !slices.Contains(named, d.salted(item.Change)) })
}

// withGate holds the changes whose turn has not come. What could not be made anyway is not asked about.
func (d Decision) withGate() Decision {
	gate := d.facts.Gate
	if d.facts.Cluster == nil || gate.Gates == nil && d.facts.Cluster.Status.Rollout == nil {
		return d
	}

	a := &admission{admitted: map[string]bool{}}
	blocked := d.facts.Plan.HeldBack(d.MayDestroy, nil)

	for _, item := range d.Items {
		if item.State == Planned && d.isGated(item.Change) && !containsChange(blocked, item.Change) {
			a.gated = append(a.gated, item)
		}
	}

	d.admission = a
	a.next = d.turn(a)

	d.Items = slices.Clone(d.Items)
	held := d.facts.Plan.HeldBack(d.MayDestroy, d.MayBegin)

	for i := range d.Items {
		item := &d.Items[i]
		if item.State == Planned && containsChange(held, item.Change) && !containsChange(blocked, item.Change) {
			item.State, item.Hold = Held, HoldRollout
		}
	}

	a.message = d.heldMessage(a)

	return d
}

// before is what the status says of the cluster's turn.
func (d Decision) before() v1alpha1.OmniClusterRollout {
	if d.facts.Cluster == nil || d.facts.Cluster.Status.Rollout == nil {
		return v1alpha1.OmniClusterRollout{}
	}

	return *d.facts.Cluster.Status.Rollout
}

// salted identifies a change in this very cluster: what two clusters write may be the same, and nobody is to see that.
func (d Decision) salted(change plan.Change) string {
	return digestOf(string(d.facts.Cluster.UID), change.Digest)[:16]
}

func digestOf(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "|")))

	return hex.EncodeToString(sum[:])
}

// digestsOf are the digests of items, sorted, and at most maxGated.
func (d Decision) digestsOf(items []Item) []string {
	digests := make([]string, 0, len(items))
	for _, item := range items {
		digests = append(digests, d.salted(item.Change))
	}

	slices.Sort(digests)
	digests = slices.Compact(digests)

	return digests[:min(len(digests), maxGated)]
}

// hashOf is the hash of changes: sha256 in hexadecimal; empty if there are none.
func (d Decision) hashOf(digests []string) string {
	if len(digests) == 0 {
		return ""
	}

	return digestOf(append([]string{string(d.facts.Cluster.UID)}, digests...)...)
}

// kindsOf are the kinds of items, sorted.
func kindsOf(items []Item) []v1alpha1.ChangeKind {
	var kinds []v1alpha1.ChangeKind
	for _, item := range items {
		kinds = append(kinds, v1alpha1.ChangeKind(item.Change.Kind))
	}

	slices.Sort(kinds)

	return slices.Compact(kinds)
}
