package observe

import (
	"strings"
	"testing"
	"time"

	"omni.texashpc.com/omni-cluster-operator/pkg/foreign/redact"
)

// runningStatus returns the status of a cluster that runs: one control plane, three workers.
func runningStatus() Status {
	return Status{
		Exists: true, Name: "demo", Known: true, UUID: "u", Phase: "Running", KubernetesVersion: "1.35.0", TalosVersion: "1.13.2",
		Ready: true, Available: true, KubernetesAPIReady: true, ControlPlaneReady: true, ConnectedControlPlanes: true,
		LoadBalancerKnown: true, LoadBalancerHealthy: true,
		Machines:   Machines{Total: 4, Connected: 4, Healthy: 4, Requested: 4},
		Kubernetes: Upgrade{Known: true, Phase: "Done", Version: "1.35.0"},
		Talos:      Upgrade{Known: true, Phase: "Done", Version: "1.13.2"},
		MachineSets: []MachineSet{
			{ID: "demo-control-planes", Name: "control-planes", ControlPlane: true, Desired: 1, Known: true, Phase: "Running", Ready: true, Machines: Machines{Total: 1, Connected: 1, Healthy: 1, Requested: 1}},
			{ID: "demo-workers", Name: "workers", Desired: 3, Known: true, Phase: "Running", Ready: true, Machines: Machines{Total: 3, Connected: 3, Healthy: 3, Requested: 3}},
		},
	}
}

