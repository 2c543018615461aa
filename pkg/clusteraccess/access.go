package clusteraccess

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/hubs"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/index"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/loop"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/sources"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/trigger"
)

const (
	// soon is when to look again at a cluster that is being asked.
	soon = 2 * time.Second
	// later is when to look again at a cluster that does not answer.
	later = 15 * time.Second
)

// Access lets objects into workload clusters. It is safe for concurrent use.
type Access struct {
	// Clusters keeps the connections.
	Clusters *Clusters
	// Client reads OmniClusters and the metadata of Secrets from the cache.
	Client client.Client
	// Live reads the content of Secrets, past every cache. It refuses those that may not be used; see package sources.
	Live client.Reader
	// HubID is the ID of this hub in marks of ownership.
	HubID string

	troubles troubles
}

// Requester is an object that wants in.
type Requester struct {
	// Object is the OmniSecretSync or OmniHelmRelease.
	Object client.Object
	// Cluster is spec.clusterRef.name, Kubeconfig is spec.kubeconfigSecretRef, Known is status.clusterID.
	Cluster    string
	Kubeconfig v1alpha1.SecretKeyReference
	Known      string
	// Wake wakes the object when it can come in, if it could not because of others. May be nil.
	Wake *trigger.Trigger[types.NamespacedName]
}

// Opened is a workload cluster that an object may use, until Done.
type Opened struct {
	// Cluster is the way in.
	Cluster *Cluster
	// ClusterID is what to write into status.clusterID. Empty if unknown.
	ClusterID string
	// Hubs are those whose marks in the cluster count as the object's own.
	Hubs hubs.Hubs
	// Names is what can name a previous hub, for people.
	Names string

	leave func() // gives the slot back; nil in tests
}

// Open finds the workload cluster of an object that is not being deleted: its
// OmniCluster exists and stays, its kubeconfig is safe, the cluster answers and is
// the right one. The kubeconfig's Secret is held (v1alpha1.KubeconfigInUseFinalizer)
// so that a later deletion can clean up. If enough runs are in the cluster already,
// the Outcome postpones. Opened is nil unless the Outcome continues.
func (d *Access) Open(ctx context.Context, requester Requester) (*Opened, loop.Outcome, error) {
	parent, err := d.parent(ctx, requester)
	if err != nil {
		return nil, loop.Outcome{}, err
	}

	switch {
	case parent == nil:
		return nil, loop.Wait(0, v1alpha1.ReasonClusterNotFound, "OmniCluster %q does not exist", requester.Cluster), nil
	case !parent.DeletionTimestamp.IsZero():
		return nil, loop.Wait(0, v1alpha1.ReasonClusterDeleting, "OmniCluster %q is being deleted; nothing new is done in its cluster", requester.Cluster), nil
	case ofOtherHub(parent) != "":
		// What the other hub removed there carries no mark any more.
		return nil, loop.Stall(v1alpha1.ReasonOwnedByOtherHub, "nothing is done in the workload cluster: %s", ofOtherHub(parent)), nil
	}

	accepted, err := d.hubs(ctx, parent)
	if err != nil {
		return nil, loop.Outcome{}, err
	}

	cluster, err := d.connect(ctx, requester, parent, &accepted)
	if err != nil {
		outcome, err := d.explain(cluster, requester, err)

		return nil, outcome, err
	}

	leave, outcome := d.Clusters.enter(requester)
	if leave == nil {
		return nil, outcome, nil
	}

	opened, outcome, err := d.admit(ctx, cluster, requester, leave, parent.Status.OmniClusterID)
	if opened != nil {
		opened.Hubs, opened.Names = accepted, names(requester, parent)
	}

	return opened, outcome, err
}

// ofOtherHub is what an OmniCluster says if it is the copy of another hub's; empty if it is not.
func ofOtherHub(cluster *v1alpha1.OmniCluster) string {
	stalled := apimeta.FindStatusCondition(cluster.Status.Conditions, v1alpha1.ConditionStalled)
	if stalled == nil || stalled.Status != metav1.ConditionTrue || stalled.Reason != v1alpha1.ReasonOwnedByOtherHub {
		return ""
	}

	return stalled.Message
}

// names is what can name a previous hub for a requester. The parent may be nil.
func names(requester Requester, parent *v1alpha1.OmniCluster) string {
	if parent == nil {
		return fmt.Sprintf("Secret %q", requester.Kubeconfig.Name)
	}

	return fmt.Sprintf("OmniConnection %q", parent.Spec.ConnectionRef.Name)
}

// hubs are those whose marks in the cluster of an OmniCluster, which may be nil, count as the requester's own.
func (d *Access) hubs(ctx context.Context, parent *v1alpha1.OmniCluster) (hubs.Hubs, error) {
	if parent == nil {
		return hubs.Of(d.HubID, nil), nil
	}

	return hubs.OfCluster(ctx, d.Client, d.HubID, parent)
}

// admit lets a requester in who has a slot: to ask the cluster takes a moment, too. Who
// is not let in has left the slot.
func (d *Access) admit(ctx context.Context, cluster *Cluster, requester Requester, leave func(), omniClusterID string) (*Opened, loop.Outcome, error) {
	opened, outcome, err := d.judge(ctx, cluster, requester, omniClusterID)
	if opened == nil {
		leave()

		return nil, outcome, err
	}

	opened.leave = leave

	return opened, outcome, err
}

