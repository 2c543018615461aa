package helm

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"time"

	"helm.sh/helm/v4/pkg/kube"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/cli-runtime/pkg/resource"
	"k8s.io/client-go/metadata"

	"omni.texashpc.com/omni-cluster-operator/pkg/helm/drift"
	"omni.texashpc.com/omni-cluster-operator/pkg/helm/render"
)

// crdWait is how long Helm waits until new CRDs are in use.
const crdWait = time.Minute

// kindsPause is how long the kinds of the cluster are not looked at again.
const kindsPause = 200 * time.Millisecond

// installCRDs makes the CRDs of a chart's crds folder that the cluster does not have, before an install, and waits until
// they are in use. Helm 4 would apply all of the folder, over objects that may be newer and belong to somebody else, and of
// whatever kind they are; Helm 3 left what exists alone, and so do we.
func (c *Client) installCRDs(x *execution, files []render.CRD) error {
	if _, name, err := drift.CheckManifests(x.soft, crdTexts(files)); err != nil {
		return outOfBounds("the CRDs in "+name, err)
	}

	if err := onlyCRDs(files); err != nil {
		return outOfBounds("chart "+x.request.Chart.String(), err)
	}

	client, err := c.metadata(x.hard)
	if err != nil {
		return err
	}

	var made kube.ResourceList

	for _, file := range files {
		objects, err := x.config.KubeClient.Build(bytes.NewReader(file.Data), false)
		if err != nil {
			return fmt.Errorf("read the CRDs in %s: %w", file.Name, err)
		}

		for _, info := range objects {
			there, err := exists(x.hard, client, info)
			if err != nil {
				return fmt.Errorf("look for %s of %s (set skipCRDs if somebody else brings it): %w", drift.Identify(info), file.Name, err)
			}

			if there {
				continue
			}

			if err := x.mayChange(); err != nil {
				return err
			}

			if there, err = create(info); err != nil {
				return fmt.Errorf("install %s of %s: %w", drift.Identify(info), file.Name, err)
			}

			if !there {
				made = append(made, info)
			}
		}
	}

	if len(made) == 0 {
		return nil
	}

	return awaitCRDs(x, made)
}

// onlyCRDs refuses a folder with anything but CRDs: no record of the release has it, so it is shown nowhere, and no uninstall
// removes it.
func onlyCRDs(files []render.CRD) error {
	crd := schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}

	for _, file := range files {
		objects, err := drift.ParseObjects(file.Data)
		if err != nil {
			return fmt.Errorf("read the CRDs in %s: %w", file.Name, err)
		}

		for _, object := range objects {
			if kind := object.GroupVersionKind().GroupKind(); kind != crd {
				return &render.RefusedError{Why: fmt.Sprintf("%s has the %q %q, which is no CustomResourceDefinition, and would stay when the release is uninstalled; "+
					"move it into the chart's templates, or apply the folder yourself and set spec.skipCRDs", file.Name, kind.Kind, object.GetName())}
			}
		}
	}

	return nil
}

// exists reports whether the cluster has an object. Of a CRD, metadata is a small part.
func exists(ctx context.Context, client metadata.Interface, info *resource.Info) (bool, error) {
	_, err := client.Resource(info.Mapping.Resource).Namespace(info.Namespace).Get(ctx, info.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return false, nil
	}

	return err == nil, err
}

// create makes an object and reports whether somebody was quicker. An apply would write over theirs.
func create(info *resource.Info) (there bool, err error) {
	made, err := resource.NewHelper(info.Client, info.Mapping).WithFieldManager(FieldManager).
		WithFieldValidation(string(kube.FieldValidationDirectiveStrict)).Create(info.Namespace, true, info.Object)
	if apierrors.IsAlreadyExists(err) {
		return true, nil
	}

	if err != nil {
		return false, err
	}

	return false, info.Refresh(made, true)
}

// crdTexts is the text of each file.
func crdTexts(files []render.CRD) map[string]string {
	texts := map[string]string{}
	for _, file := range files {
		texts[file.Name] += string(file.Data) + drift.ManifestSeparator
	}

	return texts
}

// awaitCRDs waits until new CRDs are in use.
func awaitCRDs(x *execution, made kube.ResourceList) error {
	client, ok := x.config.KubeClient.(kube.InterfaceWaitOptions)
	if !ok {
		return fmt.Errorf("the client of Helm has the unknown type %T", x.config.KubeClient)
	}

	waiter, err := client.GetWaiterWithOptions(kube.StatusWatcherStrategy, kube.WithWaitContext(x.soft))
	if err != nil {
		return fmt.Errorf("wait for the CRDs: %w", err)
	}

	if err := waiter.Wait(made, crdWait); err != nil {
		return fmt.Errorf("wait for the CRDs: %w", err)
	}

	mapper, err := x.config.RESTClientGetter.ToRESTMapper()
	if err != nil {
		return fmt.Errorf("look at the kinds of the cluster: %w", err)
	}

	if known, ok := mapper.(meta.ResettableRESTMapper); ok {
		return awaitKinds(x.soft, known, made)
	}

	return nil
}

// awaitKinds waits until the kinds of new CRDs are listed by the cluster: it lists them a moment after a CRD is established, and
// each of several API servers for itself. Any other error of a lookup comes back when an object of the kind is built.
func awaitKinds(ctx context.Context, mapper meta.ResettableRESTMapper, made kube.ResourceList) error {
	var missing schema.GroupKind

	err := wait.PollUntilContextTimeout(ctx, kindsPause, crdWait, true, func(context.Context) (bool, error) {
		mapper.Reset()

		for _, info := range made {
			if kind := kindOf(info); !kind.Empty() {
				if _, err := mapper.RESTMapping(kind); meta.IsNoMatchError(err) {
					missing = kind

					return false, nil
				}
			}
		}

		return true, nil
	})
	if err != nil {
		return fmt.Errorf("wait for the CRDs: the cluster does not list the kind %s: %w", missing, err)
	}

	return nil
}

// kindOf is the kind of a CRD that serves a version of it.
func kindOf(info *resource.Info) schema.GroupKind {
	var crd apiextensionsv1.CustomResourceDefinition

	object, ok := info.Object.(*unstructured.Unstructured)
	if !ok || runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &crd) != nil ||
		!slices.ContainsFunc(crd.Spec.Versions, func(version apiextensionsv1.CustomResourceDefinitionVersion) bool { return version.Served }) {
		return schema.GroupKind{}
	}

	return schema.GroupKind{Group: crd.Spec.Group, Kind: crd.Spec.Names.Kind}
}