func TestRunning(t *testing.T) {
	for name, test := range map[string]struct {
		edit    func(*Status)
		reason  string
		message string
	}{
		"runs":           {func(*Status) {}, ReasonRunning, "4 of 4 machines healthy"},
		"does not exist": {func(s *Status) { *s = Status{} }, ReasonNotCreated, "does not exist"},
		"is destroyed":   {func(s *Status) { s.TearingDown = true }, ReasonDestroying, "destroys"},
		"says so itself": {func(s *Status) { s.Phase = "Destroying" }, ReasonDestroying, "destroys"},
		"just created":   {func(s *Status) { *s = Status{Exists: true} }, ReasonStatusPending, "not worked out"},
		"no phase":       {func(s *Status) { s.Phase = "Unknown" }, ReasonStatusPending, "no phase"},

		"ready while Kubernetes upgrades": {func(s *Status) {
			s.Kubernetes = Upgrade{Known: true, Phase: "Upgrading", Step: "machine-1: updating kubelet"}
		}, ReasonKubernetesUpgrading, "Kubernetes: Upgrading machine-1: updating kubelet"},
		"an upgrade that goes on trying": {func(s *Status) {
			s.Kubernetes = Upgrade{Known: true, Phase: "Upgrading", Step: "pre-pulling images", Error: "no such image"}
		}, ReasonKubernetesUpgrading, "Kubernetes: Upgrading pre-pulling images; the last error: no such image"},
		"ready while Kubernetes goes back": {func(s *Status) { s.Kubernetes.Phase = "Reverting" }, ReasonKubernetesUpgrading, "Kubernetes: Reverting"},
		"ready before Omni noticed the new version": {
			func(s *Status) { s.KubernetesVersion = "1.35.1" }, ReasonKubernetesUpgrading, "1.35.0 is to become 1.35.1",
		},
		"ready while Talos upgrades":    {func(s *Status) { s.Talos.Phase = "Upgrading" }, ReasonTalosUpgrading, "Talos: Upgrading"},
		"ready while schematics change": {func(s *Status) { s.Talos.Phase = "UpdatingMachineSchematics" }, ReasonTalosUpgrading, "Talos: UpdatingMachineSchematics"},
		"a health check keeps Talos from upgrading": {func(s *Status) {
			s.Talos.Phase, s.FailedChecks = "Upgrading", []string{"smoke: exit code 1, output: no route", "other: failed"}
		}, ReasonTalosUpgrading, "Talos: Upgrading; failed health check smoke: exit code 1, output: no route (and 1 more)"},
		"a health check has failed, and nothing upgrades": {func(s *Status) { s.FailedChecks = []string{"smoke: failed"} }, ReasonRunning, "4 of 4 machines healthy"},
		"a node is drained": {func(s *Status) {
			s.Talos.Phase, s.Talos.Step = "Upgrading", "current machine: m-1: Draining node"
		}, ReasonTalosUpgrading, "Draining node; if it stays there, look for a PodDisruptionBudget"},
		"the installer of a machine has failed for good": {func(s *Status) {
			s.Talos.Phase = "Upgrading"
			s.MachineList = []Machine{{ID: "m-1", MachineSet: "demo-workers", Registered: true, Error: "installer: no space left on device"}}
		}, ReasonTalosUpgrading, "machine m-1 reports an error: `omnictl get clustermachinestatus m-1 -o yaml` has the error"},
		"new Talos version, not noticed": {func(s *Status) { s.TalosVersion = "1.13.3" }, ReasonTalosUpgrading, "1.13.2 is to become 1.13.3"},
		"failed upgrade": {
			func(s *Status) { s.Talos = Upgrade{Known: true, Phase: "Failed", Error: "no image"} }, ReasonUpgradeFailed, "Talos upgrade failed: no image",
		},
		"upgrades unknown are no obstacle": {func(s *Status) { s.Kubernetes, s.Talos = Upgrade{}, Upgrade{Known: true, Phase: "Unknown"} }, ReasonRunning, ""},

		"ready before Omni noticed more machines": {func(s *Status) { s.MachineSets[1].Desired = 5 }, ReasonScalingUp, `"workers" goes from 3 to 5`},
		"ready before Omni noticed fewer":         {func(s *Status) { s.MachineSets[1].Desired = 1 }, ReasonScalingDown, `"workers" goes from 3 to 1`},
		"ready before Omni noticed a new set": {
			func(s *Status) { s.MachineSets = append(s.MachineSets, MachineSet{Name: "more", Desired: 1}) }, ReasonStatusPending, `"more"`,
		},
		"a set goes": {func(s *Status) { s.MachineSets[1].TearingDown = true }, ReasonScalingDown, `"workers" is being destroyed`},
		"scaling up": {func(s *Status) { s.Phase, s.Machines.Healthy = "ScalingUp", 2 }, ReasonScalingUp, "2 healthy"},
		"scaling up, the class is empty": {func(s *Status) {
			s.Phase, s.Machines.Total, s.MachineSets[1].Machines.Total, s.MachineSets[1].Class = "ScalingUp", 3, 2, "big"
		}, ReasonScalingUp, `3 of 4 requested machines belong to the cluster, 4 are connected, 4 healthy; machine set "workers" has 2 of 3: check that machine class "big" has free machines`},
		"scaling up, a provider fails": {
			shortOf(Requests{Provider: "kubevirt", Failing: 2, FirstFailing: "demo-w-abc"}), ReasonScalingUp,
			"4 healthy; machine set \"workers\" has 1 of 3: the provider \"kubevirt\" fails to provision 2; `omnictl get clustermachinerequeststatus demo-w-abc -o yaml` has the error",
		},
		"scaling up, a provider does all sorts of things": {
			shortOf(Requests{Provider: "kubevirt", Failing: 1, Provisioning: 2, Pending: 3, Provisioned: 4, FirstFailing: "demo-w-abc"}), ReasonScalingUp,
			`the provider "kubevirt" fails to provision 1, is provisioning 2, has not started on 3, has provisioned 4 that do not belong to the cluster yet; ` +
				"`omnictl get clustermachinerequeststatus demo-w-abc",
		},
		"scaling up, a provider works": {shortOf(Requests{Provider: "kubevirt", Provisioning: 1, Provisioned: 1}), ReasonScalingUp,
			`the provider "kubevirt" is provisioning 1, has provisioned 1 that do not belong to the cluster yet`},
		"scaling up, a provider does nothing": {shortOf(Requests{Provider: "kubevirt", Pending: 2}), ReasonScalingUp,
			`the provider "kubevirt" has not started on 2; if this lasts, check that the provider runs`},
		"scaling up, made machines do not come": {shortOf(Requests{Provider: "kubevirt", Provisioned: 2}), ReasonScalingUp,
			`that do not belong to the cluster yet; if this lasts, check that the machines boot and reach Omni`},
		"a set of a provider has failed": {func(s *Status) {
			shortOf(Requests{Provider: "kubevirt", Provisioning: 2})(s)
			s.MachineSets[1].Phase, s.MachineSets[1].Machines.Total = "Failed", 0
		}, ReasonMachineSetsNotReady, `has failed: Omni does not say why; the provider "kubevirt" is provisioning 2`},
		"scaling up, a machine is missing": {func(s *Status) {
			s.Phase, s.Machines.Total, s.MachineSets[1].Machines.Total = "ScalingUp", 3, 2
		}, ReasonScalingUp, `; machine set "workers" has 2 of 3: check that the listed machines are registered in Omni, and free`},
		"scaling down": {func(s *Status) { s.Phase = "ScalingDown" }, ReasonScalingDown, "4 of 4"},

		"control plane not ready": {func(s *Status) {
			s.ControlPlaneReady, s.ControlPlaneProblems = false, []string{"Etcd: 1 of 3 members healthy"}
		}, ReasonControlPlaneNotReady, "Etcd: 1 of 3"},
		"not available":         {func(s *Status) { s.Available = false }, ReasonControlPlaneNotReady, "control plane"},
		"API not ready":         {func(s *Status) { s.KubernetesAPIReady = false }, ReasonKubernetesAPINotReady, "API is not ready"},
		"ready, but 502":        {func(s *Status) { s.LoadBalancerHealthy = false }, ReasonKubernetesAPINotReady, "load balancer"},
		"load balancer unknown": {func(s *Status) { s.LoadBalancerKnown, s.LoadBalancerHealthy = false, false }, ReasonRunning, ""},

		"a set not ready": {func(s *Status) {
			s.MachineSets[1].Ready, s.MachineSets[1].Error, s.MachineSets[1].Machines.Healthy = false, "machine x does not answer", 2
		}, ReasonMachineSetsNotReady, "workers (Running, 2 of 3 healthy): machine x does not answer"},
		"a set has failed": {func(s *Status) {
			s.Phase, s.MachineSets[0].Phase, s.MachineSets[0].Error, s.MachineSets[0].Class = "Unknown", "Failed", "it must have a node", "big"
			s.MachineSets[0].Machines, s.MachineSets[0].Desired = Machines{}, 0
		}, ReasonMachineSetsNotReady, `has failed: it must have a node; check that machine class "big" has free machines`},
		"a machine refuses its configuration": {func(s *Status) {
			s.MachineSets[1].ID, s.MachineSets[1].Phase = "demo-workers", "Reconfiguring"
			s.MachineList = []Machine{{ID: "m1", MachineSet: "demo-workers", Registered: true, Error: "the text of a Secret"}, {ID: "m2", MachineSet: "demo-other", Error: "x"},
				{ID: "m3", MachineSet: "demo-workers", Error: "of before", ConfigUpToDate: true}}
		}, ReasonMachineSetsNotReady, "healthy); machine m1 refuses its configuration: `omnictl get clustermachinestatus m1 -o yaml` has the error"},
		"a listed machine is unknown, and the counts hide it": {func(s *Status) {
			s.Phase, s.MachineList = "ScalingUp", []Machine{{ID: "m1", Registered: true}, {ID: "m2"}, {ID: "m3"}}
		}, ReasonScalingUp, "4 healthy; not registered in Omni: machine m2 (and 1 more)"},
		"a set reconfigures": {func(s *Status) { s.MachineSets[1].Phase = "Reconfiguring" }, ReasonMachineSetsNotReady, "Reconfiguring"},
		"a manifest is refused": {func(s *Status) {
			s.Manifests = Manifests{Total: 5, OutOfSync: 3, Failed: true, Pending: Objects{2, "ConfigMap apps/web"}, Deleting: Objects{1, "Namespace old"}}
		}, ReasonManifestsNotApplied, "3 of 5 Kubernetes manifests are not in effect; not applied: ConfigMap apps/web (and 1 more); not removed: Namespace old; " +
			"`omnictl get clusterkubernetesmanifestsstatus demo -o yaml` has Omni's error (lasterror)"},
		"a manifest of an object that is there is refused": {func(s *Status) { s.Manifests = Manifests{Total: 5, Failed: true} },
			ReasonManifestsNotApplied, "Omni cannot apply the Kubernetes manifests of the cluster; `omnictl get clusterkubernetesmanifestsstatus demo -o yaml`"},
		"a manifest waits": {func(s *Status) { s.Manifests = Manifests{Total: 1, OutOfSync: 1, Pending: Objects{1, "Widget apps/w"}} },
			ReasonManifestsNotApplied, "1 of 1 Kubernetes manifests are not in effect; not applied: Widget apps/w; if this lasts, the cluster may not know a kind, " +
				"because its CustomResourceDefinition is missing"},
		"an object does not go": {func(s *Status) {
			s.Manifests = Manifests{Total: 1, OutOfSync: 1, Deleting: Objects{1, "Namespace old"}}
		},
			ReasonManifestsNotApplied, "not removed: Namespace old; if this lasts, look in the cluster what keeps the objects"},
		"manifests count, and Omni names none": {func(s *Status) { s.Manifests = Manifests{Total: 2, OutOfSync: 1} }, ReasonManifestsNotApplied, "1 of 2"},
		"all manifests are there":              {func(s *Status) { s.Manifests = Manifests{Total: 5} }, ReasonRunning, ""},
		"manifests come last": {func(s *Status) {
			s.KubernetesAPIReady, s.Manifests = false, Manifests{Total: 1, OutOfSync: 1}
		}, ReasonKubernetesAPINotReady, "API is not ready"},
		"not ready as such": {func(s *Status) { s.Ready = false }, ReasonMachineSetsNotReady, "does not say"},
	} {
		t.Run(name, func(t *testing.T) {
			s := runningStatus()
			test.edit(&s)

			ok, reason, message := Running(s)
			if reason != test.reason || !strings.Contains(message, test.message) || ok != (test.reason == ReasonRunning) {
				t.Errorf("%v, %s, %q", ok, reason, message)
			}
		})
	}
}

