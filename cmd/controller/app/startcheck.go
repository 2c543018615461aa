package app

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

const (
	// retryPause is the pause between two looks at an API that is not there yet.
	retryPause = 2 * time.Second
	// logEvery is how often a start that waits says so.
	logEvery = 15 * time.Second
	// callTimeout bounds one call of the start-up checks.
	callTimeout = 15 * time.Second
)

// errRefused ends the start at once: waiting would not help.
var errRefused = errors.New("omni-controller does not start")

// kinds are the eight resources that we serve and read.
func kinds() []string {
	return []string{
		"omniconnections", "omniclusters", "omnicontrolplanes", "omniworkers", "omnimachines",
		"omnikubeconfigexports", "omnisecretsyncs", "omnihelmreleases",
	}
}

// waitForStart returns when the controller may start: no custom resource
// definition of our group exists, and the API group is served. It waits for a
// hub and for an API that are not there yet.
func waitForStart(ctx context.Context, hub *rest.Config, timeout time.Duration) error {
	checks, err := newStartChecks(hub)
	if err != nil {
		return err
	}

	ctx, cancel := context.WithTimeoutCause(ctx, timeout, errors.New("gave up after --start-timeout"))
	defer cancel()

	var logged time.Time

	for {
		err := checks.run(ctx)
		if err == nil || errors.Is(err, errRefused) {
			return err
		}

		if time.Since(logged) >= logEvery {
			logged = time.Now()

			klog.FromContext(ctx).Info("waiting for the API", "reason", err.Error())
		}

		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for the API: %w: %w", context.Cause(ctx), err)
		case <-time.After(retryPause):
		}
	}
}

// startChecks asks the hub.
type startChecks struct {
	definitions metadata.Getter
	discovery   discovery.DiscoveryInterface
}

func newStartChecks(hub *rest.Config) (*startChecks, error) {
	bounded := rest.CopyConfig(hub)
	bounded.Timeout = callTimeout

	client, err := metadata.NewForConfig(bounded)
	if err != nil {
		return nil, fmt.Errorf("start-up check: %w", err)
	}

	finder, err := discovery.NewDiscoveryClientForConfig(bounded)
	if err != nil {
		return nil, fmt.Errorf("start-up check: %w", err)
	}

	return &startChecks{
		definitions: client.Resource(schema.GroupVersionResource{
			Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions",
		}),
		discovery: finder,
	}, nil
}

func (c *startChecks) run(ctx context.Context) error {
	if err := c.refuseDefinitions(ctx); err != nil {
		return err
	}

	return c.findAPI()
}

// refuseDefinitions fails if custom resource definitions of our group exist:
// they collide with our API, and the objects in them belong to an operator
// whose finalizers destroy real clusters.
func (c *startChecks) refuseDefinitions(ctx context.Context) error {
	var found []string

	for _, kind := range kinds() {
		name := kind + "." + v1alpha1.GroupName

		_, err := c.definitions.Get(ctx, name, metav1.GetOptions{})

		switch {
		case err == nil:
			found = append(found, name)
		case apierrors.IsNotFound(err):
		case apierrors.IsForbidden(err):
			return fmt.Errorf("%w: it may not look for custom resource definitions of the group %s, which would collide with this API; "+
				"bind its service account to the ClusterRole omni-controller-crd-check (artifacts/deploy/rbac-controller.yaml): %w",
				errRefused, v1alpha1.GroupName, err)
		default:
			return fmt.Errorf("look for CustomResourceDefinition %s: %w", name, err)
		}
	}

	if len(found) > 0 {
		return fmt.Errorf("%w: the custom resource definitions %s exist. They belong to another operator of the same group. "+
			"Do not just delete them: that deletes their objects, and that operator then destroys their clusters. "+
			"Stop that operator, export the objects, remove their finalizers, then delete the definitions and start again",
			errRefused, strings.Join(found, ", "))
	}

	return nil
}

// findAPI fails until the API group is served with all its kinds.
func (c *startChecks) findAPI() error {
	served, err := c.discovery.ServerResourcesForGroupVersion(v1alpha1.SchemeGroupVersion.String())
	if err != nil {
		return fmt.Errorf("the hub does not serve %s yet (APIService v1alpha1.%s): %w",
			v1alpha1.SchemeGroupVersion, v1alpha1.GroupName, err)
	}

	names := map[string]bool{}
	for _, resource := range served.APIResources {
		names[resource.Name] = true
	}

	for _, kind := range kinds() {
		if !names[kind] {
			return fmt.Errorf("the hub does not serve %s in %s", kind, v1alpha1.SchemeGroupVersion)
		}
	}

	return nil
}
