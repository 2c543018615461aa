package app

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"omni.texashpc.com/omni-cluster-operator/pkg/apiserver"
	"omni.texashpc.com/omni-cluster-operator/pkg/registry"
)

// Config applies the options in the order in which they need each other. It reads from the hub and
// fails if the hub does not answer or a right is missing.
func (o *Options) Config(ctx context.Context) (*apiserver.Config, error) {
	config, err := apiserver.NewConfig()
	if err != nil {
		return nil, err
	}

	config.Registry = registry.Options{
		RequireDeletionConfirmation: o.RequireDeletionConfirmation,
		ManagementClusterName:       o.ManagementClusterName,
	}

	if err := o.applyServing(config); err != nil {
		return nil, err
	}

	if err := o.applyHub(ctx, config); err != nil {
		return nil, err
	}

	return config, nil
}

// applyServing applies what needs no other server.
func (o *Options) applyServing(config *apiserver.Config) error {
	generic := config.Generic
	storage := *o.Storage
	storage.StorageConfig.Codec = config.StorageCodec()

	if err := errors.Join(
		o.Server.ApplyTo(&generic.Config),
		o.Serving.ApplyToConfig(&generic.Config),
		apiserver.ApplyAudit(o.Audit, &generic.Config),
		o.Traces.ApplyTo(nil, &generic.Config),
		storage.ApplyTo(&generic.Config),
	); err != nil {
		return fmt.Errorf("apply the options: %w", err)
	}

	return nil
}

// applyHub applies what asks the hub's kube-apiserver.
func (o *Options) applyHub(ctx context.Context, config *apiserver.Config) error {
	generic := config.Generic

	if err := o.Hub.ApplyTo(generic); err != nil {
		return fmt.Errorf("connect to the hub: %w", err)
	}

	client, err := kubernetes.NewForConfig(generic.ClientConfig)
	if err != nil {
		return fmt.Errorf("connect to the hub: %w", err)
	}

	dynamicClient, err := dynamic.NewForConfig(generic.ClientConfig)
	if err != nil {
		return fmt.Errorf("connect to the hub: %w", err)
	}

	if err := apiserver.CheckHub(ctx, client, o.Admission); err != nil {
		return err
	}

	if err := o.Authentication.ApplyTo(&generic.Authentication, generic.SecureServing, generic.OpenAPIConfig); err != nil {
		return fmt.Errorf("set up authentication: %w", err)
	}

	apiserver.RefuseAnonymous(&generic.Authentication)

	if err := o.Authorization.ApplyTo(&generic.Authorization); err != nil {
		return fmt.Errorf("set up authorisation: %w", err)
	}

	apiserver.AskForGrantsFirst(&generic.Config)

	if err := o.Features.ApplyTo(&generic.Config, client, generic.SharedInformerFactory); err != nil {
		return fmt.Errorf("set up features: %w", err)
	}

	ownPlugins, err := apiserver.AdmissionInitializer(&generic.Config, o.ControllerNamespaces)
	if err != nil {
		return err
	}

	if err := o.Admission.ApplyTo(&generic.Config, generic.SharedInformerFactory, client, dynamicClient,
		generic.FeatureGate, generic.EffectiveVersion, ownPlugins); err != nil {
		return fmt.Errorf("set up admission: %w", err)
	}

	return nil
}
