package controllers

import (
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"omni.texashpc.com/omni-cluster-operator/pkg/clusteraccess"
	"omni.texashpc.com/omni-cluster-operator/pkg/controllers/kubeconfigsecret"
	"omni.texashpc.com/omni-cluster-operator/pkg/controllers/omnicluster"
	"omni.texashpc.com/omni-cluster-operator/pkg/controllers/omniconnection"
	"omni.texashpc.com/omni-cluster-operator/pkg/controllers/omnihelmrelease"
	"omni.texashpc.com/omni-cluster-operator/pkg/controllers/omnirolloutpolicy"
	"omni.texashpc.com/omni-cluster-operator/pkg/controllers/omnisecretsync"
	"omni.texashpc.com/omni-cluster-operator/pkg/helm/charts"
	"omni.texashpc.com/omni-cluster-operator/pkg/helm/render"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/metrics"
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

// chartTimeout bounds one question to a chart repository, and one download.
const chartTimeout = time.Minute

// clusterDivisor is the part of the workers of a kind that one workload cluster may
// keep: one that hangs leaves the rest to the others.
const clusterDivisor = 4

// addWorkload adds the controllers that reach into workload clusters. They share
// one access, and with it the connections.
func addWorkload(mgr manager.Manager, shared shared, options Options) error {
	clusters := clusteraccess.NewClusters(nil, options.Guard)
	clusters.Refused = shared.refused.Fire
	clusters.Runs = max(1, min(options.Concurrency.OmniSecretSync, options.Concurrency.OmniHelmRelease)/clusterDivisor)

	// The only namespace leaves workers to nobody.
	if options.Namespace == "" {
		clusters.SyncRuns, clusters.ReleaseRuns = ofNamespace(options.Concurrency.OmniSecretSync), ofNamespace(options.Concurrency.OmniHelmRelease)
	}

	access := &clusteraccess.Access{
		Clusters: clusters, Client: mgr.GetClient(), Live: mgr.GetAPIReader(), HubID: options.HubID,
		ServerAhead: options.ServerClock, Owners: shared.owners,
	}

	if err := kubeconfigsecret.Add(mgr, options.Namespace, options.HubClock); err != nil {
		return fmt.Errorf("add the controller of kubeconfig Secrets: %w", err)
	}

	if err := omnisecretsync.Add(mgr, omnisecretsync.Options{
		Access: access, Objects: shared.objects, HubID: options.HubID, Concurrency: options.Concurrency.OmniSecretSync,
	}); err != nil {
		return fmt.Errorf("add the controller of OmniSecretSync: %w", err)
	}

	actions := metrics.NewHelmActions(omnihelmrelease.Actions()...)
	waiting := metrics.NewWorkloadRuns(clusters.Waiting, clusteraccess.KindSecretSync, clusteraccess.KindHelmRelease)

	for _, collector := range []prometheus.Collector{actions, waiting} {
		if err := options.Registry.Register(collector); err != nil {
			return fmt.Errorf("register metrics: %w", err)
		}
	}

	rendering := options.Rendering
	rendering.Log = mgr.GetLogger().WithName("render")
	renderers := render.New(rendering)

	if err := omnihelmrelease.Add(mgr, omnihelmrelease.Options{
		Access: access, Objects: shared.objects, Actions: actions, Registry: options.Registry, HubID: options.HubID, Concurrency: options.Concurrency.OmniHelmRelease,
		Skew:      options.Skew,
		Charts:    charts.New(charts.Options{Guard: options.Guard, Renderers: renderers, Timeout: chartTimeout}),
		Renderers: renderers,
	}); err != nil {
		return fmt.Errorf("add the controller of OmniHelmRelease: %w", err)
	}

	return nil
}

// ofNamespace returns how many workers of a kind the workload clusters of one namespace may keep: all but what one cluster may,
// so that a namespace with one cluster that hangs, or many, leaves those to the others.
func ofNamespace(workers int) int { return max(1, workers-max(1, workers/clusterDivisor)) }
