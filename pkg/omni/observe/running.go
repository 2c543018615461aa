package observe

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"omni.texashpc.com/omni-cluster-operator/pkg/foreign/redact"
)

// Reasons of Running, valid as a condition's reason.
const (
	ReasonRunning               = "Running"
	ReasonNotCreated            = "NotCreated"
	ReasonDestroying            = "Destroying"
	ReasonStatusPending         = "StatusPending"
	ReasonScalingUp             = "ScalingUp"
	ReasonScalingDown           = "ScalingDown"
	ReasonKubernetesUpgrading   = "KubernetesUpgrading"
	ReasonTalosUpgrading        = "TalosUpgrading"
	ReasonUpgradeFailed         = "UpgradeFailed"
	ReasonControlPlaneNotReady  = "ControlPlaneNotReady"
	ReasonKubernetesAPINotReady = "KubernetesAPINotReady"
	ReasonMachineSetsNotReady   = "MachineSetsNotReady"
	ReasonManifestsNotApplied   = "ManifestsNotApplied"
)

// Running decides whether a cluster runs as configured, and returns a reason (one of the Reason... constants) and a
// message for people. It is a pure function, and strict: Omni's own assessment may be true while the Kubernetes API
// answers 5xx, while an upgrade runs, before Omni has noticed a change, and for minutes after machines died. For a new
// cluster, call KubernetesSeenReady, too.
func Running(s Status) (ok bool, reason, message string) {
	for _, rule := range []func(Status) (string, string){
		judgeExistence, judgeUpgrades, judgeScaling, judgeControlPlane, judgeSets, judgeManifests,
	} {
		if reason, message = rule(s); reason != "" {
			return false, reason, redact.Bounded(message+unregisteredMachines(s), redact.MaxBytes)
		}
	}

	return true, ReasonRunning, fmt.Sprintf("Omni runs the cluster: %d of %d machines healthy", s.Machines.Healthy, s.Machines.Total)
}

func judgeExistence(s Status) (reason, message string) {
	switch {
	case !s.Exists:
		return ReasonNotCreated, "the cluster does not exist in Omni"
	case s.TearingDown, s.Phase == "Destroying":
		return ReasonDestroying, "Omni destroys the cluster"
	case !s.Known:
		return ReasonStatusPending, "Omni has not worked out the cluster's status yet"
	}

	return "", ""
}

func judgeUpgrades(s Status) (reason, message string) {
	for _, upgrade := range []struct {
		name, reason, wanted string
		Upgrade
	}{
		{"Kubernetes", ReasonKubernetesUpgrading, s.KubernetesVersion, s.Kubernetes},
		{"Talos", ReasonTalosUpgrading, s.TalosVersion, s.Talos},
	} {
		switch upgrade.Phase {
		case "Failed":
			return ReasonUpgradeFailed, gaveUp(upgrade.name, upgrade.Upgrade)
		case "Upgrading", "Reverting", "UpdatingMachineSchematics":
			message := upgrade.name + ": " + underWay(upgrade.Upgrade)
			if upgrade.reason == ReasonTalosUpgrading {
				message += obstacles(s)
			}

			return upgrade.reason, message
		case "Done":
			// Omni has not started the upgrade yet if the reached version is not the wanted one.
			if upgrade.Version != "" && upgrade.wanted != "" && upgrade.Version != upgrade.wanted {
				return upgrade.reason, fmt.Sprintf("%s: %s is to become %s", upgrade.name, upgrade.Version, upgrade.wanted)
			}
		}
	}

	return "", ""
}

// underWay tells what an upgrade does, what it waits for, and which error it goes on trying with.
func underWay(upgrade Upgrade) string {
	text := strings.TrimSuffix(upgrade.Phase+" "+upgrade.Step, " ")
	if upgrade.Error != "" {
		text += "; the last error: " + upgrade.Error
	}

	return text
}

