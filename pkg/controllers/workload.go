package controllers

import (
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/manager"

	"omni.texashpc.com/omni-cluster-operator/pkg/controllers/internal/metrics"
	"omni.texashpc.com/omni-cluster-operator/pkg/controllers/internal/workload"
	"omni.texashpc.com/omni-cluster-operator/pkg/controllers/kubeconfigsecret"
	"omni.texashpc.com/omni-cluster-operator/pkg/controllers/omnisecretsync"
)

// addWorkload adds the controllers that reach into workload clusters. They share
// one door, and with it the connections.
func addWorkload(mgr manager.Manager, objects *metrics.Objects, options Options) error {
	door := &workload.Door{Clusters: workload.NewClusters(nil), Client: mgr.GetClient(), Live: mgr.GetAPIReader()}

	if err := kubeconfigsecret.Add(mgr); err != nil {
		return fmt.Errorf("add the controller of kubeconfig Secrets: %w", err)
	}

	if err := omnisecretsync.Add(mgr, omnisecretsync.Options{
		Door: door, Objects: objects, Concurrency: options.Concurrency.OmniSecretSync,
	}); err != nil {
		return fmt.Errorf("add the controller of OmniSecretSync: %w", err)
	}

	return nil
}
