package app

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

const (
	// startPause is the pause between two attempts to reach an API that does not answer yet.
	startPause = 2 * time.Second
	// logEvery is how often the log repeats what the start waits for.
	logEvery = 15 * time.Second
	// callTimeout bounds one call of the start-up checks.
	callTimeout = 15 * time.Second
)

// errRefused ends the start at once, because waiting does not help.
var errRefused = errors.New("omni-controller does not start")

// kinds are our resources that the controller reads, except for those that a flag turns off.
func kinds() []string {
	return []string{
		"omniconnections", "omniclusters", "omnicontrolplanes", "omniworkers", "omnimachines",
		"omnikubeconfigexports", "omnisecretsyncs", "omnihelmreleases",
	}
}

// served returns the resources that a controller with these flags reads.
func (o *Options) served() []string {
	if o.Rollouts {
		return append(kinds(), rolloutPolicies)
	}

	return kinds()
}

// waitForStart returns when the controller may start: there is no custom resource definition of our group, the API group is
// served, the objects of the served namespace (or of all) can be read, and the account has the rights to our kinds that the
// controller needs. It waits for a hub or an API that does not answer yet. It waits for rights, too: a Pod of a new version that
// lacks one is not ready then, and the one before goes on with the work. The returned mapper knows our kinds. A new mapper might
// still get a list without them, because every kube-apiserver refreshes its list of extension servers at its own pace.
func waitForStart(ctx context.Context, hub *rest.Config, options *Options) (meta.RESTMapper, error) {
	checks, err := newStartChecks(hub, options.served(), options.servedNamespace())
	if err != nil {
		return nil, err
	}

	checks.rights = ownRightsOf(options.servedNamespace(), options)

	ctx, cancel := context.WithTimeoutCause(ctx, options.StartTimeout, errors.New("gave up after --start-timeout"))
	defer cancel()

	var logged time.Time

	err = until(ctx, startPause, checks.run, func(reason error) {
		if time.Since(logged) >= logEvery {
			logged = time.Now()

			klog.FromContext(ctx).Info("waiting for the API", "reason", reason.Error())
		}
	})

	switch {
	case err == nil:
		return checks.mapper, nil
	case errors.Is(err, errRefused):
		return nil, err
	default:
		return nil, fmt.Errorf("wait for the API: %w: %w", context.Cause(ctx), err)
	}
}

// startChecks asks the hub the questions of the start.
type startChecks struct {
	definitions metadata.Getter
	mapper      meta.RESTMapper
	objects     metadata.Interface
	account     accountRights
	served      []string                             // resources that have to be
	namespace   string                               // whose objects have to be readable; empty: all
	rights      []authorizationv1.ResourceAttributes // that the account has to have
}

func newStartChecks(hub *rest.Config, served []string, namespace string) (*startChecks, error) {
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

	authorization, err := authorizationclient.NewForConfigAndClient(bounded, transport)
	if err != nil {
		return nil, fmt.Errorf("start-up check: %w", err)
	}

	return &startChecks{
		definitions: client.Resource(schema.GroupVersionResource{
			Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions",
		}),
		mapper: &mappings{RESTMapper: mapper}, objects: client, served: served, namespace: namespace,
		account: accountRights{authorization.SelfSubjectAccessReviews()},
	}, nil
}

func (c *startChecks) run(ctx context.Context) error {
	if err := c.refuseDefinitions(ctx); err != nil {
		return err
	}

	if err := c.findAPI(); err != nil {
		return err
	}

	if err := c.readObjects(ctx); err != nil {
		return err
	}

	return c.findRights(ctx)
}

// refuseDefinitions fails if there are custom resource definitions of our group, or if the controller may not look
// for them.
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

// readObjects lists one object of each kind, which takes kube-apiserver, omni-apiserver and its etcd.
func (c *startChecks) readObjects(ctx context.Context) error {
	for _, kind := range c.served {
		resource := c.objects.Resource(v1alpha1.SchemeGroupVersion.WithResource(kind)).Namespace(c.namespace)
		if _, err := resource.List(ctx, metav1.ListOptions{Limit: 1}); err != nil {
			return fmt.Errorf("list %s: %w", kind, err)
		}
	}

	return nil
}

// findRights fails while the account lacks a right. It may be one that is not used before something changes.
func (c *startChecks) findRights(ctx context.Context) error {
	missing, err := c.account.missing(ctx, c.rights)

	switch {
	case len(missing) == 1:
		return fmt.Errorf("the account may not %s", described(missing[0]))
	case len(missing) > 1:
		return fmt.Errorf("the account may not %s, and lacks %d rights more", described(missing[0]), len(missing)-1)
	case apierrors.IsForbidden(err): // the hub lets everybody ask, unless somebody took that back
		return nil
	}

	return err
}

// definitionsInterval is how often a running controller looks for custom resource definitions of its group: eight
// small reads each time.
const definitionsInterval = 20 * time.Second

// errDefinitions ends a running controller.
var errDefinitions = errors.New("omni-controller stops")

// findDefinitions returns the custom resource definitions of our group on the hub, also those that are being deleted.
// They collide with our API, and their objects belong to an operator whose finalizers destroy real clusters.
func (c *startChecks) findDefinitions(ctx context.Context) ([]string, error) {
	var found []string

	for _, kind := range kinds() {
		name := kind + "." + v1alpha1.GroupName

		_, err := c.definitions.Get(ctx, name, metav1.GetOptions{})

		switch {
		case err == nil:
			found = append(found, name)
		case apierrors.IsNotFound(err):
		default:
			return nil, fmt.Errorf("look for CustomResourceDefinition %s: %w", name, err)
		}
	}

	return found, nil
}

// collision explains what definitions of our group mean, and what to do.
func collision(found []string) string {
	return fmt.Sprintf("the custom resource definitions %s exist. They belong to another operator of the same group. "+
		"Do not just delete them: that deletes their objects, and that operator then destroys their clusters. "+
		"Stop that operator, save the objects, remove their finalizers, then delete the definitions and start again; "+
		"docs/how-to/migrate.md has the steps", strings.Join(found, ", "))
}

// definitionsWatch stops the controller when definitions of our group are created while it runs. As long as the
// APIService exists, it serves our API. Without it, kube-apiserver would serve the objects of the definitions under
// our names.
type definitionsWatch struct {
	checks   *startChecks
	interval time.Duration
}

func newDefinitionsWatch(hub *rest.Config) (*definitionsWatch, error) {
	checks, err := newStartChecks(hub, nil, "")
	if err != nil {
		return nil, err
	}

	return &definitionsWatch{checks: checks, interval: definitionsInterval}, nil
}

// Start implements manager.Runnable. A failed check is logged once and does not stop the controller: the hub may be
// unavailable, or its roles may be in the middle of an update.
func (w *definitionsWatch) Start(ctx context.Context) error {
	ticker := time.NewTicker(w.interval)
	defer ticker.Stop()

	told := ""

	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}

		found, err := w.checks.findDefinitions(ctx)

		switch {
		case len(found) > 0:
			return fmt.Errorf("%w: %s", errDefinitions, collision(found))
		case err == nil:
			told = ""
		case ctx.Err() == nil && told != err.Error():
			told = err.Error()

			klog.FromContext(ctx).Error(err, "cannot tell whether another operator's definitions collide with this API")
		}
	}
}

// NeedLeaderElection implements manager.LeaderElectionRunnable. Controllers that wait for the lease check as well, so
// that none of them takes over beside the definitions.
func (w *definitionsWatch) NeedLeaderElection() bool { return false }
