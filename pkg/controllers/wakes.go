package controllers

import (
	"time"

	"omni.texashpc.com/omni-cluster-operator/pkg/controllers/omnicluster"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/hubs"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/trigger"
)

const (
	// wakeDelay gathers a burst of changes in Omni into one look at the cluster.
	wakeDelay = 100 * time.Millisecond
	// wakeSpacing bounds the looks, and so the status writes, that a storm of changes in Omni costs one cluster. It
	// grows to wakeLongest while the cluster does not come to rest, such as one that boots: each of its statuses may
	// cost a write to each of its documents, too. A change shows after wakeLongest at the latest.
	wakeSpacing = 400 * time.Millisecond
	wakeLongest = 2 * time.Second
	// maxRemotes is how many changed clusters of one Omni may wait to be looked up. An Omni chooses their names, and can
	// send them faster than they are looked up. Beyond it all OmniClusters of the connection are looked at.
	maxRemotes = 1000
	// seenDelay gathers the clusters that a new process sees first into one run of their policy.
	seenDelay = time.Second
)

func wakePacing() trigger.Pacing {
	return trigger.Pacing{Delay: wakeDelay, Spacing: wakeSpacing, LongestSpacing: wakeLongest}
}

// newClusterChanged returns the trigger for changed clusters in Omni. clusterHealth is the one that looks at all
// OmniClusters of a connection.
func newClusterChanged(clusterHealth *trigger.Trigger[string]) *trigger.Trigger[omnicluster.Remote] {
	return trigger.NewBounded(wakePacing(), trigger.Bound[omnicluster.Remote]{
		Keys:    maxRemotes,
		GroupOf: func(remote omnicluster.Remote) string { return remote.Connection },
		Instead: clusterHealth.Fire,
	})
}

// newWell returns what the controller of OmniCluster tells that of OmniRolloutPolicy; nil if there are no rollouts.
func newWell(options Options) *hubs.Well {
	if !options.Rollouts {
		return nil
	}

	return hubs.NewWell(trigger.Pacing{Delay: seenDelay})
}
