package clusteraccess

import (
	"context"
	"time"

	"omni.texashpc.com/omni-cluster-operator/pkg/foreign/dialguard"
)

// Look asks the server of a kubeconfig for its version, with a connection of its own that is closed then, and returns why that is
// not answered; nil if it is. Nothing of it is kept, and no slot is taken. The caller sets the deadline by the context.
//
// Errors: ErrUnsafe and ErrInvalid, before anything is sent, or those of the request, without the credentials; see KeyDeleted
// and Reason.
func Look(ctx context.Context, kubeconfig []byte, guard dialguard.Guard) error {
	cluster, err := newCluster(ctx, kubeconfig, time.Now, guard)
	if err != nil {
		return err
	}
	defer cluster.close()

	if _, err := cluster.get(ctx, "/version"); err != nil {
		return cluster.secrets.Error(err)
	}

	return nil
}
