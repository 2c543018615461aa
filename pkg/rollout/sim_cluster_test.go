package rollout_test

import (
	"fmt"
	"reflect"
	"time"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/rollout"
)

// content is what a cluster's objects ask for, or what Omni has of them.
type content struct {
	kubernetes, talos string
	patch             int
}

// cluster models an OmniCluster, its controller, and the cluster in Omni.
type cluster struct {
	name, uid, zone   string
	stage             int
	asks, has         content
	status            v1alpha1.OmniClusterRollout
	joined            bool // it was Ready once
	paused            bool
	dead              bool // out of reach, or broken for reasons of its own
	broken            bool // by a change
	working, breaks   bool // Omni is at work, and will not get done
	ends, since       time.Time
	overridden        bool
	askedAt, failedAt time.Time
}

func (c *cluster) healthy() bool { return c.joined && !c.dead && !c.broken && !c.working }

// member is what a policy sees of the cluster.
func (c *cluster) member() rollout.Member {
	return rollout.Member{
		Name: c.name, UID: c.uid, Zone: c.zone, Stage: c.stage, Rollout: *c.status.DeepCopy(), Healthy: c.healthy(), Ready: c.healthy(), Since: c.since,
		Paused: c.paused, WantedKubernetes: c.asks.kubernetes, WantedTalos: c.asks.talos, Kubernetes: c.has.kubernetes, Talos: c.has.talos,
	}
}

func (c *cluster) kinds() (kinds []v1alpha1.ChangeKind) {
	if c.asks.kubernetes != c.has.kubernetes {
		kinds = append(kinds, v1alpha1.ChangeKubernetesVersion)
	}

	if c.asks.talos != c.has.talos {
		kinds = append(kinds, v1alpha1.ChangeTalosVersion)
	}

	if c.asks.patch != c.has.patch {
		kinds = append(kinds, v1alpha1.ChangeMachineConfig)
	}

	return kinds
}

// hash is the hash of the changes that wait; empty if there are none.
func (c *cluster) hash() string {
	if c.asks == c.has {
		return ""
	}

	return fmt.Sprint(c.uid, c.has, c.asks)
}

// omni continues the work in Omni.
func (c *cluster) omni(w *world) {
	if !c.working || c.dead || w.now.Before(c.ends) {
		return
	}

	c.working, c.broken, c.since = false, c.breaks, w.now
	c.joined = true

	if !c.broken {
		w.checker.well(c.name, w.now)
	}
}

// reconcile is one run of the OmniCluster's controller. It reports whether the status changed.
func (c *cluster) reconcile(w *world) bool {
	before := c.status
	c.status.Policy, c.status.Governed, c.status.Reason = w.policy.Name, c.joined, ""

	ticket := c.ticket(w)

	switch {
	case !c.joined: // its changes are free
		c.status.State, c.has = "", c.asks
	case c.paused:
		if before.State == v1alpha1.RolloutHeld {
			c.status.State = ""
		}

		if before.State != v1alpha1.RolloutAdmitted {
			c.giveBack(w, ticket)
		}
	case before.State == v1alpha1.RolloutAdmitted:
		c.goOn(w)
	default:
		c.ask(w, ticket)
	}

	return !reflect.DeepEqual(before, c.status)
}

// goOn records how the turn ended, if it has.
func (c *cluster) goOn(w *world) {
	switch {
	case c.broken || !c.healthy() && !w.now.Before(c.status.AdmittedSince.Add(w.deadline)):
		c.end(w, c.status.Hash, v1alpha1.RolloutUnsuccessful)
		c.status.State = v1alpha1.RolloutFailed
		c.status.Failure = &v1alpha1.RolloutFailure{Hash: c.status.Hash, Time: *seconds(w.now), Message: "broken"}
		c.failedAt = w.now
		w.checker.failed(c.name, w.now)
		w.mendLater(c)
	case c.healthy() && w.now.Sub(c.since) >= time.Minute:
		c.end(w, c.status.Hash, v1alpha1.RolloutDone)
		c.status.State, c.status.Hash, c.status.Failure, c.status.HeldSince = "", "", nil, nil
		w.checker.done(c.name, w.now)
	}
}

// ask records what the changes wait for, or begins with them.
func (c *cluster) ask(w *world, ticket *v1alpha1.RolloutTicket) {
	hash := c.hash()
	c.status.Kinds = c.kinds()

	if hash == "" {
		c.giveBack(w, ticket)

		c.status.State, c.status.Hash, c.status.HeldSince = "", "", nil
		if c.status.Failure != nil && c.healthy() {
			c.status.Failure = nil
			w.checker.mended(c.name, w.now)
		}

		if c.status.Failure != nil {
			c.status.State = v1alpha1.RolloutFailed
		}

		return
	}

	if c.status.HeldSince == nil {
		c.status.HeldSince = seconds(w.now)
	}

	if c.status.Hash != hash || c.status.ChangedSince == nil {
		c.status.ChangedSince = seconds(w.now)
	}

	c.status.State, c.status.Hash = v1alpha1.RolloutHeld, hash

	switch {
	case c.overridden:
		c.begin(w)
	case ticket != nil && ticket.Hash == hash && ticket.Stage == w.policy.Spec.Stages[c.stage].Name && w.read().Judge(c.member(), w.now).Reason == "":
		c.begin(w)
	default:
		c.giveBack(w, ticket)
	}
}

func (c *cluster) begin(w *world) {
	w.checker.began(c, w.now)

	c.status.State, c.status.AdmittedSince = v1alpha1.RolloutAdmitted, seconds(w.now)
	c.has, c.working, c.broken, c.overridden = c.asks, true, false, false
	c.ends, c.breaks = w.now.Add(w.between(10*time.Minute, 70*time.Minute)), w.random.IntN(100) < w.fails
}

// ticket returns the cluster's ticket from the policy that it has not used yet.
func (c *cluster) ticket(w *world) *v1alpha1.RolloutTicket {
	for _, ticket := range w.policy.Status.Admitted {
		if ticket.Cluster == c.name && ticket.UID == c.uid && !rollout.IsUsed(ticket, c.status) {
			return &ticket
		}
	}

	return nil
}

func (c *cluster) giveBack(w *world, ticket *v1alpha1.RolloutTicket) {
	if ticket != nil {
		c.end(w, ticket.Hash, v1alpha1.RolloutReturned)
		w.returned++
	}
}

func (c *cluster) end(w *world, hash string, result v1alpha1.RolloutOutcome) {
	c.status.Last = &v1alpha1.RolloutResult{Hash: hash, Result: result, Time: *seconds(w.now.Truncate(time.Second))}
}

// due is when the cluster has to be reconciled again without any event; zero if never.
func (c *cluster) due(w *world) time.Time {
	switch {
	case c.status.State != v1alpha1.RolloutAdmitted && !c.working:
		return time.Time{}
	case c.working && !c.dead && c.ends.After(w.now):
		return c.ends
	case c.healthy() && c.since.Add(time.Minute).After(w.now):
		return c.since.Add(time.Minute)
	case c.status.AdmittedSince != nil && c.status.AdmittedSince.Add(w.deadline).After(w.now):
		return c.status.AdmittedSince.Add(w.deadline)
	default:
		return time.Time{}
	}
}
