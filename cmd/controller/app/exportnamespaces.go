package app

import (
	"context"
	"fmt"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
)

// checkExportNamespaces drops those --export-namespaces in which the controller may not handle Secrets: a watch that is
// refused would keep everything else from starting. Exports to them say so in their conditions.
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

	var usable []string

	for _, namespace := range o.ExportNamespaces {
		missing, err := missingVerb(ctx, client, namespace)
		if err != nil {
			return fmt.Errorf("check --%s: %w", flagExportNamespaces, err)
		}

		if missing == "" {
			usable = append(usable, namespace)

			continue
		}

		klog.FromContext(ctx).Error(nil, "No kubeconfig is exported to this namespace until the service account has the right and omni-controller starts again",
			"namespace", namespace, "lacks", missing+" secrets")
	}

	o.ExportNamespaces = usable

	return nil
}

// exportVerbs are what the controller does with Secrets in a namespace of --export-namespaces.
func exportVerbs() []string { return []string{"get", "list", "watch", "create", "update", "delete"} }

// missingVerb is the first thing that the controller has to do with Secrets in a namespace and may not; empty if it may
// do everything.
func missingVerb(ctx context.Context, client authorizationclient.SelfSubjectAccessReviewsGetter, namespace string) (string, error) {
	for _, verb := range exportVerbs() {
		review, err := client.SelfSubjectAccessReviews().Create(ctx, &authorizationv1.SelfSubjectAccessReview{
			Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{
				Namespace: namespace, Verb: verb, Version: "v1", Resource: "secrets",
			}},
		}, metav1.CreateOptions{})
		if err != nil {
			return "", fmt.Errorf("may it %s Secrets in namespace %q: %w", verb, namespace, err)
		}

		if !review.Status.Allowed {
			return verb, nil
		}
	}

	return "", nil
}
