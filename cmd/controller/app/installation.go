package app

import (
	"context"
	"errors"
	"fmt"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// installation asks the hub about an installation, with the rights of the controller's account.
type installation struct {
	options *Options
	start   *startChecks
	leases  coordinationclient.LeaseInterface
}

// newInstallationChecks returns the conditions that an installation has to meet for a controller with these flags.
func newInstallationChecks(hub *rest.Config, options *Options) ([]installationCheck, error) {
	bounded := rest.CopyConfig(hub)
	bounded.Timeout, bounded.QPS, bounded.Burst = callTimeout, requestsPerSecond, requestBurst

	start, startErr := newStartChecks(bounded, options.served(), options.servedNamespace())
	coordination, coordinationErr := coordinationclient.NewForConfig(bounded)

	if err := errors.Join(startErr, coordinationErr); err != nil {
		return nil, fmt.Errorf("set up the checks: %w", err)
	}

	in := &installation{options: options, start: start, leases: coordination.Leases(options.leaseNamespace())}

	where := "in namespace " + options.Namespace
	if options.AllNamespaces {
		where = "in all namespaces"
	}

	return []installationCheck{
		{"no custom resource definition collides with the API", in.start.refuseDefinitions},
		{"the API " + v1alpha1.SchemeGroupVersion.String() + " is served with all its kinds", func(context.Context) error { return in.start.findAPI() }},
		{"objects of all kinds can be read " + where, in.start.readObjects},
		{"the account has the rights of a controller " + where, in.findRights},
		{"a controller is at work " + where, in.findLeader},
	}, nil
}

// findRights asks the hub for each right that a controller needs. What it has found out is in the error even if the
// time does not suffice for all of them.
func (in *installation) findRights(ctx context.Context) error {
	missing, err := in.start.account.missing(ctx, rightsOf(in.options.servedNamespace(), in.options))

	var problems []error

	for _, right := range missing {
		problems = append(problems, fmt.Errorf("it may not %s", described(right)))
	}

	return errors.Join(errors.Join(problems...), err)
}

// findLeader checks that a controller renews the lease.
func (in *installation) findLeader(ctx context.Context) error {
	found, err := in.leases.Get(ctx, leaseName, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("get the lease %s/%s: %w", in.options.leaseNamespace(), leaseName, err)
	}

	spec := found.Spec
	if spec.HolderIdentity == nil || *spec.HolderIdentity == "" || spec.RenewTime == nil {
		return fmt.Errorf("nobody holds the lease %s/%s", found.Namespace, found.Name)
	}

	// The controller may be on another node, whose clock is not quite ours.
	if age := time.Since(spec.RenewTime.Time); age > leaseDuration+time.Minute {
		return fmt.Errorf("%s held the lease %s/%s and has not renewed it for %s", *spec.HolderIdentity, found.Namespace, found.Name, age.Round(time.Second))
	}

	return nil
}

// checkExportNamespaces drops the --export-namespaces in which the controller may not handle Secrets: a refused watch
// would keep everything else from starting. Exports to those namespaces report it in their conditions.
func (o *Options) checkExportNamespaces(ctx context.Context, hub *rest.Config) error {
	if len(o.ExportNamespaces) == 0 {
		return nil
	}

	config := rest.CopyConfig(hub)
	config.Timeout = callTimeout

	client, err := authorizationclient.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("check --%s: %w", flagExportNamespaces, err)
	}

	account := accountRights{client.SelfSubjectAccessReviews()}

	var usable []string

	for _, namespace := range o.ExportNamespaces {
		missing, err := account.missing(ctx, exportRights(namespace))
		if err != nil {
			return fmt.Errorf("check --%s: namespace %q: %w", flagExportNamespaces, namespace, err)
		}

		if len(missing) == 0 {
			usable = append(usable, namespace)

			continue
		}

		klog.FromContext(ctx).Error(nil, "No kubeconfig is exported to this namespace until the service account has the right and omni-controller starts again",
			"namespace", namespace, "lacks", missing[0].Verb+" secrets")
	}

	o.ExportNamespaces = usable

	return nil
}

// exportRights are those of the controller to Secrets in a namespace of --export-namespaces.
func exportRights(namespace string) []authorizationv1.ResourceAttributes {
	var rights []authorizationv1.ResourceAttributes

	for _, verb := range []string{"get", "list", "watch", "create", "update", "delete"} {
		rights = append(rights, authorizationv1.ResourceAttributes{Namespace: namespace, Verb: verb, Resource: "secrets"})
	}

	return rights
}
