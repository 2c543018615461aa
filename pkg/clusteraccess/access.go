// Package clusteraccess gives access to workload clusters: it turns the kubeconfig in a Secret into connections that
// OmniSecretSync and OmniHelmRelease may use.
//
// Every user who may write a Secret in the controller's namespace can write kubeconfigs, so they are not trusted. The
// steps of an access, each in the file of its name:
//
//   - access gives an object access: parent reads the OmniCluster, secret the kubeconfig, and enter bounds how many
//     reconciles are in one cluster, and in those of one namespace, at the same time;
//   - kubeconfig rebuilds it from an allow-list and refuses fields that would run a program, read a file or skip the
//     check of a certificate, before anything is sent;
//   - cache keeps one Cluster per kubeconfig, with connections of its own (cluster, transport); bounds limits
//     what answers may take, errors removes credentials;
//   - probe checks in the background whether the cluster answers, so that a dead one costs a worker a moment and not a
//     timeout, and does the same for a cluster that answers but hangs on reads and writes of its storage;
//   - identity determines which cluster answers, and decides whether it is the right one;
//   - cleanup decides what a deletion does there.
package clusteraccess

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/limiter"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/hubs"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/loop"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/sources"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/trigger"
)

const (
	// soon is when to retry while a probe of the cluster is under way.
	soon = 2 * time.Second
	// cleanupRetry is when a deletion retries with a cluster that does not answer.
	cleanupRetry = 15 * time.Second
)

// Access gives objects access to workload clusters. It is safe for concurrent use.
type Access struct {
	// Clusters keeps the connections.
	Clusters *Clusters
	// Client reads OmniClusters and the metadata of Secrets from the cache.
	Client client.Client
	// Live reads the content of Secrets without a cache. It refuses Secrets that may not be used; see package sources.
	Live client.Reader
	// HubID is the ID of this hub in ownership marks.
	HubID string
	// ServerAhead is by how much the clock of omni-apiserver, which says when a deletion began, is ahead of ours. Nil: they are the
	// same.
	ServerAhead func() time.Duration
	// Owners has the clusters of which this process sees in Omni that no other hub has them; see MakeAgain. Nil: it has none.
	Owners *hubs.Owners

	stuckCleanups stuckCleanups
}

// Requester is an object that needs access to a workload cluster.
type Requester struct {
	// Object is the OmniSecretSync or OmniHelmRelease.
	Object client.Object
	// Cluster is spec.clusterRef.name, Kubeconfig is spec.kubeconfigSecretRef, Known is status.clusterID, OtherHub is
	// status.otherHub.
	Cluster    string
	Kubeconfig v1alpha1.SecretKeyReference
	Known      string
	OtherHub   string
	// Unrecorded is true for PlanCleanup if the object's status records nothing that it made. Hardly ever is there anything
	// then, so the deletion waits for no cluster that cannot be used.
	Unrecorded bool
	// Wake wakes the object when a slot is free, or when its cluster answers again, if it had to wait for that. May be nil.
	Wake *trigger.Trigger[types.NamespacedName]
}

// RequesterOf returns the requester of an object, which the trigger wakes; the trigger may be nil.
func RequesterOf(object client.Object, wake *trigger.Trigger[types.NamespacedName]) Requester {
	switch o := object.(type) {
	case *v1alpha1.OmniSecretSync:
		return Requester{
			Object: o, Wake: wake, Cluster: o.Spec.ClusterRef.Name, Kubeconfig: o.Spec.KubeconfigSecretRef,
			Known: o.Status.ClusterID, OtherHub: o.Status.OtherHub,
		}
	case *v1alpha1.OmniHelmRelease:
		return Requester{
			Object: o, Wake: wake, Cluster: o.Spec.ClusterRef.Name, Kubeconfig: o.Spec.KubeconfigSecretRef,
			Known: o.Status.ClusterID, OtherHub: o.Status.OtherHub,
		}
	default:
		return Requester{Object: object, Wake: wake}
	}
}

// Opened is a workload cluster that an object may use, until Done.
type Opened struct {
	// Cluster is the connection to the cluster.
	Cluster *Cluster
	// ClusterID is the value for status.clusterID. Empty if unknown.
	ClusterID string
	// Kubeconfig is a digest of the kubeconfig.
	Kubeconfig string
	// Hubs are the hubs whose marks in the cluster count as the object's own.
	Hubs hubs.Hubs
	// Suspended is true if the OmniCluster is suspended: nothing new is released there. False for a deletion.
	Suspended bool
	// Names names the object that can name a previous hub, for messages.
	Names string

	release func()                         // releases the slot; nil in tests
	again   func(what string) loop.Outcome // of MakeAgain; nil in tests and for a deletion
}

