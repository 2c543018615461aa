package contract

import (
	"testing"

	"github.com/cosi-project/runtime/pkg/resource"
	"github.com/cosi-project/runtime/pkg/state"

	"github.com/siderolabs/omni/client/api/omni/specs"
	"github.com/siderolabs/omni/client/pkg/omni/resources/omni"
)

func newCluster(name string) *omni.Cluster {
	cluster := omni.NewCluster(name)
	cluster.TypedSpec().Value.TalosVersion = "1.13.2"
	cluster.TypedSpec().Value.KubernetesVersion = "1.35.0"

	return cluster
}

// create creates a resource as Admin.
func (s *suite) create(t *testing.T, res resource.Resource) {
	t.Helper()

	if err := s.admin.Omni().State().Create(deadline(t), res); err != nil {
		t.Fatal(err)
	}
}

// clusterRefusals tests creates of clusters that Omni refuses.
func (s *suite) clusterRefusals(t *testing.T) {
	st := s.as(t, "Operator")

	for _, test := range []struct {
		name   string
		change func(*specs.ClusterSpec)
		words  []string
	}{
		{"unknown Talos", func(c *specs.ClusterSpec) { c.TalosVersion = "1.13.99" }, []string{"invalid talos version", "1.13.99"}},
		{"Talos on the deny list", func(c *specs.ClusterSpec) { c.TalosVersion = "1.13.1" }, []string{"invalid talos version", "1.13.1"}},
		{"no Talos version", func(c *specs.ClusterSpec) { c.TalosVersion = "moon" }, []string{"talos version"}},
		{"unknown Kubernetes", func(c *specs.ClusterSpec) { c.KubernetesVersion = "1.35.99" }, []string{"invalid kubernetes version", "not compatible"}},
		{"Kubernetes too new for Talos", func(c *specs.ClusterSpec) { c.TalosVersion, c.KubernetesVersion = "1.12.7", "1.36.1" }, []string{"not compatible"}},
		{"backups too often", func(c *specs.ClusterSpec) { c.BackupConfiguration = &specs.EtcdBackupConf{} }, []string{"backup interval"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			cluster := newCluster(unique("refused"))
			test.change(cluster.TypedSpec().Value)

			err := st.Create(deadline(t), cluster)
			wantError(t, err, "InvalidArgument", append(test.words, "failed to validate")...)

			if _, getErr := st.Get(deadline(t), cluster.Metadata()); !state.IsNotFoundError(getErr) {
				t.Errorf("the refused cluster exists: %v", getErr)
			}
		})
	}

	t.Run("odd names are accepted", func(t *testing.T) {
		cluster := newCluster("C_BAD")
		if err := st.Create(deadline(t), cluster); err != nil {
			t.Fatal(err)
		}

		s.remove(t, cluster.Metadata())
	})
}

// updateRefusals tests updates of clusters, most of which Omni refuses.
func (s *suite) updateRefusals(t *testing.T) {
	st := s.as(t, "Operator")

	for _, test := range []struct {
		name   string
		change func(*specs.ClusterSpec)
		words  []string // empty: accepted
	}{
		{"Kubernetes patch upgrade", func(c *specs.ClusterSpec) { c.KubernetesVersion = "1.35.1" }, nil},
		{"Kubernetes minor upgrade", func(c *specs.ClusterSpec) { c.KubernetesVersion = "1.36.1" }, nil},
		{"Kubernetes downgrade", func(c *specs.ClusterSpec) { c.KubernetesVersion = "1.34.8" }, []string{"not supported for upgrade", "1.34.8"}},
		{"unknown Kubernetes", func(c *specs.ClusterSpec) { c.KubernetesVersion = "1.35.99" }, []string{"invalid kubernetes version"}},
		{"Talos patch upgrade", func(c *specs.ClusterSpec) { c.TalosVersion = "1.13.5" }, nil},
		{"unknown Talos", func(c *specs.ClusterSpec) { c.TalosVersion = "1.13.99" }, []string{"invalid talos version"}},
		{"encryption", func(c *specs.ClusterSpec) { c.Features = &specs.ClusterSpec_Features{DiskEncryption: true} }, []string{"disk encryption"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			cluster := newCluster(unique("update"))
			s.create(t, cluster)

			// The server adds finalizers and needs a moment to store the cluster's first version.
			s.settle(t, cluster)

			current, err := st.Get(deadline(t), cluster.Metadata())
			if err != nil {
				t.Fatal(err)
			}

			test.change(current.(*omni.Cluster).TypedSpec().Value)
			err = st.Update(deadline(t), current)

			switch {
			case len(test.words) > 0:
				// To the library, a refused update looks like a phase conflict.
				wantError(t, err, "InvalidArgument", test.words...)

				if !state.IsPhaseConflictError(err) {
					t.Errorf("error %v is no phase conflict to the library", err)
				}
			case err != nil:
				t.Error(err)
			}

			s.remove(t, cluster.Metadata())
		})
	}
}

// beforeTalos14 returns the words of a refusal by 1.9. The Talos of later releases knows what it does not.
func (s *suite) beforeTalos14(words ...string) []string {
	if s.minor >= since11 {
		return nil
	}

	return words
}