// shortOf returns an edit after which the workers lack two machines, for which there are requests.
func shortOf(requests Requests) func(*Status) {
	return func(s *Status) {
		s.Phase, s.Machines.Total, s.MachineSets[1].Machines.Total, s.MachineSets[1].Class = "ScalingUp", 2, 1, "vms"
		s.MachineSets[1].Requests = requests
	}
}

func TestRunningIsBounded(t *testing.T) {
	s := runningStatus()
	for range 100 {
		s.MachineSets = append(s.MachineSets, MachineSet{Name: "a-set-with-some-long-name", Known: true, Phase: "Failed"})
	}

	if _, _, message := Running(s); len(message) > redact.MaxBytes {
		t.Errorf("%d bytes", len(message))
	}
}

// TestKubernetesSeenReady checks the evidence that a new cluster also needs.
func TestKubernetesSeenReady(t *testing.T) {
	for name, test := range map[string]struct {
		upgrade Upgrade
		want    string // empty: there is evidence
	}{
		"nothing there":                  {Upgrade{}, "no KubernetesUpgradeStatus"},
		"begun":                          {Upgrade{Known: true, Phase: "Upgrading"}, "not in phase Done so far, it is Upgrading"},
		"no phase":                       {Upgrade{Known: true, Phase: "Unknown"}, "it is Unknown"},
		"done":                           {Upgrade{Known: true, Phase: "Done", Version: "1.35.0"}, ""},
		"done once, and upgraded since":  {Upgrade{Known: true, Phase: "Upgrading", Version: "1.35.0"}, ""},
		"done once, an upgrade failed":   {Upgrade{Known: true, Phase: "Failed", Version: "1.35.0"}, ""},
		"done once, and unknown for now": {Upgrade{Known: true, Phase: "Unknown", Version: "1.35.0"}, ""},
	} {
		s := runningStatus()
		s.Kubernetes = test.upgrade

		answered, message := KubernetesSeenReady(s)
		if answered != (test.want == "") || !strings.Contains(message, test.want) || len(message) > redact.MaxBytes {
			t.Errorf("%s: %v, %q", name, answered, message)
		}
	}
}

