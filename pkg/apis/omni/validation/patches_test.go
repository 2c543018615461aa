package validation

import (
	"fmt"
	"strings"
	"testing"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

func TestValidatePatches(t *testing.T) {
	patches := func(list ...v1alpha1.Patch) func(*v1alpha1.OmniCluster) {
		return func(c *v1alpha1.OmniCluster) { c.Spec.Patches = list }
	}
	inline := func(text string) func(*v1alpha1.OmniCluster) {
		return patches(v1alpha1.Patch{Name: "a", Inline: freeForm(text)})
	}
	hostname := freeForm(`{"machine":{"network":{"hostname":"a"}}}`)
	fromSecret := &v1alpha1.ValueSource{SecretKeyRef: &v1alpha1.KeyReference{Name: "patches", Key: "a.yaml"}}

	const bad = "spec.patches[0].inline: Invalid value"

	checkRules(t, validCluster, ValidateOmniCluster, []row[v1alpha1.OmniCluster]{
		{"inline", patches(v1alpha1.Patch{Name: "a", Inline: hostname}), nil},
		{"ID instead of name", patches(v1alpha1.Patch{IDOverride: "500-a", Inline: hostname}), nil},
		{"one name twice: the position is part of Omni's ID", patches(v1alpha1.Patch{Name: "a", Inline: hostname}, v1alpha1.Patch{Name: "a", Inline: hostname}), nil},
		{"neither name nor ID", patches(v1alpha1.Patch{Inline: hostname}), []string{"spec.patches[0].name: Required value"}},
		{"one ID twice", patches(v1alpha1.Patch{IDOverride: "a", Inline: hostname}, v1alpha1.Patch{IDOverride: "a", Inline: hostname}),
			[]string{"spec.patches[1].idOverride: Duplicate value"}},
		{"neither inline nor valueFrom", patches(v1alpha1.Patch{Name: "a"}), []string{"spec.patches[0]: Required value"}},
		{"inline and valueFrom", patches(v1alpha1.Patch{Name: "a", Inline: hostname, ValueFrom: fromSecret}), []string{"spec.patches[0].valueFrom: Forbidden"}},
		{"from Secret", patches(v1alpha1.Patch{Name: "a", ValueFrom: fromSecret}), nil},
		{"from ConfigMap", patches(v1alpha1.Patch{Name: "a", ValueFrom: &v1alpha1.ValueSource{ConfigMapKeyRef: &v1alpha1.KeyReference{Name: "a", Key: "b"}}}), nil},
		{"from nothing", patches(v1alpha1.Patch{Name: "a", ValueFrom: &v1alpha1.ValueSource{}}), []string{"spec.patches[0].valueFrom: Required value"}},
		{"from both", patches(v1alpha1.Patch{Name: "a", ValueFrom: &v1alpha1.ValueSource{
			ConfigMapKeyRef: &v1alpha1.KeyReference{Name: "a", Key: "b"}, SecretKeyRef: &v1alpha1.KeyReference{Name: "a", Key: "b"},
		}}), []string{"spec.patches[0].valueFrom.secretKeyRef: Forbidden"}},
		{"ConfigMap without name and key", patches(v1alpha1.Patch{Name: "a", ValueFrom: &v1alpha1.ValueSource{ConfigMapKeyRef: &v1alpha1.KeyReference{}}}),
			[]string{"spec.patches[0].valueFrom.configMapKeyRef.name: Required value", "spec.patches[0].valueFrom.configMapKeyRef.key: Required value"}},
		{"Secret with bad name and key", patches(v1alpha1.Patch{Name: "a", ValueFrom: &v1alpha1.ValueSource{SecretKeyRef: &v1alpha1.KeyReference{Name: "A", Key: "a/b"}}}),
			[]string{"spec.patches[0].valueFrom.secretKeyRef.name: Invalid value", "spec.patches[0].valueFrom.secretKeyRef.key: Invalid value"}},
		{"Omni's label", patches(v1alpha1.Patch{Name: "a", Inline: hostname, Labels: map[string]string{"omni.sidero.dev/x": ""}}),
			[]string{"spec.patches[0].labels[omni.sidero.dev/x]: Forbidden"}},
		{"Omni's annotation", patches(v1alpha1.Patch{Name: "a", Inline: hostname, Annotations: map[string]string{"omni.sidero.dev/x": ""}}),
			[]string{"spec.patches[0].annotations[omni.sidero.dev/x]: Forbidden"}},
		{"Talos document", inline(`{"apiVersion":"v1alpha1","kind":"HostnameConfig","hostname":"a"}`), nil},
		{"delete directive", inline(`{"machine":{"network":{"$patch":"delete"}}}`), nil},
		{"numbers, escapes and other scripts", inline(`{"machine":{"sysctls":{"a":"1","b":"\ud83d\ude00 <&> \u00e9"}}}`), nil},
		{"empty", inline(`{}`), []string{bad}},
		{"unknown key", inline(`{"machine":{"hostnme":"a"}}`), []string{bad}},
		{"neither machine nor cluster", inline(`{"a":"b"}`), []string{bad}},
		{"a kind that this build does not know", inline(`{"apiVersion":"v1alpha1","kind":"NoSuchConfig","x":{"y":1}}`), nil},
		{"a version of a kind that this build does not know", inline(`{"apiVersion":"v1beta1","kind":"HostnameConfig","x":1}`), nil},
		{"a kind that no document can have", inline(`{"apiVersion":"v1alpha1","kind":"no such config"}`), []string{bad}},
		{"a known kind with a wrong key", inline(`{"apiVersion":"v1alpha1","kind":"SysctlConfig","paramters":{}}`), []string{bad}},
		{"a known kind with a wrong type", inline(`{"apiVersion":"v1alpha1","kind":"SysctlConfig","params":1}`), []string{"spec.patches[0].inline.params: Invalid value"}},
		{"Kind is not kind", inline(`{"apiVersion":"v1alpha1","Kind":"NoSuchConfig"}`), []string{bad}},
		{"wrong type", inline(`{"machine":{"install":{"wipe":"abc"}}}`), []string{"spec.patches[0].inline.machine.install.wipe: Invalid value"}},
		{"what Omni controls", inline(`{"cluster":{"clusterName":"a"}}`), []string{bad}},
		{"largest", patches(v1alpha1.Patch{Name: "a", Inline: sizedPatch(256 << 10)}), nil},
		{"too large", patches(v1alpha1.Patch{Name: "a", Inline: sizedPatch(256<<10 + 1)}), []string{bad}},
		{"every patch is checked", patches(v1alpha1.Patch{Name: "a", Inline: hostname}, v1alpha1.Patch{Name: "b"}), []string{"spec.patches[1]: Required value"}},
	})
}

// talosKinds are the kinds that came between Talos 1.14.0-alpha.1, with which Omni 1.9.3 is built, and Talos 1.14.1.
const talosKinds = `BGPInstanceConfig CRIBaseRuntimeSpecConfig CRICustomizationConfig ContainerConfig DiscoveryIdentityConfig
DiscoveryServiceConfig EtcFileConfig FilesystemScrubConfig FilesystemTrimConfig KernelModuleConfig KubeAPIServerCAConfig
KubeAPIServerConfig KubeAdmissionControlConfig KubeAggregatorCAConfig KubeAuditPolicyConfig KubeAuthenticationConfig
KubeAuthorizerConfig KubeClusterConfig KubeCoreDNSConfig KubeCredentialProviderConfig KubeExternalManifestConfig
KubeFlannelCNIConfig KubeInlineManifestConfig KubeNetworkConfig KubeNodeConfig KubePrismConfig KubeProxyConfig
KubeServiceAccountConfig KubeStaticPodConfig KubeTalosAPIAccessConfig KubeletConfig LVMLogicalVolumeConfig
LVMVolumeGroupConfig RAIDArrayConfig SecurityProfileConfig SysctlConfig SysfsConfig UdevRulesConfig UnattendedInstallConfig
VethConfig`

// The kinds of Talos 1.14 are known: accepted without a warning, and what they do not have is refused.
func TestKindsOfTalos114(t *testing.T) {
	kinds := strings.Fields(talosKinds)
	if len(kinds) != 40 {
		t.Fatalf("%d kinds", len(kinds))
	}

	for _, kind := range kinds {
		t.Run(kind, func(t *testing.T) {
			cluster := validCluster()
			cluster.Spec.Patches = []v1alpha1.Patch{{Name: "a", Inline: freeForm(`{"apiVersion":"v1alpha1","kind":"` + kind + `","name":"a"}`)}}

			if unnamed := freeForm(`{"apiVersion":"v1alpha1","kind":"` + kind + `"}`); len(ValidateOmniCluster(cluster)) > 0 {
				cluster.Spec.Patches[0].Inline = unnamed // this kind has no name
			}

			if errs, warnings := ValidateOmniCluster(cluster), WarningsForOmniCluster(cluster); len(errs) > 0 || len(warnings) > 0 {
				t.Errorf("errors %v, warnings %v", errs, warnings)
			}

			cluster.Spec.Patches[0].Inline = freeForm(`{"apiVersion":"v1alpha1","kind":"` + kind + `","noSuchField":"canary"}`)

			errs := ValidateOmniCluster(cluster)
			if len(errs) != 1 || !strings.Contains(errs[0].Detail, "keys that Talos does not know, correct or remove: noSuchField") {
				t.Errorf("errors %v", errs)
			}
		})
	}
}

// A kind that this build does not know is stored, with a warning on every kind of object that has patches.
func TestUnknownKindsAreWarnings(t *testing.T) {
	patches := []v1alpha1.Patch{
		{Name: "a", Inline: freeForm(`{"machine":{}}`)},
		{Name: "b", Inline: freeForm(`{"kind":"NoSuchConfig","apiVersion":"v1alpha1","token":"canary"}`)},
	}
	cluster := validCluster()
	cluster.Spec.Patches = patches

	for name, got := range map[string][]string{
		"OmniCluster":      WarningsForOmniCluster(cluster),
		"OmniControlPlane": WarningsForOmniControlPlane(&v1alpha1.OmniControlPlane{Spec: v1alpha1.OmniControlPlaneSpec{MachineConfiguration: v1alpha1.MachineConfiguration{Patches: patches}}}),
		"OmniWorkers":      WarningsForOmniWorkers(&v1alpha1.OmniWorkers{Spec: v1alpha1.OmniWorkersSpec{MachineConfiguration: v1alpha1.MachineConfiguration{Patches: patches}}}),
		"OmniMachine":      WarningsForOmniMachine(&v1alpha1.OmniMachine{Spec: v1alpha1.OmniMachineSpec{MachineConfiguration: v1alpha1.MachineConfiguration{Patches: patches}}}),
	} {
		if want := "spec.patches[1].inline: Omni decides about v1alpha1 NoSuchConfig: this build does not know it"; len(got) != 1 || got[0] != want {
			t.Errorf("%s: got %q", name, got)
		}
	}

	patches[1].Inline = freeForm(`{"apiVersion":"talos.example.com/v1","kind":"` + strings.Repeat("K", 63) + `"}`)
	if got := WarningsForOmniCluster(cluster); len(got) != 1 || len(got[0]) > 120 || !strings.HasSuffix(got[0], ": this build does not know it") {
		t.Errorf("got %q", got)
	}
}

// sizedPatch is a valid patch of exactly this many bytes.
func sizedPatch(size int) *v1alpha1.FreeForm {
	const frame = `{"machine":{"sysctls":{"a":""}}}`

	return freeForm(fmt.Sprintf(`{"machine":{"sysctls":{"a":"%s"}}}`, strings.Repeat("x", size-len(frame))))
}

func TestPatchErrors(t *testing.T) {
	for _, tc := range []struct{ name, patch, want string }{
		{"several unknown keys", `{"machine":{"hostnme":"canary","network":{"hostnames":["canary"],"x":{"y":"canary"}}},"clustr":{"token":"canary"}}`,
			"has keys that Talos does not know, correct or remove: clustr.token, machine.hostnme, machine.network.hostnames, machine.network.x.y"},
		{"more unknown keys than fit", `{"machine":{"a":1,"b":1,"c":1,"d":1,"e":1,"f":1,"g":1}}`,
			"has keys that Talos does not know, correct or remove: machine.a, machine.b, machine.c, machine.d, machine.e, 2 more"},
		{"a long unknown key", `{"machine":{"` + strings.Repeat("k", 300) + `":1}}`,
			"has keys that Talos does not know, correct or remove: machine." + strings.Repeat("k", 40) + "..."},
		{"what Omni controls", `{"cluster":{"clusterName":"canary","token":"canary"},"machine":{"features":{"kubernetesTalosAPIAccess":{"allowedRoles":["os:admin"]}}}}`,
			"sets what Omni sets itself, remove: cluster.clusterName, cluster.token, machine.features.kubernetesTalosAPIAccess.allowedRoles os:admin"},
		{"wrong type", `{"machine":{"install":{"wipe":"canary"}}}`,
			"is not a Talos configuration patch: a value is of type str where bool belongs: write it without quotes"},
		{"empty", `{}`, "is empty: write the fragment of the machine configuration to change"},
		{"no document", `{"canary":"canary"}`, "is not a Talos configuration patch: begin with machine or cluster, or set apiVersion and kind of a Talos document"},
		{"unknown kind", `{"apiVersion":"v1alpha1","kind":"canary"}`, "has an apiVersion and kind that Talos does not know: correct them"},
		{"text for a list", `{"machine":{"network":{"interfaces":"canary"}}}`,
			"is not a Talos configuration patch: a value is of type str where v1alpha1.NetworkDeviceList belongs"},
		{"text for a number", `{"cluster":{"controlPlane":{"localAPIServerPort":"canary"}}}`,
			"is not a Talos configuration patch: a value is of type str where int belongs: write it without quotes"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			cluster := validCluster()
			cluster.Spec.Patches = []v1alpha1.Patch{{Name: "a", Inline: freeForm(tc.patch)}}

			errs := ValidateOmniCluster(cluster)
			if len(errs) != 1 {
				t.Fatalf("%d errors: %v", len(errs), errs)
			}

			if errs[0].Detail != tc.want {
				t.Errorf("got  %s\nwant %s", errs[0].Detail, tc.want)
			}

			if strings.Contains(errs[0].Error(), "canary") {
				t.Errorf("the error repeats a value of the patch: %v", errs[0])
			}
		})
	}
}

