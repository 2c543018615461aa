package omniconnection

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/log"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/session"
)

// findAccess returns how people reach the clusters of an Omni; nil if Omni does not tell. Only `kubectl omni
// kubeconfig` needs it, so a connection is Ready without it, and a run waits no longer for it than for the connection.
func findAccess(ctx context.Context, connection *session.Session) *v1alpha1.OmniAccess {
	if connection.Client() == nil {
		return nil
	}

	ctx, stop := context.WithTimeout(ctx, reachTimeout)
	defer stop()

	access, err := connection.Access(ctx)
	if err != nil {
		log.FromContext(ctx).V(1).Info("Omni does not say how people reach its clusters", "reason", omni.Message(err))

		return nil
	}

	return &v1alpha1.OmniAccess{KubernetesProxyURL: access.KubernetesProxyURL, OIDCIssuerURL: access.OIDCIssuerURL, Account: access.Account}
}
