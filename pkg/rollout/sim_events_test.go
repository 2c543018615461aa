package rollout_test

import (
	"fmt"
	"time"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// commit changes what all clusters ask for, one after another in random order, within a quarter of an hour: a version
// of Kubernetes or Talos, or a patch.
func (w *world) commit(number int) {
	change := func(c *content) { c.kubernetes = fmt.Sprintf("v1.%d.0", 36+number) }

	switch w.random.IntN(3) {
	case 0:
		change = func(c *content) { c.talos = fmt.Sprintf("v1.%d.0", 14+number) }
	case 1:
		w.patches++
		patch := w.patches
		change = func(c *content) { c.patch = patch }
	}

	w.checker.commits++

	for _, c := range w.clusters {
		w.after(0, 15*time.Minute, func() {
			change(&c.asks)
			c.askedAt = w.now
		})
	}
}

// mendLater repairs a cluster that a change broke: by another patch in Git, by the version before, or by hand.
func (w *world) mendLater(c *cluster) {
	w.after(time.Hour, 12*time.Hour, func() { w.mend(c) })

	// If that does not help, somebody repairs it by hand.
	w.at(w.now.Add(5*24*time.Hour), func() {
		if failure := c.status.Failure; failure != nil && w.now.Sub(failure.Time.Time) >= 5*24*time.Hour {
			c.broken, c.overridden = false, c.hash() != ""
			c.since = w.now

			w.well(c)
		}
	})
}

func (w *world) mend(c *cluster) {
	if c.status.Failure == nil {
		return
	}

	switch older := w.older(c); {
	case w.random.IntN(3) == 0:
		c.broken, c.since = false, w.now
		w.well(c)
	case w.random.IntN(2) == 0 && older != "":
		c.asks.kubernetes, c.askedAt = older, w.now
	default:
		w.patches++
		c.asks.patch, c.askedAt = w.patches, w.now
	}
}

// older returns a version that all stages before the cluster's have proved, and that the cluster does not ask for.
func (w *world) older(c *cluster) string {
	counts := map[string]int{}

	for _, stage := range w.policy.Status.Stages {
		for _, one := range stage.Qualified {
			if counts[one.Kubernetes]++; one.Kubernetes != "" && one.Kubernetes != c.asks.kubernetes && counts[one.Kubernetes] >= c.stage {
				return one.Kubernetes
			}
		}
	}

	return ""
}

// any is one of the clusters.
func (w *world) any() *cluster { return w.clusters[w.random.IntN(len(w.clusters))] }

func (w *world) kill(c *cluster, least, most time.Duration) {
	c.dead = true
	w.checker.unwell(c.name)
	w.after(least, most, func() {
		c.dead, c.since = false, w.now
		w.well(c)
	})
}

func (w *world) pause(c *cluster, least, most time.Duration) {
	c.paused = true
	w.checker.pause(c.name, true)
	w.after(least, most, func() {
		c.paused = false

		if w.named(c.name) == c {
			w.checker.pause(c.name, false)
		}
	})
}

// well tells the checker that a cluster is healthy again. The cluster may have been recreated meanwhile.
func (w *world) well(c *cluster) {
	if w.named(c.name) == c && c.healthy() {
		w.checker.well(c.name, w.now)
	}
}

// again deletes a cluster and creates it again under its name.
func (w *world) again(c *cluster) {
	w.remove(c)
	w.after(time.Minute, time.Hour, func() { w.add(c.name, c.stage, c.asks) })
}

func (w *world) relabel(c *cluster, stage int) {
	c.stage = stage
	w.checker.relabelled(c.name, stage)
}

func (w *world) hold(on bool) {
	w.edit(func(p *v1alpha1.OmniRolloutPolicy) { p.Spec.Hold = on })
	w.checker.hold(on, w.now)
}

// edit changes the policy's spec.
func (w *world) edit(change func(*v1alpha1.OmniRolloutPolicy)) {
	w.policy = w.policy.DeepCopy()
	change(w.policy)
	w.policy.Generation++
}

// lose deletes the policy's status, as a restore would.
func (w *world) lose() {
	w.policy = w.policy.DeepCopy()
	w.policy.Status = v1alpha1.OmniRolloutPolicyStatus{}
}

func (w *world) promote(stage int, until time.Time) {
	w.policy = w.policy.DeepCopy()
	w.policy.Annotations = map[string]string{v1alpha1.AnnotationPromotePrefix + w.policy.Spec.Stages[stage].Name: until.Format(time.RFC3339)}
	w.checker.promoted = map[int]time.Time{stage: until}
	w.dirty = true
}