// Done ends the use of the cluster. It may be called more than once.
func (o *Opened) Done() {
	if o != nil && o.release != nil {
		o.release()
	}
}

// MakeAgain is asked before something is made again that the object made before and that is absent now; what names it. It waits
// while this process does not see in Omni that no other hub has the cluster.
func (o *Opened) MakeAgain(what string) loop.Outcome {
	if o.again == nil {
		return loop.Proceed()
	}

	return o.again(what)
}

// Open opens the workload cluster of an object that is not being deleted: its OmniCluster exists and is not being
// deleted, its kubeconfig is safe, and the cluster answers and is the right one. Open adds a finalizer to the
// kubeconfig's Secret (v1alpha1.KubeconfigInUseFinalizer) so that a later deletion can clean up. If no slot of the
// cluster is free, the Outcome postpones. Opened is nil unless the Outcome continues.
func (a *Access) Open(ctx context.Context, requester Requester) (*Opened, loop.Outcome, error) {
	parent, err := a.parent(ctx, requester)
	if err != nil {
		return nil, loop.Outcome{}, err
	}

	switch hub := otherHub(parent, requester.OtherHub); {
	case parent == nil:
		return nil, loop.Wait(0, v1alpha1.ReasonClusterNotFound, "OmniCluster %q does not exist", requester.Cluster), nil
	case !parent.DeletionTimestamp.IsZero():
		return nil, loop.Wait(0, v1alpha1.ReasonClusterDeleting, "OmniCluster %q is being deleted; nothing new is done in its cluster", requester.Cluster), nil
	case hub != "":
		// Objects that the other hub removed there carry no mark any more.
		return nil, loop.Stall(v1alpha1.ReasonOwnedByOtherHub, "nothing is done in the workload cluster: %s. %s",
			a.ofOtherHub(requester, parent), hubs.Advice(hub, "cluster", names(requester, parent))), nil
	}

	if outcome := a.seenHere(requester, parent); !outcome.Continues() {
		return nil, outcome, nil
	}

	opened, err := a.connect(ctx, requester, parent)
	if err != nil {
		outcome, err := a.explain(nil, requester, err)

		return nil, outcome, err
	}

	opened.Suspended = parent.Spec.Suspend
	opened.again = func(what string) loop.Outcome { return a.seenNow(requester, parent, what) }

	release, outcome := a.Clusters.enter(requester)
	if release == nil {
		return nil, outcome, nil
	}

	return a.admit(ctx, opened, requester, release, parent)
}

// admit identifies the cluster that connect found for a requester that has a slot: that takes time, too. It releases the slot if
// the cluster may not be used. The parent may be nil.
func (a *Access) admit(ctx context.Context, opened *Opened, requester Requester, release func(), parent *v1alpha1.OmniCluster) (*Opened, loop.Outcome, error) {
	outcome, err := a.judge(ctx, opened, requester, parent)
	if err != nil || !outcome.Continues() {
		release()

		return nil, outcome, err
	}

	opened.release = release

	return opened, outcome, nil
}

// judge identifies the cluster, and decides whether it may be used: then it fills in ClusterID. The parent may be nil.
func (a *Access) judge(ctx context.Context, opened *Opened, requester Requester, parent *v1alpha1.OmniCluster) (loop.Outcome, error) {
	found, err := opened.Cluster.Identify(ctx)
	if err != nil {
		return a.explain(opened.Cluster, requester, err)
	}

	claim := Claim{
		Found: found, Known: requester.Known, Accept: requester.Object.GetAnnotations()[v1alpha1.AnnotationAcceptCluster],
	}
	if parent != nil {
		claim.OmniClusterID, claim.Observed = parent.Status.OmniClusterID, parent.Spec.ChangePolicy == v1alpha1.ChangePolicyObserve
	}

	if !requester.Object.GetDeletionTimestamp().IsZero() {
		claim.Deleting = requester.Kubeconfig.Name
	}

	verdict := claim.Judge()

	if verdict.Waits {
		return loop.Wait(0, v1alpha1.ReasonClusterNotInOmni, "%s", verdict.Message), nil
	}

	if !verdict.Right {
		return loop.Stall(v1alpha1.ReasonWrongCluster, "%s", verdict.Message), nil
	}

	opened.ClusterID = verdict.ClusterID

	reason := v1alpha1.ReasonConnected
	if verdict.ClusterID == "" {
		reason = v1alpha1.ReasonIdentityUnknown
	}

	return loop.Continue(reason, "%s", verdict.Message), nil
}