// judge asks the cluster who it is, and decides.
func (d *Access) judge(ctx context.Context, cluster *Cluster, requester Requester, omniClusterID string) (*Opened, loop.Outcome, error) {
	found, err := cluster.Identify(ctx)
	if err != nil {
		outcome, err := d.explain(cluster, requester, err)

		return nil, outcome, err
	}

	claim := Claim{
		Found: found, OmniClusterID: omniClusterID, Known: requester.Known,
		Accept: requester.Object.GetAnnotations()[v1alpha1.AnnotationAcceptCluster],
	}
	if !requester.Object.GetDeletionTimestamp().IsZero() {
		claim.Leaving = requester.Kubeconfig.Name
	}

	verdict := claim.Judge()

	if verdict.Waits {
		return nil, loop.Wait(0, v1alpha1.ReasonClusterNotInOmni, "%s", verdict.Message), nil
	}

	if !verdict.Right {
		return nil, loop.Stall(v1alpha1.ReasonWrongCluster, "%s", verdict.Message), nil
	}

	reason := v1alpha1.ReasonConnected
	if verdict.ClusterID == "" {
		reason = v1alpha1.ReasonIdentityUnknown
	}

	return &Opened{Cluster: cluster, ClusterID: verdict.ClusterID}, loop.Continue(reason, "%s", verdict.Message), nil
}

// errNoKubeconfig says that the Secret or its key is not there.
var errNoKubeconfig = errors.New("no kubeconfig")

// connect reads the kubeconfig live and finds its Cluster. A Secret that no export wrote for the OmniCluster may name a
// previous hub.
func (d *Access) connect(ctx context.Context, requester Requester, parent *v1alpha1.OmniCluster, accepted *hubs.Hubs) (*Cluster, error) {
	name := client.ObjectKey{Namespace: requester.Object.GetNamespace(), Name: requester.Kubeconfig.Name}
	key := Key{NamespacedName: name, SecretKey: cmp.Or(requester.Kubeconfig.Key, v1alpha1.DefaultKubeconfigKey)}
	from := sources.Reference{Namespace: name.Namespace, Name: name.Name, Key: key.SecretKey}

	secret, err := sources.Secret(ctx, d.Live, from)
	if sources.Missing(err) != nil {
		d.Clusters.Forget(name)

		missing := fmt.Errorf("%w: %w", errNoKubeconfig, err)
		if requester.Object.GetDeletionTimestamp().IsZero() {
			missing = fmt.Errorf("%w%s", missing, d.whoWrites(ctx, name))
		}

		return nil, missing
	}

	if sources.Refused(err) != nil {
		return nil, d.refuse(ctx, secret, err)
	}

	if err != nil {
		return nil, err
	}

	if accepted.Previous == "" && (parent == nil || secret.Labels[v1alpha1.LabelExportUID] == "") {
		*accepted = hubs.Of(d.HubID, secret)
	}

	content, err := sources.ValueOf(secret, from)
	if err != nil {
		return nil, fmt.Errorf("%w: %w (spec.kubeconfigSecretRef.key)", errNoKubeconfig, err)
	}

	cluster, err := d.Clusters.Get(ctx, key, content)
	if err != nil || !requester.Object.GetDeletionTimestamp().IsZero() {
		return cluster, err
	}

	// Only a Secret that holds a kubeconfig, and before anything is sent.
	if err := d.hold(ctx, secret); err != nil {
		return nil, err
	}

	return cluster, nil
}

// whoWrites says where a Secret that does not exist is to come from. What cannot be
// listed now is left out.
func (d *Access) whoWrites(ctx context.Context, secret types.NamespacedName) string {
	exports := &v1alpha1.OmniKubeconfigExportList{}

	err := d.Client.List(ctx, exports, client.InNamespace(secret.Namespace), client.MatchingFields{index.ByTargetSecret: secret.Name})

	switch {
	case err != nil:
		return ""
	case len(exports.Items) == 0:
		return ", and no OmniKubeconfigExport in the namespace has it as spec.targetSecretRef: create one, or the Secret"
	default:
		return fmt.Sprintf("; OmniKubeconfigExport %q is to write it: see its conditions", exports.Items[0].Name)
	}
}

// explain turns what went wrong on the way in into an Outcome. What heals by
// itself waits, the rest needs somebody. The Cluster may be nil.
func (d *Access) explain(cluster *Cluster, requester Requester, err error) (loop.Outcome, error) {
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
		return loop.Wait(later, Reason(err), "%s: %s", cluster.Server(), cluster.Message(err)), nil
	}
}

// parent reads the OmniCluster; nil if there is none.
func (d *Access) parent(ctx context.Context, requester Requester) (*v1alpha1.OmniCluster, error) {
	parent := &v1alpha1.OmniCluster{}

	err := d.Client.Get(ctx, client.ObjectKey{Namespace: requester.Object.GetNamespace(), Name: requester.Cluster}, parent)
	if apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // no parent is no error
	}

	if err != nil {
		return nil, fmt.Errorf("read OmniCluster %q: %w", requester.Cluster, err)
	}

	return parent, nil
}
