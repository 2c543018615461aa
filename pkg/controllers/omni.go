package controllers

import (
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/manager"

	"omni.texashpc.com/omni-cluster-operator/pkg/controllers/omnicluster"
	"omni.texashpc.com/omni-cluster-operator/pkg/controllers/omniconnection"
	"omni.texashpc.com/omni-cluster-operator/pkg/controllers/omnirolloutpolicy"
)

// addOmni adds the controllers that keep the connections to Omni and change clusters there.
func addOmni(mgr manager.Manager, shared shared, options Options) error {
	if err := omniconnection.Add(mgr, omniconnection.Options{
		Pool:          shared.pool,
		Objects:       shared.objects,
		Calls:         shared.calls,
		HealthChanged: shared.connectionHealth,
		Endpoints:     options.Endpoints,
		Namespace:     options.Namespace,
		Skew:          options.Skew,
		Concurrency:   options.Concurrency.OmniConnection,
	}); err != nil {
		return fmt.Errorf("add the controller of OmniConnection: %w", err)
	}

	if err := omnicluster.Add(mgr, omnicluster.Options{
		Pool:              shared.pool,
		Objects:           shared.objects,
		HealthChanged:     shared.clusterHealth,
		ClusterChanged:    shared.clusterChanged,
		SettleTime:        options.SettleTime,
		JoinSettleTime:    options.JoinSettleTime,
		ManagementCluster: options.ManagementCluster,
		HubID:             options.HubID,
		Rollouts:          options.Rollouts,
		RolloutReadyTime:  options.RolloutReadyTime,
		Overrides:         shared.rollouts,
		Well:              shared.well,
		Owners:            shared.owners,
		Skew:              options.Skew,
		Concurrency:       options.Concurrency.OmniCluster,
	}); err != nil {
		return fmt.Errorf("add the controller of OmniCluster: %w", err)
	}

	return nil
}

// addRollouts adds the controller of rollouts, if there are any.
func addRollouts(mgr manager.Manager, shared shared, options Options) error {
	if !options.Rollouts {
		return nil
	}

	if err := omnirolloutpolicy.Add(mgr, omnirolloutpolicy.Options{
		Objects:     shared.objects,
		Rollouts:    shared.rollouts,
		Well:        shared.well,
		Skew:        options.Skew,
		Concurrency: options.Concurrency.OmniRolloutPolicy,
	}); err != nil {
		return fmt.Errorf("add the controller of OmniRolloutPolicy: %w", err)
	}

	return nil
}
