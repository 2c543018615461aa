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

// missingVerb returns the first verb on Secrets in a namespace that the controller needs and is not allowed; empty if
// it is allowed all of them.
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