// A value of a wrong type is named by its path in the patch.
func TestWrongTypeInPatch(t *testing.T) {
	for patch, want := range map[string]string{
		`{"machine":{"install":{"wipe":"yes please"}}}`:                                                                     "machine.install.wipe",
		`{"cluster":{"apiServer":{"certSANs":["a","b"],"extraArgs":{}}},"machine":{"sysctls":{"a":"1","b.c":["x"]}}}`:       "machine.sysctls[b.c]",
		`{"machine":{"network":{"interfaces":[{"interface":"eth0","addresses":[]},{"interface":"eth1","mtu":{"a":"b"}}]}}}`: "machine.network.interfaces[1].mtu",
		`{"machine":{"network":{"interfaces":"eth0"}}}`:                                                                     "machine.network.interfaces",
		`{"apiVersion":"v1alpha1","kind":"LinkConfig","mtu":"large","name":"eth0"}`:                                         "mtu",
	} {
		cluster := validCluster()
		cluster.Spec.Patches = []v1alpha1.Patch{{Name: "a", Inline: freeForm(patch)}}

		errs := ValidateOmniCluster(cluster)
		if len(errs) != 1 || errs[0].Field != "spec.patches[0].inline."+want {
			t.Errorf("%s: %v, want %s", patch, errs, want)
		}
	}
}

