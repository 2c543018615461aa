// Package omniconnection describes how the API server serves OmniConnections.
package omniconnection

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/validation"
	"omni.texashpc.com/omni-cluster-operator/pkg/registry/internal/kit"
	"omni.texashpc.com/omni-cluster-operator/pkg/words"
)

// Descriptor describes OmniConnection. now is the time from which the expiry is counted. The delete guard looks at the clusters.
func Descriptor(now func() time.Time, clusters kit.Clusters) *kit.Descriptor[*v1alpha1.OmniConnection] {
	return &kit.Descriptor[*v1alpha1.OmniConnection]{
		Kind:      "OmniConnection",
		Plural:    "omniconnections",
		Singular:  "omniconnection",
		ShortName: "oconn",
		New:       func() *v1alpha1.OmniConnection { return &v1alpha1.OmniConnection{} },
		NewList:   func() runtime.Object { return &v1alpha1.OmniConnectionList{} },
		Spec:      kit.PartOf(func(o *v1alpha1.OmniConnection) *v1alpha1.OmniConnectionSpec { return &o.Spec }),
		Status:    kit.PartOf(func(o *v1alpha1.OmniConnection) *v1alpha1.OmniConnectionStatus { return &o.Status }),
		Validation: kit.Validation[*v1alpha1.OmniConnection]{
			Create: validation.ValidateOmniConnection,
			Update: validation.ValidateOmniConnectionUpdate,
		},
		Warnings: validation.WarningsForOmniConnection,
		DeleteGuard: func(ctx context.Context, o *v1alpha1.OmniConnection) error {
			return confirmDeletion(ctx, o, clusters)
		},
		Columns: columns(now),
	}
}

func columns(now func() time.Time) []kit.Column[*v1alpha1.OmniConnection] {
	return []kit.Column[*v1alpha1.OmniConnection]{
		{
			Name:        "Endpoint",
			Description: "URL of Omni.",
			Cell:        func(o *v1alpha1.OmniConnection) any { return o.Spec.Endpoint },
		},
		{
			Name:        "Omni",
			Description: "Version of Omni.",
			Wide:        true,
			Cell:        func(o *v1alpha1.OmniConnection) any { return omniVersion(o) },
		},
		{
			Name:        "Service Account",
			Description: "Name of the Omni service account whose key is used.",
			Cell:        func(o *v1alpha1.OmniConnection) any { return serviceAccount(o) },
		},
		{
			Name:        "Expires",
			Description: "When the service account key expires.",
			Cell:        func(o *v1alpha1.OmniConnection) any { return expires(o, now()) },
		},
	}
}

func omniVersion(o *v1alpha1.OmniConnection) string {
	if o.Status.Omni == nil {
		return kit.OrNone("")
	}

	return kit.OrNone(o.Status.Omni.Version)
}

func serviceAccount(o *v1alpha1.OmniConnection) string {
	if o.Status.ServiceAccount == nil {
		return kit.OrNone("")
	}

	return kit.OrNone(o.Status.ServiceAccount.Name)
}

func expires(o *v1alpha1.OmniConnection, now time.Time) string {
	if o.Status.ServiceAccount == nil {
		return kit.OrNone("")
	}

	return kit.Until(o.Status.ServiceAccount.ExpirationTime, now)
}

// maxNamed is how many clusters a refusal names.
const maxNamed = 5

// confirmDeletion refuses to delete a connection that OmniClusters use, unless its annotation confirm-deletion has its name. A
// deletion cannot be taken back: the connection would go with the last of them, and until then nobody could keep it. Clusters
// that are being deleted as well do not count, and the deletion of a namespace is never refused.
func confirmDeletion(ctx context.Context, o *v1alpha1.OmniConnection, clusters kit.Clusters) error {
	if v1alpha1.IsDeletionConfirmed(o) || kit.ByNamespaceController(ctx) {
		return nil
	}

	// The error is returned unwrapped: a wrapped "try again later" would become an internal server error.
	users, err := usersOf(ctx, o.Name, clusters)
	if err != nil || len(users) == 0 {
		return err
	}

	return apierrors.NewForbidden(v1alpha1.Resource("omniconnections"), o.Name, fmt.Errorf(
		"it stays, because OmniClusters use it: %s. It can be deleted once they are being deleted, too. To delete it now, annotate it with %s=%s first: "+
			"it then goes with the last of them, and that cannot be taken back",
		words.Few(users, maxNamed, ", "), v1alpha1.AnnotationConfirmDeletion, o.Name))
}

// usersOf names the OmniClusters that use a connection and are not being deleted.
func usersOf(ctx context.Context, connection string, clusters kit.Clusters) ([]string, error) {
	found, err := kit.ListClusters(ctx, clusters, &metainternalversion.ListOptions{
		FieldSelector: fields.OneTermEqualSelector(v1alpha1.ConnectionRefField, connection),
	})
	if err != nil {
		return nil, err
	}

	var users []string

	for i := range found {
		if cluster := &found[i]; cluster.Spec.ConnectionRef.Name == connection && cluster.DeletionTimestamp == nil {
			users = append(users, strconv.Quote(cluster.Name))
		}
	}

	slices.Sort(users)

	return users, nil
}
