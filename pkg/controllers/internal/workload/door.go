package workload

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/controllers/internal/loop"
	"omni.texashpc.com/omni-cluster-operator/pkg/controllers/internal/sources"
	"omni.texashpc.com/omni-cluster-operator/pkg/controllers/internal/wake"
)

const (
	// soon is when to look again at a cluster that is being asked.
	soon = 2 * time.Second
	// later is when to look again at a cluster that does not answer.
	later = 15 * time.Second
)

// Door lets objects into workload clusters. It is safe for concurrent use.
type Door struct {
	// Clusters keeps the connections.
	Clusters *Clusters
	// Client reads OmniClusters and the metadata of Secrets from the cache.
	Client client.Client
	// Live reads the content of Secrets, past every cache. It refuses those that may not be used; see package sources.
	Live client.Reader

	troubles troubles
}

// Guest is an object that wants in.
type Guest struct {
	// Object is the OmniSecretSync or OmniHelmRelease.
	Object client.Object
	// Cluster is spec.clusterRef.name, Kubeconfig is spec.kubeconfigSecretRef, Known is status.clusterID.
	Cluster    string
	Kubeconfig v1alpha1.SecretKeyReference
	Known      string
	// Wake wakes the object when it can come in, if it could not because of others. May be nil.
	Wake *wake.Bell[types.NamespacedName]
}

// Opened is a workload cluster that an object may use, until Done.
type Opened struct {
	// Cluster is the way in.
	Cluster *Cluster
	// ClusterID is what to write into status.clusterID. Empty if unknown.
	ClusterID string

	leave func() // gives the seat back; nil in tests
}

// Open finds the workload cluster of an object that is not being deleted: its
// OmniCluster exists and stays, its kubeconfig is safe, the cluster answers and is
// the right one. The kubeconfig's Secret is held (v1alpha1.KubeconfigInUseFinalizer)
// so that a later deletion can clean up. If enough runs are in the cluster already,
// the Outcome postpones. Opened is nil unless the Outcome continues.
func (d *Door) Open(ctx context.Context, guest Guest) (*Opened, loop.Outcome, error) {
	parent, err := d.parent(ctx, guest)
	if err != nil {
		return nil, loop.Outcome{}, err
	}

	switch {
	case parent == nil:
		return nil, loop.Wait(0, v1alpha1.ReasonClusterNotFound, "OmniCluster %q does not exist", guest.Cluster), nil
	case !parent.DeletionTimestamp.IsZero():
		return nil, loop.Wait(0, v1alpha1.ReasonClusterDeleting, "OmniCluster %q is being deleted; nothing new is done in its cluster", guest.Cluster), nil
	}

	cluster, err := d.connect(ctx, guest, true)
	if err != nil {
		outcome, err := d.explain(cluster, guest, err)

		return nil, outcome, err
	}

	leave, outcome := d.Clusters.sit(guest)
	if leave == nil {
		return nil, outcome, nil
	}

	return d.admit(ctx, cluster, guest, leave, parent.Status.OmniClusterID)
}

// admit lets a guest in who has a seat: to ask the cluster takes a moment, too. Who
// is not let in has left the seat.
func (d *Door) admit(ctx context.Context, cluster *Cluster, guest Guest, leave func(), omniClusterID string) (*Opened, loop.Outcome, error) {
	opened, outcome, err := d.judge(ctx, cluster, guest, omniClusterID)
	if opened == nil {
		leave()

		return nil, outcome, err
	}

	opened.leave = leave

	return opened, outcome, err
}

// judge asks the cluster who it is, and decides.
func (d *Door) judge(ctx context.Context, cluster *Cluster, guest Guest, omniClusterID string) (*Opened, loop.Outcome, error) {
	found, err := cluster.Identify(ctx)
	if err != nil {
		outcome, err := d.explain(cluster, guest, err)

		return nil, outcome, err
	}

	verdict := Claim{
		Found: found, OmniClusterID: omniClusterID, Known: guest.Known,
		Accept: guest.Object.GetAnnotations()[v1alpha1.AnnotationAcceptCluster],
	}.Judge()

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

// connect reads the kubeconfig live and finds its Cluster.
func (d *Door) connect(ctx context.Context, guest Guest, hold bool) (*Cluster, error) {
	name := client.ObjectKey{Namespace: guest.Object.GetNamespace(), Name: guest.Kubeconfig.Name}
	key := Key{NamespacedName: name, SecretKey: cmp.Or(guest.Kubeconfig.Key, v1alpha1.DefaultKubeconfigKey)}
	secret := &corev1.Secret{}

	err := d.Live.Get(ctx, name, secret)
	if apierrors.IsNotFound(err) {
		d.Clusters.Forget(name)

		return nil, fmt.Errorf("%w: Secret %q does not exist", errNoKubeconfig, name.Name)
	}

	if sources.Refused(err) != nil {
		return nil, d.refuse(ctx, secret, err)
	}

	if err != nil {
		return nil, fmt.Errorf("read Secret %q: %w", name.Name, err)
	}

	content, found := secret.Data[key.SecretKey]
	if !found {
		return nil, fmt.Errorf("%w: Secret %q has no key %q", errNoKubeconfig, name.Name, key.SecretKey)
	}

	cluster, err := d.Clusters.Get(ctx, key, content)
	if err != nil || !hold {
		return cluster, err
	}

	// Only a Secret that holds a kubeconfig, and before anything is sent.
	if err := d.hold(ctx, secret); err != nil {
		return nil, err
	}

	return cluster, nil
}

// explain turns what went wrong on the way in into an Outcome. What heals by
// itself waits, the rest needs somebody. The Cluster may be nil.
func (d *Door) explain(cluster *Cluster, guest Guest, err error) (loop.Outcome, error) {
	switch {
	case errors.Is(err, ErrProbing):
		return loop.Postpone(soon, v1alpha1.ReasonClusterUnreachable, "waiting for the workload cluster to answer"), nil
	case errors.Is(err, errNoKubeconfig):
		return loop.Wait(0, v1alpha1.ReasonKubeconfigNotFound, "%s; an OmniKubeconfigExport writes it", err.Error()), nil
	case sources.Refused(err) != nil:
		return loop.Stall(v1alpha1.ReasonSecretProtected, "spec.kubeconfigSecretRef: %s", sources.Refused(err)), nil
	case errors.Is(err, ErrUnsafe), errors.Is(err, ErrInvalid):
		return loop.Stall(Reason(err), "Secret %q: %s", guest.Kubeconfig.Name, err.Error()), nil
	case cluster == nil: // an error of the management cluster
		return loop.Outcome{}, err
	case Reason(err) == v1alpha1.ReasonUnauthenticated:
		return loop.Stall(Reason(err), "Secret %q: %s", guest.Kubeconfig.Name, cluster.Message(err)), nil
	default:
		return loop.Wait(later, Reason(err), "%s: %s", cluster.Server(), cluster.Message(err)), nil
	}
}

// parent reads the OmniCluster; nil if there is none.
func (d *Door) parent(ctx context.Context, guest Guest) (*v1alpha1.OmniCluster, error) {
	parent := &v1alpha1.OmniCluster{}

	err := d.Client.Get(ctx, client.ObjectKey{Namespace: guest.Object.GetNamespace(), Name: guest.Cluster}, parent)
	if apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // no parent is no error
	}

	if err != nil {
		return nil, fmt.Errorf("read OmniCluster %q: %w", guest.Cluster, err)
	}

	return parent, nil
}
