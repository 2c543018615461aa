package helm

import (
	"bytes"
	"context"
	"fmt"
	"time"

	chart "helm.sh/helm/v4/pkg/chart/v2"
	chartutil "helm.sh/helm/v4/pkg/chart/v2/util"
	"helm.sh/helm/v4/pkg/kube"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// crdWait is how long Helm waits until new CRDs are in use.
const crdWait = time.Minute

// keepExistingCRDs takes those CRDs out of a chart that the cluster has
// already. Helm 4 would apply them over the existing ones, which may be newer
// and belong to somebody else; Helm 3 left them alone, and so do we.
func (c *Client) keepExistingCRDs(ctx context.Context, ch *chart.Chart) error {
	client, err := c.metadata(ctx)
	if err != nil {
		return err
	}

	crds := client.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})

	return dropCRDs(ch, func(name string) (bool, error) {
		_, err := crds.Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return false, nil
		}

		if err != nil {
			return false, fmt.Errorf("look for the CRD %s (set skipCRDs if somebody else brings it): %w", name, err)
		}

		return true, nil
	})
}

// installCRDs installs the CRDs of a chart that the cluster does not have, as
// Helm does it before an install.
func (c *Client) installCRDs(hard, soft context.Context, s *session, request Request) error {
	// CRDs of dependencies that are switched off are not installed.
	if err := chartutil.ProcessDependencies(request.Chart, request.Values.Tree()); err != nil {
		return fmt.Errorf("look at the dependencies of the chart: %w", err)
	}

	if err := c.keepExistingCRDs(hard, request.Chart); err != nil {
		return err
	}

	var made kube.ResourceList

	for _, crd := range request.Chart.CRDObjects() {
		objects, err := s.config.KubeClient.Build(bytes.NewReader(crd.File.Data), false)
		if err != nil {
			return fmt.Errorf("read the CRDs in %s: %w", crd.Name, err)
		}

		if _, err := s.config.KubeClient.Create(objects, kube.ClientCreateOptionServerSideApply(true, true)); err != nil {
			return fmt.Errorf("install the CRDs in %s: %w", crd.Name, err)
		}

		made = append(made, objects...)
	}

	if len(made) == 0 {
		return nil
	}

	return awaitCRDs(soft, s, made)
}

// awaitCRDs waits until new CRDs are in use, and forgets what was known of the
// kinds of the cluster.
func awaitCRDs(ctx context.Context, s *session, made kube.ResourceList) error {
	client, ok := s.config.KubeClient.(kube.InterfaceWaitOptions)
	if !ok {
		return fmt.Errorf("the client of Helm has the unknown type %T", s.config.KubeClient)
	}

	waiter, err := client.GetWaiterWithOptions(kube.StatusWatcherStrategy, kube.WithWaitContext(ctx))
	if err != nil {
		return fmt.Errorf("wait for the CRDs: %w", err)
	}

	if err := waiter.Wait(made, crdWait); err != nil {
		return fmt.Errorf("wait for the CRDs: %w", err)
	}

	mapper, err := s.config.RESTClientGetter.ToRESTMapper()
	if err != nil {
		return fmt.Errorf("look at the kinds of the cluster: %w", err)
	}

	if known, ok := mapper.(meta.ResettableRESTMapper); ok {
		known.Reset()
	}

	return nil
}