// partRefusals tests creates of parts of clusters, most of which Omni refuses.
func (s *suite) partRefusals(t *testing.T) {
	cluster := newCluster(unique("parts"))
	s.create(t, cluster)

	name := cluster.Metadata().ID()
	set := newSet(name, "control-planes", omni.LabelControlPlaneRole)
	s.create(t, set)

	for _, test := range []struct {
		name  string
		res   resource.Resource
		words []string // empty: accepted
	}{
		{"set without cluster label", omni.NewMachineSet(name + "-a"), []string{"label", "does not exist"}},
		{"set of a missing cluster", newSet("nowhere", "workers", omni.LabelWorkerRole), []string{`cluster "nowhere" does not exist`}},
		{"set without role", newSet(name, "b", "example"), []string{"must have either"}},
		{"set with a missing class", withClass(newSet(name, "c", omni.LabelWorkerRole), "no-such-class"), []string{"machine class", "doesn't exist"}},
		{"set with another prefix", renamed(name, "elsewhere"), []string{"prefix"}},
		{"second control plane", newSet(name, "more", omni.LabelControlPlaneRole), []string{"control plane machine set must have ID"}},
		{"node of an unknown machine", newNode("00000000-0000-0000-0000-000000000001", set), nil},
		{"node of a missing set", newNode("00000000-0000-0000-0000-000000000002", newSet(name, "none", omni.LabelWorkerRole)), []string{"machine set does not exist"}},
		{"locked control plane", locked(newNode("00000000-0000-0000-0000-000000000003", set)), []string{"locking controlplanes"}},
		{"patch that is no YAML", newPatch(t, name, "broken", "a: [b"), []string{"failed to validate"}},
		{"patch that sets the token", newPatch(t, name, "token", "machine:\n  token: secret\n"), []string{"failed to validate"}},
		{"patch of a kind of Talos 1.14", newPatch(t, name, "sysctl", "apiVersion: v1alpha1\nkind: SysctlConfig\nparams: {a: b}\n"), s.beforeTalos14(
			"failed to validate", "v1alpha1", "SysctlConfig", "not registered")},
		{"patch of a kind that no Talos has", newPatch(t, name, "nosuch", "apiVersion: v1alpha1\nkind: NoSuchConfig\n"),
			[]string{"failed to validate", "NoSuchConfig", "not registered"}},
		{"patch", newPatch(t, name, "fine", "machine:\n  network:\n    hostname: a\n"), nil},
		{"unknown extension", newExtensions(name, "siderolabs/no-such-thing"), []string{"not available"}},
		{"known extension", newExtensions(name, "siderolabs/hello-world-service"), nil},
		{"class without selector", omni.NewMachineClass(unique("class")), []string{"machine class should"}},
		{"health check without job", labelled(omni.NewKubernetesHealthCheck(unique("check")), name), []string{"job manifest must be set"}},
		{"manifests without mode", labelled(omni.NewKubernetesManifestGroup(unique("manifests")), name), []string{"mode"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			err := s.admin.Omni().State().Create(deadline(t), test.res)

			switch {
			case len(test.words) > 0:
				wantError(t, err, "InvalidArgument", test.words...)
			case err != nil:
				t.Error(err)
			}
		})
	}

	s.remove(t, cluster.Metadata())
}

// partialUpgrades tests which part of an upgrade of both versions Omni takes alone, as when the other one is held by an
// OmniRolloutPolicy.
func (s *suite) partialUpgrades(t *testing.T) {
	st := s.as(t, "Operator")
	talos := func(c *specs.ClusterSpec) { c.TalosVersion = "1.13.2" }
	kubernetes := func(c *specs.ClusterSpec) { c.KubernetesVersion = "1.36.1" }
	both := func(c *specs.ClusterSpec) { talos(c); kubernetes(c) }

	for _, test := range []struct {
		name  string
		parts []func(*specs.ClusterSpec)
		words []string // about the last part; empty: accepted
		until int      // the first version for which it is not known; 0: it holds for all
	}{
		// Some version after 1.11 takes one upgrade at a time.
		{"both at once", []func(*specs.ClusterSpec){both}, nil, since12},
		{"Talos alone", []func(*specs.ClusterSpec){talos}, nil, 0},
		{"Talos, then Kubernetes", []func(*specs.ClusterSpec){talos, kubernetes}, nil, since12},
		{"Kubernetes alone, too new for the Talos that stays", []func(*specs.ClusterSpec){kubernetes}, []string{"not compatible"}, 0},
		{"another setting alone", []func(*specs.ClusterSpec){func(c *specs.ClusterSpec) {
			c.Features = &specs.ClusterSpec_Features{EnableWorkloadProxy: true}
		}}, nil, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			if test.until != 0 && s.minor >= test.until {
				t.Skipf("not known of Omni 1.%d", s.minor)
			}

			cluster := newCluster(unique("partial"))
			cluster.TypedSpec().Value.TalosVersion = "1.12.7"
			s.create(t, cluster)

			var err error

			for _, part := range test.parts {
				if err != nil {
					t.Fatal(err)
				}

				s.settle(t, cluster)

				current, getErr := st.Get(deadline(t), cluster.Metadata())
				if getErr != nil {
					t.Fatal(getErr)
				}

				part(current.(*omni.Cluster).TypedSpec().Value)
				err = st.Update(deadline(t), current)
			}

			switch {
			case len(test.words) > 0:
				wantError(t, err, "InvalidArgument", test.words...)
			case err != nil:
				t.Error(err)
			}

			s.remove(t, cluster.Metadata())
		})
	}
}