// explain turns an error of the access into an Outcome. Errors that pass by themselves wait, the others need a user.
// The Cluster may be nil.
func (a *Access) explain(cluster *Cluster, requester Requester, err error) (loop.Outcome, error) {
	switch {
	case errors.Is(err, ErrProbing):
		return loop.Postpone(soon, v1alpha1.ReasonClusterUnreachable, "waiting for the workload cluster to answer"), nil
	case errors.Is(err, errNoKubeconfig):
		return loop.Wait(0, v1alpha1.ReasonKubeconfigNotFound, "%s", err.Error()), nil
	case sources.Refused(err) != nil:
		return loop.Stall(v1alpha1.ReasonSecretProtected, "spec.kubeconfigSecretRef: %s", sources.Refused(err)), nil
	case errors.Is(err, ErrUnsafe), errors.Is(err, ErrInvalid):
		return loop.Stall(Reason(err), "Secret %q: %s", requester.Kubeconfig.Name, err.Error()), nil
	case cluster == nil: // an error of the management cluster
		return loop.Outcome{}, err
	case Reason(err) == v1alpha1.ReasonUnauthenticated:
		return loop.Stall(Reason(err), "Secret %q: %s", requester.Kubeconfig.Name, cluster.Message(err)), nil
	default:
		return loop.Wait(cluster.retryAfter(requester.name(), requester.waker()), Reason(err), "%s: %s", cluster.Server(), cluster.Message(err)), nil
	}
}

// The kinds of objects that work in workload clusters, as Waiting names them.
const (
	KindSecretSync  = "OmniSecretSync"
	KindHelmRelease = "OmniHelmRelease"
)

// Waiting returns how many runs of a kind wait for a slot of their workload cluster, and how many for one of their namespace. An
// object may wait for both, one after the other.
func (c *Clusters) Waiting(kind string) (forCluster, forNamespace int) {
	c.once.Do(c.makeLimiters)

	return c.limiter.Waiting(kind), c.share(kind).Waiting(kind)
}

// enter takes one of the slots of a requester's cluster, and one of those that its namespace has for its kind, until release is
// called, which may be called more than once.
// Without a slot, release is nil and the reconcile ends; the object's status stays, because nothing is wrong.
//
// The slots are those of the OmniCluster that the objects name: all kubeconfigs for it share them, however often they
// change.
//
// What a kubeconfig or a server reports about itself would not separate clusters better (behind Omni all have one
// address), and can be forged: with an unverified token of another cluster, or a server that shows another cluster's
// UID, any user could take the slots of others. So only objects of one namespace share slots. A user who points several
// OmniClusters at one server that hangs gets slots for each, which is no more than with several such servers.
func (c *Clusters) enter(requester Requester) (release func(), outcome loop.Outcome) {
	c.once.Do(c.makeLimiters)

	waiter := limiter.Waiter{Name: requester.name(), Kind: requester.kind(), Wake: requester.waker()}

	exitCluster, ok := c.limiter.TryAcquire(keyOf(requester), 1, waiter)
	if !ok {
		return nil, notNow("other objects in the workload cluster come first")
	}

	// After the cluster: who waits for that takes nothing from its namespace.
	exitNamespace, ok := c.share(waiter.Kind).TryAcquire(requester.Object.GetNamespace(), 1, waiter)
	if !ok {
		exitCluster()

		return nil, notNow("other objects of the namespace come first")
	}

	return func() { exitCluster(); exitNamespace() }, loop.Proceed()
}

// notNow postpones a reconcile without a slot.
func notNow(why string) loop.Outcome {
	return loop.Postpone(limiter.Jitter(limiter.WakePause), v1alpha1.ReasonProgressing, "%s", why)
}

// name identifies a requester: objects of different kinds may have the same name.
func (r Requester) name() string { return fmt.Sprintf("%T %s", r.Object, r.Object.GetName()) }

// waker returns what wakes the object, without holding the object.
func (r Requester) waker() func() {
	name, wake := client.ObjectKeyFromObject(r.Object), r.Wake

	return func() {
		if wake != nil {
			wake.Fire(name)
		}
	}
}

// kind is the kind of the requester's object.
func (r Requester) kind() string {
	if _, ok := r.Object.(*v1alpha1.OmniSecretSync); ok {
		return KindSecretSync
	}

	return KindHelmRelease
}

// share returns the limiter of a kind, by namespace. Each kind has workers of its own.
func (c *Clusters) share(kind string) *limiter.Limiter[string] {
	if kind == KindSecretSync {
		return c.syncs
	}

	return c.releases
}

// makeLimiters makes the limiters, when the numbers are known.
func (c *Clusters) makeLimiters() {
	c.limiter = limiter.New(limiter.Limits[types.NamespacedName]{PerKey: int64(c.Runs)})
	c.syncs = limiter.New(limiter.Limits[string]{PerKey: int64(c.SyncRuns)})
	c.releases = limiter.New(limiter.Limits[string]{PerKey: int64(c.ReleaseRuns)})
}
