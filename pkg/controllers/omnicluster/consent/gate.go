package consent

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/plan"
	"omni.texashpc.com/omni-cluster-operator/pkg/words"
)

// maxGated is how many changes one turn covers. Further changes wait for the next turn.
const maxGated = 256

// Gate has the conditions of the namespace's OmniRolloutPolicies for a cluster. The zero Gate holds nothing.
type Gate struct {
	// Policy is the name of the policy that selects the cluster, or that held changes of it before. Stage is the name
	// of its stage. Place names both, for messages.
	Policy, Stage, Place string
	// Revision differs between two gates if their policies do, or the content of these.
	Revision string
	// Gates reports whether changes of a kind wait for their turn. If it is nil, none do.
	Gates func(v1alpha1.ChangeKind) bool
	// OnlyBefore is true if the policy no longer selects the cluster: changes that it held stay held, other changes are
	// free.
	OnlyBefore bool
	// Governed is false for a cluster that was never Ready: its changes are free.
	Governed bool
	// Judge returns what changes of these kinds wait for, besides a free slot.
	Judge func(v1alpha1.OmniClusterRollout) Wait
	// Ticket is the cluster's ticket in the cache; nil if it has none.
	Ticket *v1alpha1.RolloutTicket
	// Turn has the state of the cluster, which decides when a turn is over.
	Turn Turn
}

// Holds reports whether changes may have to wait.
func (g Gate) Holds() bool { return g.Gates != nil }

// Wait describes what changes wait for: a reason of the condition Held, and a message. The reason is empty if they wait
// for nothing.
type Wait struct {
	Reason, Message string
	// NotBefore is the next time at which they may begin, if it is known, in the form of the status.
	NotBefore *metav1.Time
}

// admission is what a run found about the cluster's turn.
type admission struct {
	next    *v1alpha1.OmniClusterRollout // the new state of the turn
	admits  bool                         // the changes that it lists may be made
	message string                       // of the condition Held
}

// has reports whether the change with a digest has its turn.
func (a *admission) has(digest string) bool {
	return a.admits && slices.Contains(a.next.Changes, digest)
}

// isGated reports whether a change waits for a turn.
func (d Decision) isGated(change plan.Change) bool {
	gate := d.facts.Gate

	return gate.Holds() && gate.Governed && change.Kind != plan.KindFree && !change.TearingDown && gate.Gates(change.Kind)
}

// mayBegin reports whether a change may begin as far as no rollout holds it: it is not left alone because the namespace is being
// deleted, and waits for no documents.
func (d Decision) mayBegin(change plan.Change) bool {
	return !d.leavesAlone(change) && !d.waitsForDocuments(change)
}

// Admits reports whether a change may begin, and needs no turn in a rollout or has it. It is plan.ApplyOptions.Admit.
func (d Decision) Admits(change plan.Change) bool {
	if !d.mayBegin(change) {
		return false
	}

	if !d.isGated(change) || d.admission == nil {
		return true
	}

	if d.facts.Gate.OnlyBefore && !d.wasHeld(change) {
		return true
	}

	return d.admission.has(d.salted(change))
}

// wasHeld reports whether a policy held a change. A full list may have left some out, so then it held all.
func (d Decision) wasHeld(change plan.Change) bool {
	held := d.before().Changes

	return len(held) >= maxGated || slices.Contains(held, d.salted(change))
}

// WaitingForTurn returns the changes that wait for their turn, and the changes that depend on them.
func (d Decision) WaitingForTurn() []plan.Change {
	return d.where(func(item Item) bool { return item.Hold == HoldRollout })
}

// Rollout returns the new status.rollout; nil if no policy ever selected the cluster.
func (d Decision) Rollout() *v1alpha1.OmniClusterRollout {
	if d.admission == nil {
		return nil
	}

	return d.admission.next
}

// HeldCondition returns the reason and the message of the condition Held. Both are empty if no change waits for its turn.
func (d Decision) HeldCondition() (reason, message string) {
	if d.admission == nil || len(d.WaitingForTurn()) == 0 {
		return "", ""
	}

	return d.admission.next.Reason, d.admission.message
}

