package kubeclient

import (
	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/kube"
)

// Choose makes an action ask before it removes objects: due are those that the former manifest of the release names and
// the new one does not, and only what choose returns is removed. An error of choose ends the update before it changes
// anything. What an uninstall removes is not asked about. The error is that of a configuration without the client that
// Helm makes.
func Choose(config *action.Configuration, choose func(due kube.ResourceList) (kube.ResourceList, error)) error {
	client, err := clientOf(config)
	if err != nil {
		return err
	}

	config.KubeClient = &choosingClient{Client: client, choose: choose}

	return nil
}

// choosingClient is Helm's client; what an update removes is chosen.
type choosingClient struct {
	*kube.Client

	choose func(due kube.ResourceList) (kube.ResourceList, error)
}

// Update implements kube.Interface. An object that stays in the manifest keeps its original, which Helm needs for a
// three-way merge.
func (c *choosingClient) Update(originals, targets kube.ResourceList, options ...kube.ClientUpdateOption) (*kube.Result, error) {
	removed, err := c.choose(originals.Difference(targets))
	if err != nil {
		return &kube.Result{}, err // Helm looks into the result
	}

	return c.Client.Update(append(originals.Intersect(targets), removed...), targets, options...)
}
