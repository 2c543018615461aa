package app

import (
	"context"
	"fmt"

	authorizationv1 "k8s.io/api/authorization/v1"
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
