package startup

import (
	"context"
	"errors"
	"fmt"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	mutatingadmissionpolicy "k8s.io/apiserver/pkg/admission/plugin/policy/mutating"
	genericoptions "k8s.io/apiserver/pkg/server/options"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"
)

const (
	// hubTimeout bounds one check of the hub at the start.
	hubTimeout = 30 * time.Second
	// rightsTimeout is how long the start waits for a missing right: a hub that starts knows no bindings yet, and an
	// installation creates them in any order.
	rightsTimeout = 20 * time.Second
)

// errRights is wrapped by errors about missing rights.
var errRights = errors.New("rights are missing")

// WaitForHub returns when the hub answers and this server has the rights that it cannot work without. It waits for a
// hub that does not answer yet, and for up to 20 seconds (rightsTimeout) for missing rights; the error then names the
// missing binding. If the context ends first, the error has its cause and what was still missing.
//
// It also switches off the admission plugin for mutating policies, in the options that it is given, on hubs that do not
// serve them in v1 (before 1.36): the plugin would wait for its informers for ever, and so would every write.
func WaitForHub(ctx context.Context, client kubernetes.Interface, admission *genericoptions.AdmissionOptions) error {
	var missing time.Time

	return retry(ctx, "the hub, the kube-apiserver of the management cluster", func(ctx context.Context) error {
		err := checkHub(ctx, client, admission)

		switch {
		case !errors.Is(err, errRights):
			missing = time.Time{}
		case missing.IsZero():
			missing = time.Now()
		case time.Since(missing) >= rightsTimeout:
			return permanentError{err}
		}

		return err
	})
}

// checkHub asks the hub once, and switches off what it does not serve. Errors about missing rights wrap errRights.
func checkHub(ctx context.Context, client kubernetes.Interface, admission *genericoptions.AdmissionOptions) error {
	ctx, cancel := context.WithTimeout(ctx, hubTimeout)
	defer cancel()

	served, err := servesMutatingPolicies(ctx, client.Discovery())
	if err != nil {
		return err
	}

	if !served {
		klog.InfoS("The hub does not serve mutating admission policies in v1; they are not applied here")
		admission.DefaultOffPlugins.Insert(mutatingadmissionpolicy.PluginName)
	}

	return checkRights(ctx, client, served)
}

// right is one thing this server must be allowed to do, and the binding that usually allows it.
type right struct {
	attributes authorizationv1.ResourceAttributes
	remedy     string
}

func requiredRights(mutatingPolicies bool) []right {
	const (
		delegator = "bind the ClusterRole system:auth-delegator to it"
		reader    = "bind the Role extension-apiserver-authentication-reader in kube-system to it"
		own       = "bind the ClusterRole omni-apiserver to it"
	)

	review := func(group, resource string) authorizationv1.ResourceAttributes {
		return authorizationv1.ResourceAttributes{Verb: "create", Group: group, Version: "v1", Resource: resource}
	}
	watch := func(group, resource string) authorizationv1.ResourceAttributes {
		return authorizationv1.ResourceAttributes{Verb: "watch", Group: group, Version: "v1", Resource: resource}
	}

	rights := []right{
		{review("authentication.k8s.io", "tokenreviews"), delegator},
		{review("authorization.k8s.io", "subjectaccessreviews"), delegator},
		{authorizationv1.ResourceAttributes{
			Verb: "get", Version: "v1", Resource: "configmaps",
			Namespace: metav1.NamespaceSystem, Name: "extension-apiserver-authentication",
		}, reader},
		{watch("", "namespaces"), own},
		{watch("admissionregistration.k8s.io", "mutatingwebhookconfigurations"), own},
		{watch("admissionregistration.k8s.io", "validatingwebhookconfigurations"), own},
		{watch("admissionregistration.k8s.io", "validatingadmissionpolicies"), own},
		{watch("admissionregistration.k8s.io", "validatingadmissionpolicybindings"), own},
		{watch("flowcontrol.apiserver.k8s.io", "flowschemas"), own},
		{watch("flowcontrol.apiserver.k8s.io", "prioritylevelconfigurations"), own},
	}
	if mutatingPolicies {
		rights = append(rights,
			right{watch("admissionregistration.k8s.io", "mutatingadmissionpolicies"), own},
			right{watch("admissionregistration.k8s.io", "mutatingadmissionpolicybindings"), own})
	}

	return rights
}

func checkRights(ctx context.Context, client kubernetes.Interface, mutatingPolicies bool) error {
	var missing []error

	for _, right := range requiredRights(mutatingPolicies) {
		attributes := right.attributes

		review, err := client.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx,
			&authorizationv1.SelfSubjectAccessReview{
				Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &attributes},
			}, metav1.CreateOptions{})
		if err != nil {
			return fmt.Errorf("ask the hub for our rights: %w", err)
		}

		if !review.Status.Allowed {
			missing = append(missing, fmt.Errorf("this server's user may not %s %s on the hub: %s",
				attributes.Verb, qualified(attributes), right.remedy))
		}
	}

	if len(missing) == 0 {
		return nil
	}

	return fmt.Errorf("%w: %w", errRights, errors.Join(missing...))
}

func qualified(attributes authorizationv1.ResourceAttributes) string {
	name := attributes.Resource
	if attributes.Group != "" {
		name += "." + attributes.Group
	}

	if attributes.Name != "" {
		name += " " + attributes.Namespace + "/" + attributes.Name
	}

	return name
}

func servesMutatingPolicies(ctx context.Context, client discovery.DiscoveryInterface) (bool, error) {
	const groupVersion = "admissionregistration.k8s.io/v1"

	resources, err := discovery.ToServerResourcesInterfaceWithContext(client).ServerResourcesForGroupVersionWithContext(ctx, groupVersion)
	if err != nil {
		return false, fmt.Errorf("ask the hub what it serves in %s: %w", groupVersion, err)
	}

	for _, resource := range resources.APIResources {
		if resource.Name == "mutatingadmissionpolicies" {
			return true, nil
		}
	}

	return false, nil
}
