package omnihelmrelease

import (
	"context"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/clusteraccess"
	"omni.texashpc.com/omni-cluster-operator/pkg/foreign/redact"
	"omni.texashpc.com/omni-cluster-operator/pkg/helm"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/hubs"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/index"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/loop"
)

// marked returns the newest revision with a mark of ownership, or an empty one: a revision that another client adds does not
// change the owner.
func marked(observed helm.Observed) *helm.Revision {
	for i := range observed.Revisions {
		if observed.Revisions[i].Owner != "" {
			return &observed.Revisions[i]
		}
	}

	return &helm.Revision{}
}

// withoutForeignDigests removes the digests of others' revisions: a release that is taken over always gets a new
// revision with our mark.
func withoutForeignDigests(observed helm.Observed, uid string) helm.Observed {
	own := helm.Observed{Revisions: append([]helm.Revision(nil), observed.Revisions...)}

	for i := range own.Revisions {
		if own.Revisions[i].Owner != uid {
			own.Revisions[i].Content, own.Revisions[i].Attempt = "", ""
		}
	}

	return own
}

// unmarked says of a release that was this object's why it does not count as that any more.
const unmarked = "none of its revisions bears this object's mark any more: they were made with Helm by hand or by another tool, and Helm keeps the newest ones only"

// claim has the facts that decide to whom a release belongs.
type claim struct {
	uid string // of the OmniHelmRelease
	// owner and hub are those in the mark of the release; empty if it has none.
	owner, hub string
	// hubs are the hubs whose marks count as ours; names has what can name a previous one.
	hubs  hubs.Hubs
	names string
	// exists is true if there is a release that is not uninstalled.
	exists bool
	// known is true if the object made the release.
	known bool
	// take is spec.takeOwnership.
	take bool
	// ownerName is the owner's namespace and name, if it is an object that this controller sees.
	ownerName string
}

// refused returns why the release must not be changed; empty if it may be.
func (c claim) refused(name string) (reason, why string) {
	switch {
	case c.owner != "" && c.owner == c.uid && !c.hubs.Ours(c.hub):
		return v1alpha1.ReasonOwnedByOtherHub, fmt.Sprintf("release %s is read and not changed: %s. %s", name, c.hubs.Differ(c.hub), hubs.Advice(c.hub, "release", c.names))
	case !c.exists, c.owner == c.uid:
		return "", ""
	case c.owner == "" && !c.take && c.known:
		return v1alpha1.ReasonForeignTarget, fmt.Sprintf("release %s is not changed: this object made a release of that name, but %s. If it still is the same release, "+
			"set spec.takeOwnership to go on with it, or a deletion of this object leaves it; else choose another spec.releaseName or namespace", name, unmarked)
	case c.owner == "" && !c.take:
		return v1alpha1.ReasonForeignTarget, fmt.Sprintf("release %s exists and was not made by this object, but with Helm by hand or by another tool; "+
			"choose another spec.releaseName or namespace, or set spec.takeOwnership to take it over", name)
	case c.owner == "":
		return "", ""
	case c.known && c.ownerName == "":
		return v1alpha1.ReasonConflict, fmt.Sprintf("release %s was this object's and now belongs to %s. It is not taken back: two objects must not take turns. "+
			"If the other one is gone, delete this one with deletionPolicy Orphan and create it again with spec.takeOwnership", name, c.who())
	case c.known:
		return v1alpha1.ReasonConflict, fmt.Sprintf("release %s was this object's and now belongs to %s; it is not taken back: "+
			"two objects must not take turns. Delete one of the two with deletionPolicy Orphan", name, c.who())
	case c.ownerName != "":
		return v1alpha1.ReasonConflict, fmt.Sprintf("release %s belongs to %s; choose another spec.releaseName or namespace, "+
			"or delete that object with deletionPolicy Orphan and set spec.takeOwnership here", name, c.who())
	case !c.take && !c.hubs.Ours(c.hub):
		return v1alpha1.ReasonConflict, fmt.Sprintf("release %s belongs to %s. Choose another spec.releaseName or namespace, "+
			"or delete it there with deletionPolicy Orphan and set spec.takeOwnership here", name, c.who())
	case !c.take:
		return v1alpha1.ReasonConflict, fmt.Sprintf("release %s belongs to %s. Choose another spec.releaseName or namespace, "+
			"or, if the other one is gone, set spec.takeOwnership to take it over", name, c.who())
	default:
		return "", ""
	}
}

