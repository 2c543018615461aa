package session

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/siderolabs/omni/client/pkg/client/management"

	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
)

// KubeconfigRequest is the identity and lifetime of a kubeconfig. All fields are required: without groups, Omni issues
// a token that it does not accept afterwards.
type KubeconfigRequest struct {
	// Cluster is the cluster's name in Omni.
	Cluster string
	// User and Groups are the bearer's identity in the workload cluster.
	User   string
	Groups []string
	// TTL is how long the token is valid; Omni refuses more than ten years.
	TTL time.Duration
}

// IssueKubeconfig makes Omni sign a kubeconfig for a service account: YAML with one cluster (no CA), one context and
// one user with a bearer token. It is a secret, and cannot be revoked: request it only to store it. The call is bounded
// by CallTimeout and needs the role Operator.
//
// Errors: ErrNoClusterUUID; else those of the call, see Classify.
func (s *Session) IssueKubeconfig(ctx context.Context, request KubeconfigRequest) ([]byte, error) {
	if s.client == nil {
		return nil, omni.ErrClosed
	}

	ctx, cancel := context.WithTimeout(ctx, omni.CallTimeout)
	defer cancel()

	kubeconfig, err := s.client.library.Management().WithCluster(request.Cluster).
		Kubeconfig(ctx, management.WithServiceAccount(request.TTL, request.User, request.Groups...))

	switch {
	case err != nil && strings.Contains(err.Error(), "failed to get cluster UUID"):
		return nil, fmt.Errorf("issue a kubeconfig for cluster %q: %w", request.Cluster, omni.ErrNoClusterUUID)
	case err != nil:
		return nil, fmt.Errorf("issue a kubeconfig for cluster %q: %w", request.Cluster, err)
	case len(kubeconfig) == 0:
		return nil, fmt.Errorf("issue a kubeconfig for cluster %q: Omni answered with nothing", request.Cluster)
	}

	return kubeconfig, nil
}