func TestGivenUp(t *testing.T) {
	begun := time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)
	failed := func(after time.Duration) Upgrade {
		return Upgrade{Known: true, Phase: "Failed", Error: "no image", Updated: begun.Add(after)}
	}
	done := Upgrade{Known: true, Phase: "Done", Updated: begun.Add(time.Hour)}

	for name, test := range map[string]struct {
		kubernetes, talos Upgrade
		want              string
	}{
		"neither":                      {kubernetes: done, talos: done},
		"Kubernetes":                   {kubernetes: failed(time.Second), talos: done, want: "the Kubernetes upgrade failed: no image"},
		"Talos":                        {kubernetes: done, talos: failed(time.Second), want: "the Talos upgrade failed: no image"},
		"Kubernetes before, Talos now": {kubernetes: failed(-time.Hour), talos: failed(time.Second), want: "the Talos upgrade failed: no image"},
		"both before":                  {kubernetes: failed(-time.Hour), talos: failed(-time.Hour)},
	} {
		if got := GivenUp(Status{Kubernetes: test.kubernetes, Talos: test.talos}, UpgradeTimes{Kubernetes: begun, Talos: begun}); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}

	// Each has its own time.
	status := Status{Kubernetes: failed(time.Second), Talos: failed(time.Hour)}
	if got := GivenUp(status, TimesOfUpgrades(status)); got != "" {
		t.Errorf("what Omni wrote before: %q", got)
	}
}
