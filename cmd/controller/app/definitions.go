package app

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

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