// A stored patch is not checked again, even at another place in the list. Everything else about it is always checked.
func TestStoredPatchesAreNotCheckedAgain(t *testing.T) {
	refused := func() *v1alpha1.FreeForm { return freeForm(`{"cluster":{"clusterName":"a"}}`) }

	for name, test := range map[string]struct {
		patches []v1alpha1.Patch
		want    string
	}{
		"as it was":           {[]v1alpha1.Patch{{Name: "a", Inline: refused()}}, ""},
		"under another name":  {[]v1alpha1.Patch{{Name: "b", Inline: refused()}}, ""},
		"moved and doubled":   {[]v1alpha1.Patch{{Name: "b", Inline: refused()}, {Name: "a", Inline: refused()}}, ""},
		"without a name":      {[]v1alpha1.Patch{{Inline: refused()}}, "spec.patches[0].name: Required value"},
		"with other content":  {[]v1alpha1.Patch{{Name: "a", Inline: freeForm(`{"cluster":{"clusterName":"b"}}`)}}, "spec.patches[0].inline: Invalid value"},
		"with a second place": {[]v1alpha1.Patch{{Name: "a", Inline: refused(), ValueFrom: &v1alpha1.ValueSource{}}}, "spec.patches[0].valueFrom: Forbidden"},
	} {
		t.Run(name, func(t *testing.T) {
			old := validCluster()
			old.Spec.Patches = []v1alpha1.Patch{{Name: "a", Inline: refused()}}

			obj := validCluster()
			obj.Spec.Patches = test.patches
			obj.ResourceVersion, old.ResourceVersion = "1", "1"

			errs := ValidateOmniClusterUpdate(obj, old)
			if test.want == "" && len(errs) > 0 || test.want != "" && (len(errs) != 1 || !strings.HasPrefix(errs[0].Error(), test.want)) {
				t.Errorf("got %v, want %q", errs, test.want)
			}
		})
	}
}
