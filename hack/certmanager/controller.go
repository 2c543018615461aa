package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cert-manager/cert-manager/pkg/controller"
	"github.com/cert-manager/cert-manager/pkg/controller/certificaterequests/approver"
	requestsca "github.com/cert-manager/cert-manager/pkg/controller/certificaterequests/ca"
	requestsselfsigned "github.com/cert-manager/cert-manager/pkg/controller/certificaterequests/selfsigned"
	"github.com/cert-manager/cert-manager/pkg/controller/certificates/issuing"
	"github.com/cert-manager/cert-manager/pkg/controller/certificates/keymanager"
	"github.com/cert-manager/cert-manager/pkg/controller/certificates/readiness"
	"github.com/cert-manager/cert-manager/pkg/controller/certificates/requestmanager"
	"github.com/cert-manager/cert-manager/pkg/controller/certificates/revisionmanager"
	"github.com/cert-manager/cert-manager/pkg/controller/certificates/trigger"
	"github.com/cert-manager/cert-manager/pkg/controller/issuers"

	// These register what an Issuer of their type does.
	_ "github.com/cert-manager/cert-manager/pkg/issuer/ca"
	_ "github.com/cert-manager/cert-manager/pkg/issuer/selfsigned"
)

// workers is how many objects each controller looks at at the same time: cert-manager's own default.
const workers = 5

// names are the controllers that are run, of those that have registered themselves.
var names = []string{
	issuers.ControllerName,
	trigger.ControllerName,
	keymanager.ControllerName,
	requestmanager.ControllerName,
	approver.ControllerName,
	requestsselfsigned.CRControllerName,
	requestsca.CRControllerName,
	issuing.ControllerName,
	readiness.ControllerName,
	revisionmanager.ControllerName,
}

// options are the defaults of cert-manager's own program, without what is not run here.
func options(kubeconfig string) controller.ContextOptions {
	return controller.ContextOptions{
		Kubeconfig:         kubeconfig,
		KubernetesAPIQPS:   20,
		KubernetesAPIBurst: 50,
		IssuerOptions:      controller.IssuerOptions{ClusterResourceNamespace: "kube-system"},
		CertificateOptions: controller.CertificateOptions{
			CopiedAnnotationPrefixes:                 []string{"*", "-kubectl.kubernetes.io/", "-fluxcd.io/", "-argocd.argoproj.io/"},
			CertificateRequestMinimumBackoffDuration: time.Hour,
			CertificateRequestMaximumBackoffDuration: 32 * time.Hour,
		},
	}
}

// runController runs all controllers until the context ends or one of them does.
func runController(ctx context.Context, kubeconfig string) error {
	factory, err := controller.NewContextFactory(ctx, options(kubeconfig))
	if err != nil {
		return err
	}

	shared, err := factory.Build()
	if err != nil {
		return err
	}

	controllers := make([]controller.Interface, len(names))

	for i, name := range names {
		construct, registered := controller.Known()[name]
		if !registered {
			return fmt.Errorf("this cert-manager has no controller %s", name)
		}

		if controllers[i], err = construct(factory); err != nil {
			return fmt.Errorf("construct %s: %w", name, err)
		}
	}

	// Only now: each constructor asks for the informers that it needs, and later ones would never run.
	shared.SharedInformerFactory.Start(ctx.Done())
	shared.KubeSharedInformerFactory.Start(ctx.Done())

	return runAll(ctx, controllers)
}

// runAll ends all when one ends.
func runAll(ctx context.Context, controllers []controller.Interface) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()

	ended := make(chan error)

	for i, c := range controllers {
		go func() {
			err := c.Run(workers, ctx)
			if err != nil {
				err = fmt.Errorf("run %s: %w", names[i], err)
			}

			ended <- err
		}()
	}

	errs := make([]error, len(controllers))
	for i := range errs {
		errs[i] = <-ended

		cancel()
	}

	return errors.Join(errs...)
}