// Begins reports whether the run is about to make changes in the cluster's turn. Then the caller reads the ticket
// again, without the cache.
func (d Decision) Begins() bool {
	return slices.ContainsFunc(d.Items, func(item Item) bool {
		return item.State == Planned && d.isAdmitted(item.Change)
	})
}

// isAdmission reports whether changes are about to be made in a turn that the status does not have yet.
func (d Decision) isAdmission() bool {
	return d.Begins() && (d.before().Hash != d.admission.next.Hash || d.before().State != v1alpha1.RolloutAdmitted)
}

// Refusals returns the refusals that the status has, without those that a turn begins with: they are about another part
// of the same resource, or about an earlier time. What Omni refuses after the admission ends the turn.
func (d Decision) Refusals() []v1alpha1.RefusedChange {
	refusals := d.facts.Cluster.Status.Refusals
	if !d.isAdmission() {
		return refusals
	}

	return slices.DeleteFunc(slices.Clone(refusals), func(refusal v1alpha1.RefusedChange) bool {
		return slices.ContainsFunc(d.Items, func(item Item) bool {
			return d.isAdmitted(item.Change) && item.Change.Type == refusal.Type && item.Change.ID == refusal.ID
		})
	})
}

// BeginsWithoutTurn reports whether the run is about to make changes of a kind that a policy may hold, and that have no
// turn. Then the caller looks for a new policy, without the cache.
func (d Decision) BeginsWithoutTurn() bool {
	return slices.ContainsFunc(d.Items, func(item Item) bool {
		return item.State == Planned && item.Change.Kind != plan.KindFree && !item.Change.TearingDown && !d.isAdmitted(item.Change)
	})
}

// isAdmitted reports whether a change needs a turn, and has it.
func (d Decision) isAdmitted(change plan.Change) bool {
	return d.admission != nil && d.isGated(change) && d.admission.has(d.salted(change))
}

// HasBegun reports whether an earlier run made changes in the cluster's turn.
func (d Decision) HasBegun() bool {
	return d.admission != nil && d.turnHasBegun(d.before())
}

// ofTurn returns the items that the status lists as those of the cluster's turn, or as held.
func (d Decision) ofTurn(items []Item) []Item {
	named := d.before().Changes

	return slices.DeleteFunc(slices.Clone(items), func(item Item) bool { return !slices.Contains(named, d.salted(item.Change)) })
}

// withGate returns the items, with those held whose turn has not come. It leaves items alone that could not be made
// anyway. A version that waits for the upgrade of the other one counts: a turn that has both is not over in between.
func (d Decision) withGate() Decision {
	var gated []Item

	blocked := d.facts.Plan.WouldHold(d.MayDestroy, d.mayBegin)

	for _, item := range d.Items {
		if (item.State == Planned || item.waitsForUpgrade()) && d.isGated(item.Change) && !containsChange(blocked, item.Change) {
			gated = append(gated, item)
		}
	}

	d.admission = d.turn(gated)
	d.Items = slices.Clone(d.Items)
	held := d.facts.Plan.WouldHold(d.MayDestroy, d.Admits)

	for i := range d.Items {
		item := &d.Items[i]
		if item.State == Planned && containsChange(held, item.Change) && !containsChange(blocked, item.Change) {
			item.State, item.Hold = Held, HoldRollout
		}
	}

	d.admission.message = d.heldMessage(d.admission)

	return d
}

// IsOverridden reports whether somebody lets the changes of a hash begin out of turn: the cluster has the annotation
// rollout-override, omni-apiserver recorded it, and no turn has used it up.
func IsOverridden(cluster *v1alpha1.OmniCluster, recorded *v1alpha1.RolloutOverride, hash string) bool {
	annotated, _, _ := strings.Cut(cluster.Annotations[v1alpha1.AnnotationRolloutOverride], " ")

	return hash != "" && annotated == hash && recorded != nil && recorded.Hash == hash && recorded.UsedTime == nil
}

// before returns what the status has about the cluster's turn.
func (d Decision) before() v1alpha1.OmniClusterRollout {
	if d.facts.Cluster.Status.Rollout == nil {
		return v1alpha1.OmniClusterRollout{}
	}

	return *d.facts.Cluster.Status.Rollout
}

