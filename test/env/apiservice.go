package env

import (
	"context"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	aggregator "k8s.io/kube-aggregator/pkg/client/clientset_generated/clientset"
)

const (
	apiGroup       = "omni.texashpc.com"
	apiVersion     = "v1alpha1"
	apiServiceName = apiVersion + "." + apiGroup
)

// registerAPIService points kube-apiserver at an omni-apiserver on a loopback port. The
// Service is of type ExternalName, the only kind that leads out of a cluster without nodes.
func (h *Hub) registerAPIService(ctx context.Context, port int) error {
	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: apiServerName, Namespace: SystemNamespace},
		Spec: corev1.ServiceSpec{
			Type:         corev1.ServiceTypeExternalName,
			ExternalName: "localhost",
			Ports:        []corev1.ServicePort{{Port: int32(port)}},
		},
	}

	if _, err := h.client.CoreV1().Services(SystemNamespace).Create(ctx, service, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("create service: %w", err)
	}

	client, err := aggregator.NewForConfig(h.RESTConfig())
	if err != nil {
		return fmt.Errorf("make client: %w", err)
	}

	number := int32(port)
	apiService := &apiregistrationv1.APIService{
		ObjectMeta: metav1.ObjectMeta{Name: apiServiceName},
		Spec: apiregistrationv1.APIServiceSpec{
			Group:                apiGroup,
			Version:              apiVersion,
			GroupPriorityMinimum: 1000,
			VersionPriority:      15,
			CABundle:             h.creds.cluster.certPEM,
			Service: &apiregistrationv1.ServiceReference{
				Namespace: SystemNamespace,
				Name:      apiServerName,
				Port:      &number,
			},
		},
	}

	if _, err := client.ApiregistrationV1().APIServices().Create(ctx, apiService, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("register API service: %w", err)
	}

	return nil
}

// apiServed returns nil when the aggregated API can be used through kube-apiserver: the
// APIService is Available, and discovery of the group, discovery of everything and the OpenAPI
// index have it. kube-apiserver gathers the latter two in the background.
func (h *Hub) apiServed(ctx context.Context) error {
	client, err := aggregator.NewForConfig(h.RESTConfig())
	if err != nil {
		return giveUp{fmt.Errorf("make client: %w", err)}
	}

	apiService, err := client.ApiregistrationV1().APIServices().Get(ctx, apiServiceName, metav1.GetOptions{})
	if err != nil {
		return err
	}

	if err := available(apiService); err != nil {
		return err
	}

	resources := &metav1.APIResourceList{}
	if err := h.client.Discovery().RESTClient().Get().AbsPath("/apis", apiGroup, apiVersion).Do(ctx).Into(resources); err != nil {
		return fmt.Errorf("discovery: %w", err)
	}

	if err := h.listedByAll(ctx); err != nil {
		return err
	}

	index, err := h.client.Discovery().RESTClient().Get().AbsPath("/openapi/v3").DoRaw(ctx)
	if err != nil {
		return fmt.Errorf("read the OpenAPI index: %w", err)
	}

	if !strings.Contains(string(index), "apis/"+apiGroup+"/"+apiVersion) {
		return errors.New("the OpenAPI index does not have the group yet")
	}

	return nil
}

// listedByAll returns nil when the list of everything that is served has the group, from which
// kubectl and others take what a kind is.
func (h *Hub) listedByAll(ctx context.Context) error {
	client, err := discovery.NewDiscoveryClientForConfig(h.RESTConfig())
	if err != nil {
		return giveUp{fmt.Errorf("make client: %w", err)}
	}

	_, everything, _, err := client.GroupsAndMaybeResourcesWithContext(ctx)
	if err != nil {
		return fmt.Errorf("discovery of everything: %w", err)
	}

	if everything[schema.GroupVersion{Group: apiGroup, Version: apiVersion}] == nil {
		return errors.New("discovery of everything does not have the group yet, or not any more")
	}

	return nil
}

func available(apiService *apiregistrationv1.APIService) error {
	for _, condition := range apiService.Status.Conditions {
		if condition.Type != apiregistrationv1.Available {
			continue
		}

		if condition.Status == apiregistrationv1.ConditionTrue {
			return nil
		}

		return fmt.Errorf("the APIService is not available: %s: %s", condition.Reason, condition.Message)
	}

	return errors.New("the APIService has no condition Available yet")
}