// who returns what is known of the owner.
func (c claim) who() string {
	switch {
	case c.ownerName != "":
		return fmt.Sprintf("OmniHelmRelease %s (UID %s)", c.ownerName, c.owner)
	case !c.hubs.Ours(c.hub):
		return redact.Line(fmt.Sprintf("the OmniHelmRelease with UID %s of another hub, %s (this hub is %s)", c.owner, c.hub, c.hubs.Own))
	default:
		return redact.Line(fmt.Sprintf("an OmniHelmRelease that is not here (UID %s): it was deleted, or is in another management cluster "+
			"or in a namespace that this controller does not watch", c.owner))
	}
}

// foreign returns why the release must not be changed; empty if it may be.
func (r *reconciler) foreign(ctx context.Context, s *scope, observed helm.Observed) (reason, why string, err error) {
	release := s.release
	c := claim{
		uid: string(release.UID), owner: marked(observed).Owner, hub: marked(observed).Hub, hubs: s.opened.Hubs, names: s.opened.Names,
		exists: !isAbsent(observed),
		known:  release.Status.Revision > 0, take: release.Spec.TakeOwnership,
	}

	if c.exists && c.owner != "" && c.owner != c.uid {
		if c.ownerName, err = r.ownerName(ctx, c.owner); err != nil {
			return "", "", err
		}
	}

	reason, why = c.refused(fullName(release))

	return reason, why, nil
}

// ownerName returns the namespace and name of the OmniHelmRelease with a UID; empty if this controller sees none. The UID is what
// somebody has written into the workload cluster.
func (r *reconciler) ownerName(ctx context.Context, uid string) (string, error) {
	owners := &v1alpha1.OmniHelmReleaseList{}
	if err := r.client.List(ctx, owners, client.MatchingFields{index.ByUID: uid}, client.UnsafeDisableDeepCopy); err != nil {
		return "", fmt.Errorf("look for the OmniHelmRelease with UID %s: %w", redact.Line(uid), err)
	}

	for i := range owners.Items {
		return owners.Items[i].Namespace + "/" + owners.Items[i].Name, nil
	}

	return "", nil
}

// mark completes the mark of this object's release with this hub, if it is from before marks named a hub, or from a hub
// that was taken over. That is one write of the record's labels, and no revision.
func (r *reconciler) mark(ctx context.Context, s *scope, observed helm.Observed) loop.Outcome {
	revision := marked(observed)
	if revision.Owner != string(s.release.UID) || revision.Hub == r.options.HubID {
		return loop.Proceed()
	}

	mark := helm.Mark{Revision: revision.Number, Owner: revision.Owner, From: revision.Hub, To: r.options.HubID}
	dryRun := mark
	dryRun.DryRun = true

	_, err := clusteraccess.Write(ctx, s.opened.Cluster, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, s.engine.Mark(ctx, mark)
	}, func(ctx context.Context) { _ = s.engine.Mark(ctx, dryRun) })

	switch {
	case interrupted(err):
		return loop.Wait(time.Second, v1alpha1.ReasonConflict, "%s", err)
	case err != nil:
		return r.explainCluster(s, err)
	}

	revision.Hub = mark.To
	if mark.From != "" && revision.UnderWay() {
		revision.Modified = r.options.Now() // as on the record
	}

	what := "release " + fullName(s.release)
	if mark.From == "" {
		what = fmt.Sprintf("revision %d of %s", mark.Revision, what)
	}

	hubs.Marked(r.events, s.release, what, mark.From)

	return loop.Proceed()
}
