package validation

import (
	"strings"
	"testing"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

func validCluster() *v1alpha1.OmniCluster {
	return &v1alpha1.OmniCluster{
		ObjectMeta: meta("cluster-01"),
		Spec: v1alpha1.OmniClusterSpec{
			ConnectionRef: v1alpha1.LocalObjectReference{Name: "omni"},
			Kubernetes:    v1alpha1.OmniClusterKubernetes{Version: "v1.35.1"},
			Talos:         v1alpha1.OmniClusterTalos{Version: "v1.13.3"},
			ChangePolicy:  v1alpha1.ChangePolicyApply,
			SyncInterval:  "5m",
		},
	}
}

func TestValidateOmniCluster(t *testing.T) {
	name := func(metaName, specName string) func(*v1alpha1.OmniCluster) {
		return func(c *v1alpha1.OmniCluster) { c.Name, c.Spec.ClusterName = metaName, specName }
	}
	longest := strings.Repeat("a", 63)

	checkRules(t, validCluster, ValidateOmniCluster, []row[v1alpha1.OmniCluster]{
		{name: "valid"},
		{"connection missing", func(c *v1alpha1.OmniCluster) { c.Spec.ConnectionRef.Name = "" }, []string{"spec.connectionRef.name: Required value"}},
		{"connection name wrong", func(c *v1alpha1.OmniCluster) { c.Spec.ConnectionRef.Name = "Omni" }, []string{"spec.connectionRef.name: Invalid value"}},
		{"connection name with dots", func(c *v1alpha1.OmniCluster) { c.Spec.ConnectionRef.Name = "omni.eu" }, nil},
		{"cluster name of every kind of letter", name("a", "Cluster_01-x"), nil},
		{"longest cluster name", name("a", longest), nil},
		{"cluster name too long", name("a", longest+"a"), []string{"spec.clusterName: Invalid value"}},
		{"cluster name with dot", name("a", "a.b"), []string{"spec.clusterName: Invalid value"}},
		{"cluster name with newline", name("a", "a\n"), []string{"spec.clusterName: Invalid value"}},
		{"cluster name with foreign letter", name("a", "ä"), []string{"spec.clusterName: Invalid value"}},
		{"metadata.name cannot serve", name("a.b", ""), []string{"spec.clusterName: Invalid value"}},
		{"metadata.name too long to serve", name(longest+"a", ""), []string{"spec.clusterName: Invalid value"}},
		{"metadata.name with dot and a cluster name", name("a.b", "a-b"), nil},
		{"own label", func(c *v1alpha1.OmniCluster) {
			c.Spec.Labels = map[string]string{"site": "x", "a b": "any text is fine"}
		}, nil},
		{"Omni's label and annotation", func(c *v1alpha1.OmniCluster) {
			c.Spec.Labels = map[string]string{"omni.sidero.dev/cluster": "x", "": "y"}
			c.Spec.Annotations = map[string]string{"omni.sidero.dev/a": "", "omni.sidero.dev/b": ""}
		}, []string{
			"spec.labels[]: Required value", "spec.labels[omni.sidero.dev/cluster]: Forbidden",
			"spec.annotations[omni.sidero.dev/a]: Forbidden", "spec.annotations[omni.sidero.dev/b]: Forbidden",
		}},
		{"our mark as annotation", func(c *v1alpha1.OmniCluster) {
			c.Spec.Annotations = map[string]string{"omni.texashpc.com/owner-uid": "x"}
		},
			[]string{"spec.annotations[omni.texashpc.com/owner-uid]: Forbidden"}},
		{"backup interval", func(c *v1alpha1.OmniCluster) {
			c.Spec.Features.BackupConfiguration = &v1alpha1.BackupConfiguration{Interval: "1h"}
		}, nil},
		{"backups off", func(c *v1alpha1.OmniCluster) {
			c.Spec.Features.BackupConfiguration = &v1alpha1.BackupConfiguration{Interval: "0s"}
		}, nil},
		{"backup interval missing", func(c *v1alpha1.OmniCluster) { c.Spec.Features.BackupConfiguration = &v1alpha1.BackupConfiguration{} },
			[]string{"spec.features.backupConfiguration.interval: Required value"}},
		{"backup interval no duration", func(c *v1alpha1.OmniCluster) {
			c.Spec.Features.BackupConfiguration = &v1alpha1.BackupConfiguration{Interval: "1 day"}
		}, []string{"spec.features.backupConfiguration.interval: Invalid value"}},
		{"backup interval negative", func(c *v1alpha1.OmniCluster) {
			c.Spec.Features.BackupConfiguration = &v1alpha1.BackupConfiguration{Interval: "-1h"}
		}, []string{"spec.features.backupConfiguration.interval: Invalid value"}},
		{"no discovery service", func(c *v1alpha1.OmniCluster) { c.Spec.Features.DisablePublicDiscoveryService = new(true) },
			[]string{"spec.features.disablePublicDiscoveryService: Forbidden"}},
		{"the public discovery service stays", func(c *v1alpha1.OmniCluster) { c.Spec.Features.DisablePublicDiscoveryService = new(false) }, nil},
		{"the embedded discovery service", func(c *v1alpha1.OmniCluster) {
			c.Spec.Features.UseEmbeddedDiscoveryService, c.Spec.Features.DisablePublicDiscoveryService = true, new(true)
		}, nil},
		{"no extensions and arguments at all", func(c *v1alpha1.OmniCluster) { c.Spec.SystemExtensions, c.Spec.KernelArgs = []string{}, []string{} }, nil},
		{"extensions and arguments", func(c *v1alpha1.OmniCluster) {
			c.Spec.SystemExtensions, c.Spec.KernelArgs = []string{"siderolabs/iscsi-tools"}, []string{"console=ttyS0"}
		}, nil},
		{"empty extension and argument", func(c *v1alpha1.OmniCluster) {
			c.Spec.SystemExtensions, c.Spec.KernelArgs = []string{"a", ""}, []string{" "}
		}, []string{"spec.systemExtensions[1]: Required value", "spec.kernelArgs[0]: Required value"}},
		{"orphan", func(c *v1alpha1.OmniCluster) { c.Spec.DeletePolicy.Orphan = true }, nil},
		{"destroyMachines", func(c *v1alpha1.OmniCluster) { c.Spec.DeletePolicy.DestroyMachines = true }, nil},
		{"orphan and destroyMachines", func(c *v1alpha1.OmniCluster) {
			c.Spec.DeletePolicy = v1alpha1.OmniClusterDeletePolicy{Orphan: true, DestroyMachines: true}
		}, []string{"spec.deletePolicy.destroyMachines: Forbidden"}},
		{"change policies", func(c *v1alpha1.OmniCluster) { c.Spec.ChangePolicy = v1alpha1.ChangePolicyConfirmDestructive }, nil},
		{"observe", func(c *v1alpha1.OmniCluster) { c.Spec.ChangePolicy = v1alpha1.ChangePolicyObserve }, nil},
		{"unknown change policy", func(c *v1alpha1.OmniCluster) { c.Spec.ChangePolicy = "apply" }, []string{"spec.changePolicy: Unsupported value"}},
		{"approved plan", func(c *v1alpha1.OmniCluster) { c.Spec.ApprovedPlan = strings.Repeat("a", 64) }, nil},
		{"approved plan too long", func(c *v1alpha1.OmniCluster) { c.Spec.ApprovedPlan = strings.Repeat("a", 129) }, []string{"spec.approvedPlan: Too long"}},
		{"shortest sync interval", func(c *v1alpha1.OmniCluster) { c.Spec.SyncInterval = "1s" }, nil},
		{"sync interval too short", func(c *v1alpha1.OmniCluster) { c.Spec.SyncInterval = "0.9s" }, []string{"spec.syncInterval: Invalid value"}},
		{"sync interval no duration", func(c *v1alpha1.OmniCluster) { c.Spec.SyncInterval = "300" }, []string{"spec.syncInterval: Invalid value"}},
		{"suspended and adopting", func(c *v1alpha1.OmniCluster) { c.Spec.Suspend, c.Spec.Adopt = true, true }, nil},
	})
}

func TestValidateVersions(t *testing.T) {
	versions := func(kubernetes, talos string) func(*v1alpha1.OmniCluster) {
		return func(c *v1alpha1.OmniCluster) { c.Spec.Kubernetes.Version, c.Spec.Talos.Version = kubernetes, talos }
	}
	encrypted := func(talos string) func(*v1alpha1.OmniCluster) {
		return func(c *v1alpha1.OmniCluster) { c.Spec.Talos.Version, c.Spec.Features.DiskEncryption = talos, true }
	}

	const (
		badKubernetes = "spec.kubernetes.version: Invalid value"
		badTalos      = "spec.talos.version: Invalid value"
	)

	checkRules(t, validCluster, ValidateOmniCluster, []row[v1alpha1.OmniCluster]{
		{"missing", versions("", ""), []string{"spec.kubernetes.version: Required value", "spec.talos.version: Required value"}},
		{"pre-releases", versions("v1.36.0-rc.1", "v1.14.0-alpha.1"), nil},
		{"build metadata", versions("v1.36.0+build.5", "v1.14.0-beta.0+abc"), nil},
		{"without v", versions("1.35.1", "1.13.3"), []string{badKubernetes, badTalos}},
		{"capital V", versions("V1.35.1", "V1.13.3"), []string{badKubernetes, badTalos}},
		{"two numbers", versions("v1.35", "v1.13"), []string{badKubernetes, badTalos}},
		{"leading zero", versions("v1.035.1", "v1.13.03"), []string{badKubernetes, badTalos}},
		{"pre-release with leading zero", versions("v1.35.1-rc.01", "v1.13.3-"), []string{badKubernetes, badTalos}},
		{"white space", versions("v1.35.1 ", " v1.13.3"), []string{badKubernetes, badTalos}},
		{"line break", versions("v1.35.1\n", "v1.13.3\n"), []string{badKubernetes, badTalos}},
		{"a word", versions("latest", "newest"), []string{badKubernetes, badTalos}},
		{"too large a number", versions("v1.99999999999999999999.0", "v99999999999999999999.0.0"), []string{badKubernetes, badTalos}},
		{"encryption", encrypted("v1.5.0"), nil},
		{"encryption before it existed", encrypted("v1.4.8"), []string{"spec.features.diskEncryption: Forbidden"}},
		{"encryption and no version", encrypted("one"), []string{badTalos}},
	})
}

func TestValidateOmniClusterUpdate(t *testing.T) {
	const (
		badConnection = "spec.connectionRef.name: Invalid value"
		badName       = "spec.clusterName: Invalid value"
		badEncryption = "spec.features.diskEncryption: Invalid value"
		badDelete     = "spec.deletePolicy.destroyMachines: Forbidden"
	)

	redirect := func(c *v1alpha1.OmniCluster) {
		c.Spec.ConnectionRef.Name, c.Spec.ClusterName, c.Spec.Features.DiskEncryption = "other", "other", true
		c.Spec.DeletePolicy = v1alpha1.OmniClusterDeletePolicy{Orphan: true, DestroyMachines: true}
	}

	checkUpdates(t, validCluster, ValidateOmniClusterUpdate, []updateRow[v1alpha1.OmniCluster]{
		{name: "nothing changed"},
		{"new version", nil, func(c *v1alpha1.OmniCluster) { c.Spec.Kubernetes.Version = "v1.36.0" }, nil},
		{"another connection", nil, func(c *v1alpha1.OmniCluster) { c.Spec.ConnectionRef.Name = "other" }, []string{badConnection}},
		{"another name", nil, func(c *v1alpha1.OmniCluster) { c.Spec.ClusterName = "other" }, []string{badName}},
		{"the same name, now written down", nil, func(c *v1alpha1.OmniCluster) { c.Spec.ClusterName = "cluster-01" }, nil},
		{"the written name removed", func(c *v1alpha1.OmniCluster) { c.Spec.ClusterName = "other" },
			func(c *v1alpha1.OmniCluster) { c.Spec.ClusterName = "" }, []string{badName}},
		{"encryption switched on", nil, func(c *v1alpha1.OmniCluster) { c.Spec.Features.DiskEncryption = true }, []string{badEncryption}},
		{"encryption switched off", func(c *v1alpha1.OmniCluster) { c.Spec.Features.DiskEncryption = true },
			func(c *v1alpha1.OmniCluster) { c.Spec.Features.DiskEncryption = false }, []string{badEncryption}},
		{"to orphan", nil, func(c *v1alpha1.OmniCluster) { c.Spec.DeletePolicy.Orphan = true }, nil},
		{"everything redirected", nil, redirect, []string{badConnection, badName, badEncryption, badDelete}},
		{"redirected while being deleted", func(c *v1alpha1.OmniCluster) { deleting(&c.ObjectMeta) }, redirect,
			[]string{badConnection, badName, badEncryption, badDelete}},
		{"other rules while being deleted", func(c *v1alpha1.OmniCluster) { deleting(&c.ObjectMeta) }, func(c *v1alpha1.OmniCluster) {
			c.Spec.Kubernetes.Version, c.Spec.SyncInterval, c.Spec.DeletePolicy.Orphan = "older rule", "1s", true
		}, nil},
		{"blocks within their limits while being deleted", func(c *v1alpha1.OmniCluster) { deleting(&c.ObjectMeta) }, func(c *v1alpha1.OmniCluster) {
			c.Spec.Patches = []v1alpha1.Patch{{Inline: bigObject(maxFreeForm)}, {Inline: nested(maxDepth)}}
		}, nil},
		{"blocks beyond them while being deleted", func(c *v1alpha1.OmniCluster) { deleting(&c.ObjectMeta) }, func(c *v1alpha1.OmniCluster) {
			c.Spec.Patches = []v1alpha1.Patch{{Inline: bigObject(maxFreeForm + 1)}}
			c.Spec.Kubernetes.Manifests = []v1alpha1.Manifest{{Inline: []v1alpha1.FreeForm{*nested(maxDepth + 1)}}}
		}, []string{"spec: Invalid value", "spec: Invalid value"}},
		{"block of an older rule stays while being deleted", func(c *v1alpha1.OmniCluster) {
			deleting(&c.ObjectMeta)
			c.Spec.Patches = []v1alpha1.Patch{{Inline: nested(maxDepth + 1)}}
		}, func(c *v1alpha1.OmniCluster) { c.Spec.DeletePolicy.Orphan = true }, nil},
		{"finalizer removed from an object of an older rule", func(c *v1alpha1.OmniCluster) {
			deleting(&c.ObjectMeta)
			c.Spec.Talos.Version = "older rule"
		}, func(c *v1alpha1.OmniCluster) { c.Finalizers = nil }, nil},
		{"finalizer added to an object of an older rule", func(c *v1alpha1.OmniCluster) { c.Spec.Talos.Version = "older rule" },
			func(c *v1alpha1.OmniCluster) { c.Finalizers = []string{"omni.texashpc.com/finalizer"} }, nil},
		{"spec of an older rule changed", func(c *v1alpha1.OmniCluster) { c.Spec.Talos.Version = "older rule" },
			func(c *v1alpha1.OmniCluster) { c.Spec.Suspend = true }, []string{"spec.talos.version: Invalid value"}},
		{"unset becomes empty: the spec changed", func(c *v1alpha1.OmniCluster) { c.Spec.Talos.Version = "older rule" },
			func(c *v1alpha1.OmniCluster) { c.Spec.KernelArgs = []string{} }, []string{"spec.talos.version: Invalid value"}},
	})
}

func TestImmutableErrorsNameTheRemedy(t *testing.T) {
	obj, old := validCluster(), validCluster()
	obj.Spec.ConnectionRef.Name = "other"

	const want = `spec.connectionRef.name: Invalid value: "other": field is immutable: a cluster cannot move to another Omni; create a new OmniCluster`

	errs := ValidateOmniClusterUpdate(obj, old)
	if len(errs) != 1 || errs[0].Error() != want {
		t.Errorf("got %v, want %s", errs, want)
	}

	obj = validCluster()
	obj.Name = "a.b"

	const wantName = `spec.clusterName: Invalid value: "a.b": metadata.name cannot serve here, set it: a cluster's name in Omni has letters, digits, - and _, at most 63`

	errs = ValidateOmniCluster(obj)
	if len(errs) != 1 || errs[0].Error() != wantName {
		t.Errorf("got %v, want %s", errs, wantName)
	}
}

func TestValidateOmniClusterStatusUpdate(t *testing.T) {
	checkUpdates(t, validCluster, ValidateOmniClusterStatusUpdate, []updateRow[v1alpha1.OmniCluster]{
		{name: "nothing changed"},
		{"references", nil, func(c *v1alpha1.OmniCluster) {
			c.Status.WorkersRefs = []v1alpha1.AppliedReference{{Name: "a"}, {Name: "b"}}
			c.Status.MachineRefs = []v1alpha1.AppliedReference{{Name: "a"}}
		}, nil},
		{"references twice", nil, func(c *v1alpha1.OmniCluster) {
			c.Status.WorkersRefs = []v1alpha1.AppliedReference{{Name: "a"}, {Name: "b"}, {Name: "a"}}
			c.Status.MachineRefs = []v1alpha1.AppliedReference{{Name: "a"}, {Name: "a"}}
		}, []string{"status.workersRefs[2].name: Duplicate value", "status.machineRefs[1].name: Duplicate value"}},
		{"spec of an older rule", func(c *v1alpha1.OmniCluster) { c.Spec.Talos.Version = "older rule" },
			func(c *v1alpha1.OmniCluster) { c.Status.ObservedGeneration = 3 }, nil},
	})
}

func TestWarningsForWhatAClusterLoses(t *testing.T) {
	manifests := func(mode v1alpha1.ManifestMode, names ...string) []v1alpha1.Manifest {
		var list []v1alpha1.Manifest
		for _, name := range names {
			list = append(list, v1alpha1.Manifest{Name: name, Mode: mode})
		}

		return list
	}
	loses := func(name string) string {
		return `spec.kubernetes.manifests: Omni deletes the objects of "` + name + `" that no other full manifest has`
	}

	for name, tc := range map[string]struct {
		old, change func(*v1alpha1.OmniCluster)
		want        []string
	}{
		"a manifest more": {
			func(c *v1alpha1.OmniCluster) { c.Spec.Kubernetes.Manifests = manifests("", "a") },
			func(c *v1alpha1.OmniCluster) {
				c.Spec.Kubernetes.Manifests = manifests(v1alpha1.ManifestFull, "b", "a")
			}, nil,
		},
		"manifests: null": {
			func(c *v1alpha1.OmniCluster) { c.Spec.Kubernetes.Manifests = manifests("", "a", "b") },
			func(c *v1alpha1.OmniCluster) { c.Spec.Kubernetes.Manifests = nil }, []string{loses("a"), loses("b")},
		},
		"many": {
			func(c *v1alpha1.OmniCluster) {
				c.Spec.Kubernetes.Manifests = manifests("", "a", "b", "c", "d", "e", "f")
			},
			func(c *v1alpha1.OmniCluster) { c.Spec.Kubernetes.Manifests = nil },
			[]string{loses("a"), loses("b"), loses("c"), loses("d"), loses("e"), "spec.kubernetes.manifests: Omni deletes the objects of 1 more manifest"},
		},
		"from full to one-time": {
			func(c *v1alpha1.OmniCluster) { c.Spec.Kubernetes.Manifests = manifests(v1alpha1.ManifestFull, "a") },
			func(c *v1alpha1.OmniCluster) { c.Spec.Kubernetes.Manifests = manifests(v1alpha1.ManifestOneTime, "a") }, []string{loses("a")},
		},
		"one-time": {
			func(c *v1alpha1.OmniCluster) { c.Spec.Kubernetes.Manifests = manifests(v1alpha1.ManifestOneTime, "a") },
			func(c *v1alpha1.OmniCluster) { c.Spec.Kubernetes.Manifests = nil }, nil,
		},
		"orphan: null": {
			func(c *v1alpha1.OmniCluster) { c.Spec.DeletePolicy.Orphan = true },
			func(c *v1alpha1.OmniCluster) { c.Spec.DeletePolicy.Orphan = false },
			[]string{"spec.deletePolicy.orphan: no longer set: deleting this object destroys the cluster in Omni"},
		},
		"changePolicy: null": {
			func(c *v1alpha1.OmniCluster) {
				c.Spec.ChangePolicy, c.Spec.DeletePolicy.Orphan = v1alpha1.ChangePolicyObserve, true
			},
			func(c *v1alpha1.OmniCluster) { c.Spec.ChangePolicy = v1alpha1.ChangePolicyApply },
			[]string{"spec.changePolicy: no longer Observe: Omni follows the documents now; look at status.plan first"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			obj, old := validCluster(), validCluster()
			tc.old(obj)
			tc.old(old)
			tc.change(obj)

			checkWarnings(t, WarningsForOmniClusterUpdate(obj, old), tc.want)
		})
	}
}
