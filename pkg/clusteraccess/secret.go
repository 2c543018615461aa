package clusteraccess

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/foreign"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/hubs"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/index"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/sources"
)

// errNoKubeconfig means that the Secret or its key does not exist.
var errNoKubeconfig = errors.New("no kubeconfig")

// errNobodyWrites is the part of an errNoKubeconfig that no export will mend.
var errNobodyWrites = errors.New("no OmniKubeconfigExport in the namespace has it as spec.targetSecretRef")

// connect reads the kubeconfig without a cache and returns its cluster, of which nothing has been asked: it may be used after admit.
// A Secret that no OmniKubeconfigExport wrote for the OmniCluster may name a previous hub.
func (a *Access) connect(ctx context.Context, requester Requester, parent *v1alpha1.OmniCluster) (*Opened, error) {
	accepted, err := a.hubs(ctx, parent)
	if err != nil {
		return nil, err
	}

	name := client.ObjectKey{Namespace: requester.Object.GetNamespace(), Name: requester.Kubeconfig.Name}
	key := Key{NamespacedName: name, SecretKey: cmp.Or(requester.Kubeconfig.Key, v1alpha1.DefaultKubeconfigKey)}
	from := sources.Reference{Namespace: name.Namespace, Name: name.Name, Key: key.SecretKey}

	secret, err := sources.Secret(ctx, a.Live, from)
	if sources.Missing(err) != nil {
		a.Clusters.Forget(name)

		return nil, a.missing(ctx, requester, name, err)
	}

	if sources.Refused(err) != nil {
		return nil, a.refuse(ctx, secret, err)
	}

	if err != nil {
		return nil, err
	}

	if accepted.Previous == "" && (parent == nil || secret.Labels[v1alpha1.LabelExportUID] == "") {
		accepted = hubs.Of(a.HubID, secret)
	}

	content, err := sources.ValueOf(secret, from)
	if err != nil {
		return nil, a.missing(ctx, requester, name, fmt.Errorf("%w (spec.kubeconfigSecretRef.key)", err))
	}

	cluster, err := a.Clusters.Get(ctx, key, content)
	if err != nil {
		return nil, err
	}

	// Only for a Secret that holds a kubeconfig, and before anything is sent.
	if requester.Object.GetDeletionTimestamp().IsZero() {
		if err := a.hold(ctx, secret); err != nil {
			return nil, err
		}
	}

	return &Opened{Cluster: cluster, Kubeconfig: cluster.digest, Hubs: accepted, Names: names(requester, parent)}, nil
}

// missing returns the error for a kubeconfig that is not there: why, and which object is to write it.
func (a *Access) missing(ctx context.Context, requester Requester, secret types.NamespacedName, why error) error {
	exports := &v1alpha1.OmniKubeconfigExportList{}
	if err := a.Client.List(ctx, exports, client.MatchingFields{index.ByTargetSecret: secret.String()}); err != nil {
		return fmt.Errorf("list the exports into Secret %q: %w", secret.Name, err)
	}

	// The cache lists in any order; the text is the same each time.
	slices.SortFunc(exports.Items, func(a, b v1alpha1.OmniKubeconfigExport) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})

	for i := range exports.Items {
		if export := &exports.Items[i]; export.DeletionTimestamp.IsZero() {
			return fmt.Errorf("%w: %w; OmniKubeconfigExport %q is to write it: see its conditions", errNoKubeconfig, why, export.Name)
		}
	}

	remedy := ": create one, or the Secret"
	if !requester.Object.GetDeletionTimestamp().IsZero() {
		remedy = ""
	}

	return fmt.Errorf("%w: %w, and %w%s", errNoKubeconfig, why, errNobodyWrites, remedy)
}

// hold adds the finalizer, so that the Secret outlives the objects that need it to clean up.
func (a *Access) hold(ctx context.Context, secret *corev1.Secret) error {
	if !secret.DeletionTimestamp.IsZero() {
		return nil
	}

	if err := a.change(ctx, secret, controllerutil.AddFinalizer); err != nil {
		return fmt.Errorf("hold Secret %q: %w", secret.Name, err)
	}

	return nil
}

// refuse rejects a Secret that may not be used, and removes our finalizer from it: the finalizer would hinder the
// Secret's owners, and was added by mistake, or before the Secret was protected. It returns why, or an error of the
// management cluster.
func (a *Access) refuse(ctx context.Context, secret *corev1.Secret, why error) error {
	a.Clusters.Forget(client.ObjectKeyFromObject(secret))

	if err := a.change(ctx, secret, controllerutil.RemoveFinalizer); err != nil {
		return fmt.Errorf("let go of Secret %q: %w", secret.Name, err)
	}

	return why
}

// change adds or removes the finalizer of the Secret in the version that was read.
func (a *Access) change(ctx context.Context, secret *corev1.Secret, how func(client.Object, string) bool) error {
	return sources.ChangeFinalizer(ctx, a.Client, a.Live, secret.ObjectMeta, v1alpha1.KubeconfigInUseFinalizer, how) // the callers wrap it
}

// claims are the needed parts of a token of Omni. They are read without checking the signature: Omni's proxy checks it,
// and accepts the token for this cluster only.
// An export reads its own tokens strictly (omnikubeconfigexport/token.go): there a claim that is missing is an error.
type claims struct {
	ClusterUUID string `json:"cluster_uuid"`
	Expires     int64  `json:"exp"`
}

// claimsLimits bound the claims of a token. Those of Omni have a few hundred bytes.
//
//nolint:gochecknoglobals // a constant
var claimsLimits = foreign.Limits{Bytes: 16 << 10, Depth: 16, Nodes: 1000, Expanded: 16 << 10}

// readClaims reads the claims of a token; a token of another form, or with claims that are too large, has none. What can be
// no ID of a cluster is left out.
func readClaims(token string) claims {
	var found claims

	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return found
	}

	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil || !json.Valid(payload) {
		return claims{}
	}

	// JSON never waits for other texts, so there is nothing to interrupt.
	if foreign.Unmarshal(context.Background(), payload, claimsLimits, &found) != nil {
		return claims{}
	}

	if !usable(found.ClusterUUID) {
		found.ClusterUUID = ""
	}

	return found
}

// expiry returns when the token expires; zero if unknown.
func (c claims) expiry() time.Time {
	if c.Expires <= 0 {
		return time.Time{}
	}

	return time.Unix(c.Expires, 0).UTC()
}
