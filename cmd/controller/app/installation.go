package app

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// rightsAtOnce is how many questions for a right are open at a time. There are about a hundred, and kube-apiserver may
// have to ask a webhook for each.
const rightsAtOnce = 10

// installation asks the hub about an installation, with the rights of the controller's account.
type installation struct {
	options *Options
	start   *startChecks
	reviews authorizationclient.SelfSubjectAccessReviewInterface
	leases  coordinationclient.LeaseInterface
}

// newInstallationChecks returns the conditions that an installation has to meet for a controller with these flags.
func newInstallationChecks(hub *rest.Config, options *Options) ([]installationCheck, error) {
	bounded := rest.CopyConfig(hub)
	bounded.Timeout, bounded.QPS, bounded.Burst = callTimeout, requestsPerSecond, requestBurst

	start, startErr := newStartChecks(bounded, options.served(), options.servedNamespace())
	authorization, authorizationErr := authorizationclient.NewForConfig(bounded)
	coordination, coordinationErr := coordinationclient.NewForConfig(bounded)

	if err := errors.Join(startErr, authorizationErr, coordinationErr); err != nil {
		return nil, fmt.Errorf("set up the checks: %w", err)
	}

	in := &installation{
		options: options, start: start,
		reviews: authorization.SelfSubjectAccessReviews(), leases: coordination.Leases(options.leaseNamespace()),
	}

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
	rights := rightsOf(in.options.servedNamespace(), in.options)
	problems := make([]error, len(rights))

	var asked errgroup.Group // one that cannot be answered ends none of the others

	asked.SetLimit(rightsAtOnce)

	for i, right := range rights {
		asked.Go(func() error {
			allowed, err := in.allowed(ctx, right)
			if err == nil && !allowed {
				problems[i] = fmt.Errorf("it may not %s", described(right))
			}

			return err
		})
	}

	err := asked.Wait()

	return errors.Join(errors.Join(problems...), err)
}

// allowed asks the hub for one right.
func (in *installation) allowed(ctx context.Context, right authorizationv1.ResourceAttributes) (bool, error) {
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &right}}

	answer, err := in.reviews.Create(ctx, review, metav1.CreateOptions{})
	if err != nil {
		return false, fmt.Errorf("ask for the rights of the account: %w", err)
	}

	return answer.Status.Allowed, nil
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

	if age := time.Since(spec.RenewTime.Time); age > leaseDuration {
		return fmt.Errorf("%s held the lease %s/%s and has not renewed it for %s", *spec.HolderIdentity, found.Namespace, found.Name, age.Round(time.Second))
	}

	return nil
}
