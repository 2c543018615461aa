package omni

import (
	"context"
	"fmt"
	"time"

	"github.com/cosi-project/runtime/pkg/resource"
	"github.com/cosi-project/runtime/pkg/safe"
	"github.com/cosi-project/runtime/pkg/state"
	"github.com/siderolabs/omni/client/pkg/omni/resources"
	omnires "github.com/siderolabs/omni/client/pkg/omni/resources/omni"
)

// ResourceKey names a resource of Omni's default namespace.
type ResourceKey struct {
	ResourceType resource.Type
	ID           resource.ID
}

// KeyOf returns the key of a resource.
func KeyOf(item resource.Resource) ResourceKey {
	return ResourceKey{item.Metadata().Type(), item.Metadata().ID()}
}

// ListOf lists a cluster's resources of one type.
func ListOf(ctx context.Context, st state.State, resourceType resource.Type, cluster string) ([]resource.Resource, error) {
	list, err := st.List(ctx,
		resource.NewMetadata(resources.DefaultNamespace, resourceType, "", resource.VersionUndefined),
		state.WithLabelQuery(resource.LabelEqual(omnires.LabelCluster, cluster)),
	)
	if err != nil {
		return nil, fmt.Errorf("list %s of cluster %q: %w", KindOf(resourceType), cluster, err)
	}

	return list.Items, nil
}

// ReadCluster reads a Cluster. It returns nil without an error if there is none.
func ReadCluster(ctx context.Context, st state.State, cluster string) (*omnires.Cluster, error) {
	found, err := safe.StateGetByID[*omnires.Cluster](ctx, st, cluster)
	if state.IsNotFoundError(err) {
		return nil, nil //nolint:nilnil // none is no error
	}

	if err != nil {
		return nil, fmt.Errorf("read cluster %q: %w", cluster, err)
	}

	return found, nil
}

// CallTimeout is the timeout of every unary call and every List. A caller's earlier deadline wins. Calls take
// milliseconds; an Omni that is silent altogether is detected earlier (SuspectAfter, ProbeTimeout).
const CallTimeout = 15 * time.Second

// notFound is an error that state.IsNotFoundError matches.
type notFound struct{ error }

// NotFoundError implements the marker interface.
func (notFound) NotFoundError() {}

// NotFoundf returns an error that state.IsNotFoundError matches.
func NotFoundf(format string, args ...any) error {
	return notFound{fmt.Errorf(format, args...)}
}
