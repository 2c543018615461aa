package omnisim_test

import (
	"strings"
	"testing"

	"github.com/cosi-project/runtime/pkg/resource"
	"github.com/cosi-project/runtime/pkg/resource/meta"
	"github.com/cosi-project/runtime/pkg/safe"
	"github.com/cosi-project/runtime/pkg/state"

	"github.com/siderolabs/omni/client/pkg/omni/resources"
	"github.com/siderolabs/omni/client/pkg/omni/resources/omni"
	"github.com/siderolabs/omni/client/pkg/omni/resources/system"

	ours "omni.texashpc.com/omni-cluster-operator/pkg/omni"
	"omni.texashpc.com/omni-cluster-operator/test/await"
	"omni.texashpc.com/omni-cluster-operator/test/omnisim"
)

// definition returns the pointer of a type's ResourceDefinition.
func definition(resourceType resource.Type) resource.Pointer {
	return resource.NewMetadata(meta.NamespaceName, meta.ResourceDefinitionType, strings.ToLower(resourceType), resource.VersionUndefined)
}

// TestVersions checks what each version says of itself, and which types it serves.
func TestVersions(t *testing.T) {
	for _, test := range []struct {
		version, backend string
		api              uint32
		serves           []resource.Type
	}{
		{"1.8", "v1.8.0", 2, nil},
		{"", "v1.9.3", 2, []resource.Type{omni.KubernetesHealthCheckType}},
		{"1.9", "v1.9.3", 2, []resource.Type{omni.KubernetesHealthCheckType}},
		{"1.11", "v1.11.0", 3, newTypes()},
		{"1.14", "v1.14.1", 3, newTypes()},
	} {
		t.Run("version "+test.version, func(t *testing.T) {
			sim := start(t, omnisim.Options{OmniVersion: test.version})
			checkServed(t, connect(t, sim, key(t, sim, omnisim.RoleReader)).Omni().State(), test.backend, test.api, test.serves)
		})
	}

	if _, err := omnisim.Start(omnisim.Options{OmniVersion: "1.10"}); err == nil || !strings.Contains(err.Error(), "1.11, 1.14, 1.8, 1.9") {
		t.Errorf("an unknown version: %v", err)
	}
}

func newTypes() []resource.Type {
	return []resource.Type{
		omni.KubernetesHealthCheckType, ours.MachineInstallDiskConfigType, ours.MachineInstallDiskStatusType,
		ours.KubernetesHealthCheckStatusType,
	}
}

func checkServed(t *testing.T, st state.State, backend string, api uint32, serves []resource.Type) {
	t.Helper()

	current, err := safe.StateGetByID[*system.SysVersion](deadline(t), st, system.SysVersionID)
	if err != nil {
		t.Fatal(err)
	}

	if spec := current.TypedSpec().Value; spec.GetBackendVersion() != backend || spec.GetBackendApiVersion() != api || spec.GetInstanceName() != "omni" {
		t.Errorf("it says %v", spec)
	}

	if _, err := st.Get(deadline(t), definition(omni.ClusterType)); err != nil {
		t.Errorf("clusters: %v", err)
	}

	for _, resourceType := range newTypes() {
		served := false
		for _, one := range serves {
			served = served || one == resourceType
		}

		_, err := st.Get(deadline(t), definition(resourceType))
		if served != (err == nil) || !served && !state.IsNotFoundError(err) {
			t.Errorf("the definition of %s: %v", resourceType, err)
		}

		kind := resource.NewMetadata(resources.DefaultNamespace, resourceType, "", resource.VersionUndefined)

		_, err = st.List(deadline(t), kind)
		if served != (err == nil) || !served && !strings.Contains(err.Error(), "PermissionDenied") {
			t.Errorf("a list of %s: %v", resourceType, err)
		}
	}
}

const diskTemplate = `kind: Cluster
name: disk
kubernetes:
  version: v1.35.0
talos:
  version: v1.13.2
---
kind: ControlPlane
machines:
- 00000000-0000-0000-0000-00000000000a
---
kind: Machine
name: 00000000-0000-0000-0000-00000000000a
install:
  disk: /dev/vda
`