// salted returns the key of a change, with the UID of the cluster: two clusters may make the same change, and the
// digests must not show that.
func (d Decision) salted(change plan.Change) string {
	return digestOf(string(d.facts.Cluster.UID), change.Digest)[:16]
}

func digestOf(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "|")))

	return hex.EncodeToString(sum[:])
}

// toMake returns the digests of the changes that Omni has not begun to make, whatever they wait for.
func (d Decision) toMake() []string {
	var digests []string

	for _, item := range d.Items {
		if item.State != Requested && !item.Change.TearingDown {
			digests = append(digests, d.salted(item.Change))
		}
	}

	return digests
}

// stillHeld returns the changes that the status lists and that are still to make. They stay listed while they cannot be
// made for another reason: otherwise they would be free if the policy no longer selects the cluster.
func (d Decision) stillHeld() []string {
	toMake := d.toMake()

	return slices.DeleteFunc(slices.Clone(d.before().Changes), func(digest string) bool { return !slices.Contains(toMake, digest) })
}

// digestsOf returns the digests of items, sorted: the first maxGated in the plan's order, in which what replaces something
// comes before what goes.
func (d Decision) digestsOf(items []Item) []string {
	items = items[:min(len(items), maxGated)]
	digests := make([]string, 0, len(items))

	for _, item := range items {
		digests = append(digests, d.salted(item.Change))
	}

	return listed(digests)
}

// listed returns digests as the status lists them: sorted, at most maxGated.
func listed(digests []string) []string {
	slices.Sort(digests)
	digests = slices.Compact(digests)

	return digests[:min(len(digests), maxGated)]
}

// hashOf returns the hash of changes: sha256 in hexadecimal; empty if there are none.
func (d Decision) hashOf(digests []string) string {
	if len(digests) == 0 {
		return ""
	}

	return digestOf(append([]string{string(d.facts.Cluster.UID)}, digests...)...)
}

// kindsOf returns the kinds of items, sorted.
func kindsOf(items []Item) []v1alpha1.ChangeKind {
	var kinds []v1alpha1.ChangeKind
	for _, item := range items {
		kinds = append(kinds, item.Change.Kind)
	}

	slices.Sort(kinds)

	return slices.Compact(kinds)
}

// heldMessage returns the message about held changes: which ones wait, what for, and by which policy.
func (d Decision) heldMessage(a *admission) string {
	waiting := d.WaitingForTurn()
	if len(waiting) == 0 {
		return ""
	}

	verb := "wait"
	if len(waiting) == 1 {
		verb = "waits"
	}

	what := a.message
	if a.next.AdmittedSince != nil {
		what = "until the cluster is Ready with the changes of its last turn"
	}

	text := fmt.Sprintf("%d of %d changes %s (%s): %s", len(waiting), len(d.facts.Plan.Changes), verb, kindsText(waiting), what)
	if place := d.facts.Gate.Place; place != "" {
		text += "; by " + place
	}

	return text + usedText(a.next)
}

// usedText says that an override of the changes that wait has had its turn. Who sees the annotation may wonder.
func usedText(next *v1alpha1.OmniClusterRollout) string {
	override := next.Override
	if override == nil || override.UsedTime == nil || override.Hash != next.Hash {
		return ""
	}

	return fmt.Sprintf("; the override of %s has been used up", words.Time(override.Time.Time))
}

// kindsText lists what changes are about: each version, and the number of the others.
func kindsText(changes []plan.Change) string {
	var (
		parts []string
		order []string
	)

	counts := map[string]int{}

	for _, change := range changes {
		if change.Part != "" {
			parts = append(parts, fmt.Sprintf("%s v%s -> v%s", change.Part, change.From, change.To))

			continue
		}

		kind := string(change.Kind)
		if kind == "" {
			kind = "what depends on them"
		}

		if counts[kind] == 0 {
			order = append(order, kind)
		}

		counts[kind]++
	}

	for _, kind := range order {
		if counts[kind] > 1 {
			kind = fmt.Sprintf("%s x%d", kind, counts[kind])
		}

		parts = append(parts, kind)
	}

	return strings.Join(parts, ", ")
}