// obstacles tells what an upgrade of Talos may stand on: a check that failed, machines that report an error (Omni does not try
// again what an installer calls permanent), or a node that is drained. Omni drains those of Talos 1.13 and later before the reboot.
func obstacles(s Status) string {
	text := ""
	if len(s.FailedChecks) > 0 {
		text += "; failed health check " + firstOf(s.FailedChecks[0], len(s.FailedChecks))
	}

	for _, set := range s.MachineSets {
		text += refusingMachines(s.MachineList, set.ID, "reports an error")
	}

	if strings.Contains(strings.ToLower(s.Talos.Step+" "+s.Talos.Error), "drain") {
		text += "; if it stays there, look for a PodDisruptionBudget in the cluster that allows no disruption: `kubectl get pdb -A`"
	}

	return text
}

// UpgradeTimes is when Omni last wrote of the upgrades of a cluster, by its clock; zero if it has not.
type UpgradeTimes struct{ Kubernetes, Talos time.Time }

// TimesOfUpgrades returns when Omni last wrote of the upgrades of a cluster.
func TimesOfUpgrades(s Status) UpgradeTimes {
	return UpgradeTimes{Kubernetes: s.Kubernetes.Updated, Talos: s.Talos.Updated}
}

// GivenUp returns the message about an upgrade that Omni gave up later than it wrote of it before; empty if it gave none up
// since. For some time after a new version was written, Omni still says what became of the one before.
func GivenUp(s Status, before UpgradeTimes) string {
	failed := func(upgrade Upgrade, before time.Time) bool {
		return upgrade.Phase == "Failed" && upgrade.Updated.After(before)
	}

	switch {
	case failed(s.Kubernetes, before.Kubernetes):
		return redact.Bounded(gaveUp("Kubernetes", s.Kubernetes), redact.MaxBytes)
	case failed(s.Talos, before.Talos):
		return redact.Bounded(gaveUp("Talos", s.Talos), redact.MaxBytes)
	default:
		return ""
	}
}

func gaveUp(name string, upgrade Upgrade) string {
	return fmt.Sprintf("the %s upgrade failed: %s", name, upgrade.Error)
}

func judgeScaling(s Status) (reason, message string) {
	for _, set := range s.MachineSets {
		switch {
		case set.TearingDown:
			return ReasonScalingDown, fmt.Sprintf("machine set %q is being destroyed", set.Name)
		case set.Phase == "Failed":
			return ReasonMachineSetsNotReady, failedSet(set)
		case !set.Known:
			return ReasonStatusPending, fmt.Sprintf("Omni has not worked out the status of machine set %q yet", set.Name)
		case set.Desired > set.Machines.Requested:
			return ReasonScalingUp, scaling(set)
		case set.Desired < set.Machines.Requested:
			return ReasonScalingDown, scaling(set)
		}
	}

	switch s.Phase {
	case "ScalingUp":
		return ReasonScalingUp, count(s) + shortSets(s)
	case "ScalingDown":
		return ReasonScalingDown, count(s)
	case "Running":
		return "", ""
	}

	return ReasonStatusPending, "Omni gives no phase for the cluster yet"
}

// failedSet says why Omni does nothing with a set, such as a control plane without a machine. The cluster has no phase then.
func failedSet(set MachineSet) string {
	text := fmt.Sprintf("machine set %q has failed: %s", set.Name, cmp.Or(set.Error, "Omni does not say why"))
	if set.Class != "" && set.Machines.Total == 0 {
		text += "; " + classHint(set)
	}

	return text
}

func scaling(set MachineSet) string {
	return fmt.Sprintf("machine set %q goes from %d to %d machines", set.Name, set.Machines.Requested, set.Desired)
}

func count(s Status) string {
	return fmt.Sprintf("%d of %d requested machines belong to the cluster, %d are connected, %d healthy",
		s.Machines.Total, s.Machines.Requested, s.Machines.Connected, s.Machines.Healthy)
}

// shortSets names the sets that lack machines, and what to check.
func shortSets(s Status) string {
	text := ""

	for _, set := range s.MachineSets {
		if set.Machines.Total >= set.Machines.Requested {
			continue
		}

		text += fmt.Sprintf("; machine set %q has %d of %d", set.Name, set.Machines.Total, set.Machines.Requested)

		if set.Class != "" {
			text += ": " + classHint(set)
		} else {
			text += ": check that the listed machines are registered in Omni, and free"
		}
	}

	return text
}