// TestUpgradeMigratesInstallDisks upgrades a running simulator: what templates wrote for an install disk becomes its own
// resource, other patches stay, and the machine sees no change.
func TestUpgradeMigratesInstallDisks(t *testing.T) {
	const machine = "00000000-0000-0000-0000-00000000000a"

	sim := start(t, omnisim.Options{})
	if _, err := sim.AddMachine(omnisim.Machine{ID: machine}); err != nil {
		t.Fatal(err)
	}

	ctx, st := deadline(t), operator(t, sim)
	apply(ctx, t, st, diskTemplate)
	waitFor(ctx, t, st, omni.NewClusterStatus("disk"), healthy(1))

	byHand := omni.NewConfigPatch("500-by-hand")
	byHand.Metadata().Labels().Set(omni.LabelCluster, "disk")
	byHand.Metadata().Labels().Set(omni.LabelClusterMachine, machine)

	if err := byHand.TypedSpec().Value.SetUncompressedData([]byte("machine:\n  install:\n    disk: /dev/vdb\n")); err != nil {
		t.Fatal(err)
	}

	if err := st.Create(ctx, byHand); err != nil {
		t.Fatal(err)
	}

	if err := sim.Upgrade("1.11"); err != nil {
		t.Fatal(err)
	}

	patch := omni.NewConfigPatch("000-cm-" + machine + "-install-disk").Metadata()
	if _, err := sim.State().Get(ctx, patch); !state.IsNotFoundError(err) {
		t.Errorf("the patch of the install disk: %v", err)
	}

	if _, err := sim.State().Get(ctx, byHand.Metadata()); err != nil {
		t.Errorf("the patch by hand: %v", err)
	}

	// The client connects again by itself.
	await.Until(t, "an answer after the restart", func() bool {
		_, err := st.Get(ctx, definition(ours.MachineInstallDiskConfigType))

		return err == nil
	})

	config, err := safe.StateGetByID[*ours.MachineInstallDiskConfig](ctx, st, machine)
	if err != nil {
		t.Fatal(err)
	}

	_, managed := config.Metadata().Annotations().Get(omni.ResourceManagedByClusterTemplates)
	if *config.TypedSpec() != (ours.MachineInstallDiskConfigSpec{Disk: "/dev/vda"}) || !managed || !config.Metadata().Labels().Empty() {
		t.Errorf("the install disk is %+v, managed %t, labels %v", *config.TypedSpec(), managed, config.Metadata().Labels().Raw())
	}
}

// TestRefusedByNewerVersions checks what newer versions refuse in patches, and that they accept it where it was before.
func TestRefusedByNewerVersions(t *testing.T) {
	patch := func(id, text string) *omni.ConfigPatch {
		made := omni.NewConfigPatch(id)
		if err := made.TypedSpec().Value.SetUncompressedData([]byte(text)); err != nil {
			t.Fatal(err)
		}

		return made
	}

	for _, test := range []struct{ name, text, words string }{
		{"install disk", "machine:\n  install:\n    disk: /dev/sda\n", `overriding "machine.install.disk" is not allowed in the config patch`},
		{"service account key", "cluster:\n  serviceAccount:\n    key: a2V5\n", `overriding "cluster.serviceAccount" is not allowed in the config patch`},
		{
			"install disk in the second document", "apiVersion: v1alpha1\nkind: HostnameConfig\nhostname: a\n---\nmachine:\n  install:\n    disk: /dev/sda\n",
			`overriding "machine.install.disk" is not allowed`,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			sim := start(t, omnisim.Options{})
			ctx, st := deadline(t), sim.State()
			old := patch("before", test.text)

			if err := st.Create(ctx, old); err != nil {
				t.Fatalf("1.9 refuses it: %v", err)
			}

			if err := sim.Upgrade("1.14"); err != nil {
				t.Fatal(err)
			}

			wantRefused(t, st.Create(ctx, patch("after", test.text)), test.words)

			// What is there already may change in everything but its text.
			_, err := safe.StateUpdateWithConflicts(ctx, st, old.Metadata(), func(res *omni.ConfigPatch) error {
				res.Metadata().Labels().Set("team", "a")

				return nil
			})
			if err != nil {
				t.Errorf("a label of the old one: %v", err)
			}
		})
	}
}
