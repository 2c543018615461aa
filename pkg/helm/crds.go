package helm

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"helm.sh/helm/v4/pkg/kube"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"omni.texashpc.com/omni-cluster-operator/pkg/helm/manifest"
	"omni.texashpc.com/omni-cluster-operator/pkg/helm/render"
)

// crdWait is how long Helm waits until new CRDs are in use.
const crdWait = time.Minute

// missingCRDs are those of a chart that the cluster does not have. Helm 4 would
// apply the others over the existing ones, which may be newer and belong to somebody
// else; Helm 3 left them alone, and so do we.
func (c *Client) missingCRDs(ctx context.Context, files []render.CRD) ([]render.CRD, error) {
	client, err := c.metadata(ctx)
	if err != nil {
		return nil, err
	}

	crds := client.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
	exists := func(name string) (bool, error) {
		_, err := crds.Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return false, nil
		}

		if err != nil {
			return false, fmt.Errorf("look for the CRD %s (set skipCRDs if somebody else brings it): %w", name, err)
		}

		return true, nil
	}

	var missing []render.CRD

	for i := range files {
		file, err := manifest.WithoutCRDs(&files[i], exists)
		if err != nil {
			return nil, err
		}

		if file != nil {
			missing = append(missing, *file)
		}
	}

	return missing, nil
}

// installCRDs installs the CRDs of a chart that the cluster does not have, as Helm
// does it before an install.
func (c *Client) installCRDs(hard, soft context.Context, s *attempt, files []render.CRD) error {
	if _, name, err := manifest.Check(soft, crdTexts(files)); err != nil {
		return outOfBounds("the CRDs in "+name, err)
	}

	missing, err := c.missingCRDs(hard, files)
	if err != nil {
		return err
	}

	var made kube.ResourceList

	for _, crd := range missing {
		objects, err := s.config.KubeClient.Build(bytes.NewReader(crd.Data), false)
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

// crdTexts is the text of each file.
func crdTexts(files []render.CRD) map[string]string {
	texts := map[string]string{}
	for _, file := range files {
		texts[file.Name] += string(file.Data) + manifest.Separator
	}

	return texts
}

// awaitCRDs waits until new CRDs are in use, and forgets what was known of the
// kinds of the cluster.
func awaitCRDs(ctx context.Context, s *attempt, made kube.ResourceList) error {
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