func judgeControlPlane(s Status) (reason, message string) {
	switch {
	case !s.ControlPlaneReady, !s.Available:
		message = "the control plane is not ready"
		if len(s.ControlPlaneProblems) > 0 {
			message += ": " + strings.Join(s.ControlPlaneProblems, "; ")
		}

		for _, set := range s.MachineSets {
			if set.ControlPlane {
				message += refusingMachines(s.MachineList, set.ID, "refuses its configuration")
			}
		}

		return ReasonControlPlaneNotReady, message
	case !s.KubernetesAPIReady:
		return ReasonKubernetesAPINotReady, "the Kubernetes API is not ready"
	case s.LoadBalancerKnown && !s.LoadBalancerHealthy:
		return ReasonKubernetesAPINotReady, "Omni's load balancer has no healthy Kubernetes API behind it"
	}

	return "", ""
}

func judgeSets(s Status) (reason, message string) {
	var waiting []string

	for _, set := range s.MachineSets {
		if set.Ready && set.Phase == "Running" {
			continue
		}

		line := fmt.Sprintf("%s (%s, %d of %d healthy)", set.Name, set.Phase, set.Machines.Healthy, set.Machines.Requested)
		if set.Error != "" {
			line += ": " + set.Error
		}

		line += refusingMachines(s.MachineList, set.ID, "refuses its configuration")

		waiting = append(waiting, line)
	}

	if len(waiting) > 0 {
		return ReasonMachineSetsNotReady, "machine sets are not ready: " + strings.Join(waiting, "; ")
	}

	if !s.Ready {
		return ReasonMachineSetsNotReady, "Omni does not say that the cluster is ready: " + count(s)
	}

	return "", ""
}

// refusingMachines names the machines of a set that do not take their configuration, or their Talos; what says so of one. Omni's text about it may quote the
// configuration, with what came from Secrets, so it says where to read that.
func refusingMachines(machines []Machine, set, what string) string {
	var ids []string

	for _, machine := range machines {
		if machine.MachineSet == set && machine.RefusesConfiguration() {
			ids = append(ids, machine.ID)
		}
	}

	if len(ids) == 0 {
		return ""
	}

	return fmt.Sprintf("; machine %s %s: `omnictl get clustermachinestatus %s -o yaml` has the error (lastconfigerror)",
		andMore(ids), what, ids[0])
}

// unregisteredMachines names the listed machines that Omni does not know. The counts may hide them: a machine that leaves makes up
// for one that never came.
func unregisteredMachines(s Status) string {
	var ids []string

	for _, machine := range s.MachineList {
		if !machine.Registered {
			ids = append(ids, machine.ID)
		}
	}

	if len(ids) == 0 {
		return ""
	}

	return fmt.Sprintf("; not registered in Omni: machine %s", andMore(ids))
}

// andMore returns the first of some IDs, and how many there are besides.
func andMore(ids []string) string { return firstOf(ids[0], len(ids)) }

// firstOf returns the first of a number of things, and how many there are besides: in parentheses, for the sentence goes on.
func firstOf(first string, count int) string {
	if count == 1 {
		return first
	}

	return fmt.Sprintf("%s (and %d more)", first, count-1)
}

// KubernetesSeenReady reports whether there is evidence that Kubernetes ever worked in this cluster; if not, the
// message names what is missing. A new cluster needs this check: its load balancer reports "healthy" before its first
// check. Omni creates a cluster's KubernetesUpgradeStatus when it has read the nodes from the Kubernetes API. Once
// every node was ready, its phase is Done, and it has the version that was reached.
func KubernetesSeenReady(s Status) (ok bool, message string) {
	if s.Kubernetes.Phase == "Done" || s.Kubernetes.Version != "" {
		return true, ""
	}

	message = "Omni has not seen Kubernetes work yet: it has no KubernetesUpgradeStatus of this cluster"
	if s.Kubernetes.Known {
		message = "Omni has not seen Kubernetes work yet: the KubernetesUpgradeStatus of this cluster was not in phase Done so far, it is " + underWay(s.Kubernetes)
	}

	return false, message + ". It comes, and is Done, when the Kubernetes API has answered Omni and every node is ready; the load balancer " +
		"of a new cluster says healthy before its first check. If this lasts for more than some minutes, look in Omni at etcd and the " +
		"Kubernetes API server on the control plane machines, and at nodes that are not ready"
}
