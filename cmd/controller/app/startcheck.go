package app

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

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

// kinds are the resources that we serve and read, but for those that a flag turns off.
func kinds() []string {
	return []string{
		"omniconnections", "omniclusters", "omnicontrolplanes", "omniworkers", "omnimachines",
		"omnikubeconfigexports", "omnisecretsyncs", "omnihelmreleases",
	}
}

// served are the resources that a controller with these flags reads.
func (o *Options) served() []string {
	if o.Rollouts {
		return append(kinds(), rolloutPolicies)
	}

	return kinds()
}

// waitForStart returns when the controller may start: no custom resource
// definition of our group exists, and the API group is served. It waits for a
// hub and for an API that are not there yet. The mapper that it returns knows
// these kinds: another one could still get a list without them, since every
// kube-apiserver gathers what extension servers serve at its own pace.
func waitForStart(ctx context.Context, hub *rest.Config, served []string, timeout time.Duration) (meta.RESTMapper, error) {
	checks, err := newStartChecks(hub, served)
	if err != nil {
		return nil, err
	}

	ctx, cancel := context.WithTimeoutCause(ctx, timeout, errors.New("gave up after --start-timeout"))
	defer cancel()

	var (
		logged time.Time
		reason error
	)

	for {
		err := checks.run(ctx)
		if err == nil {
			return checks.mapper, nil
		}

		if errors.Is(err, errRefused) {
			return nil, err
		}

		// A look that the end has cut short says less than the one before.
		if reason == nil || ctx.Err() == nil {
			reason = err
		}

		if time.Since(logged) >= logEvery {
			logged = time.Now()

			klog.FromContext(ctx).Info("waiting for the API", "reason", reason.Error())
		}

		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("wait for the API: %w: %w", context.Cause(ctx), reason)
		case <-time.After(retryPause):
		}
	}
}

// startChecks asks the hub.
type startChecks struct {
	definitions metadata.Getter
	mapper      meta.RESTMapper
	served      []string // resources that have to be
}

func newStartChecks(hub *rest.Config, served []string) (*startChecks, error) {
	bounded := rest.CopyConfig(hub)
	bounded.Timeout, bounded.QPS = callTimeout, -1 // the looks have pauses of their own

	transport, err := rest.HTTPClientFor(bounded)
	if err != nil {
		return nil, fmt.Errorf("start-up check: %w", err)
	}

	client, err := metadata.NewForConfigAndClient(bounded, transport)
	if err != nil {
		return nil, fmt.Errorf("start-up check: %w", err)
	}

	mapper, err := apiutil.NewDynamicRESTMapper(bounded, transport)
	if err != nil {
		return nil, fmt.Errorf("start-up check: %w", err)
	}

	return &startChecks{
		definitions: client.Resource(schema.GroupVersionResource{
			Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions",
		}),
		mapper: mapper, served: served,
	}, nil
}

func (c *startChecks) run(ctx context.Context) error {
	if err := c.refuseDefinitions(ctx); err != nil {
		return err
	}

	return c.findAPI()
}

// refuseDefinitions fails if custom resource definitions of our group exist, or
// if it may not look for them.
func (c *startChecks) refuseDefinitions(ctx context.Context) error {
	found, err := c.findDefinitions(ctx)
	if apierrors.IsForbidden(err) {
		return fmt.Errorf("%w: it may not look for custom resource definitions of the group %s, which would collide with this API; "+
			"bind its service account to the ClusterRole %s (artifacts/kustomize/base/rbac-controller.yaml): %w",
			errRefused, v1alpha1.GroupName, startRole, err)
	}

	if err != nil {
		return err
	}

	if len(found) > 0 {
		return fmt.Errorf("%w: %s", errRefused, collision(found))
	}

	return nil
}

// findAPI fails until the API group is served with all its kinds.
func (c *startChecks) findAPI() error {
	for _, kind := range c.served {
		if _, err := c.mapper.KindFor(v1alpha1.SchemeGroupVersion.WithResource(kind)); err != nil {
			return fmt.Errorf("the hub does not serve %s in %s yet (APIService v1alpha1.%s): %w",
				kind, v1alpha1.SchemeGroupVersion, v1alpha1.GroupName, err)
		}
	}

	return nil
}
