package contract

import (
	"strconv"
	"strings"
	"testing"

	"github.com/cosi-project/runtime/pkg/resource"
	"github.com/cosi-project/runtime/pkg/resource/meta"
	"github.com/cosi-project/runtime/pkg/safe"
	"github.com/cosi-project/runtime/pkg/state"
	"github.com/google/uuid"

	"github.com/siderolabs/omni/client/pkg/omni/resources"
	"github.com/siderolabs/omni/client/pkg/omni/resources/omni"
	"github.com/siderolabs/omni/client/pkg/omni/resources/system"

	operator "omni.texashpc.com/omni-cluster-operator/pkg/omni"
)

// The minor versions of Omni 1 from which on cases hold.
const (
	since11 = 11
	since12 = 12
)

// apiOfInstallDisks is the number of the API that has MachineInstallDiskConfigs.
const apiOfInstallDisks = 3

// findVersion asks the target which minor version of Omni 1 it is. A server that was built from source may not know its
// version: then the number of its API decides.
func (s *suite) findVersion(t *testing.T) {
	t.Helper()

	current, err := safe.StateGetByID[*system.SysVersion](deadline(t), s.admin.Omni().State(), system.SysVersionID)
	if err != nil {
		t.Fatal(err)
	}

	spec := current.TypedSpec().Value
	t.Logf("Omni %s, API %d, instance %q", spec.GetBackendVersion(), spec.GetBackendApiVersion(), spec.GetInstanceName())

	s.minor = since11
	if spec.GetBackendApiVersion() < apiOfInstallDisks {
		s.minor = since11 - 2
	}

	if parts := strings.Split(spec.GetBackendVersion(), "."); len(parts) > 2 && parts[0] == "v1" {
		if minor, err := strconv.Atoi(parts[1]); err == nil {
			s.minor = minor
		}
	}
}

// served tests how a client finds out what is served: every signed caller may ask, and what is not served is refused.
func (s *suite) served(t *testing.T) {
	st := s.as(t, "None")

	if _, err := safe.StateGetByID[*system.SysVersion](deadline(t), st, system.SysVersionID); err != nil {
		t.Errorf("the version: %v", err)
	}

	reader := s.as(t, "Reader")

	for _, test := range []struct {
		resourceType resource.Type
		since        int
	}{
		{omni.ClusterType, 0},
		{omni.KubernetesHealthCheckType, 9},
		{operator.MachineInstallDiskConfigType, since11},
		{operator.MachineInstallDiskStatusType, since11},
		{operator.KubernetesHealthCheckStatusType, since11},
		{"Inventions.omni.sidero.dev", 1000},
	} {
		t.Run(test.resourceType, func(t *testing.T) {
			isServed := s.minor >= test.since
			definition := resource.NewMetadata(meta.NamespaceName, meta.ResourceDefinitionType, strings.ToLower(test.resourceType), resource.VersionUndefined)

			if _, err := st.Get(deadline(t), definition); isServed != (err == nil) || !isServed && !state.IsNotFoundError(err) {
				t.Errorf("its definition: %v", err)
			}

			kind := resource.NewMetadata(resources.DefaultNamespace, test.resourceType, "", resource.VersionUndefined)
			_, err := reader.List(deadline(t), kind)

			switch {
			case !isServed:
				wantError(t, err, "PermissionDenied", "no access is permitted")
			case err != nil:
				t.Errorf("a list: %v", err)
			}
		})
	}
}

// installDisks tests the choice of an install disk: a resource of its own since 1.11, where a patch may not make it.
func (s *suite) installDisks(t *testing.T) {
	cluster := newCluster(unique("disks"))
	s.create(t, cluster)
	defer s.remove(t, cluster.Metadata())

	st := s.as(t, "Operator")
	patch := newPatch(t, cluster.Metadata().ID(), "disk", "machine:\n  install:\n    disk: /dev/sda\n")

	if s.minor < since11 {
		if err := st.Create(deadline(t), patch); err != nil {
			t.Errorf("a patch with the install disk: %v", err)
		}

		return
	}

	wantError(t, st.Create(deadline(t), patch), "InvalidArgument", `overriding "machine.install.disk" is not allowed`)

	for _, test := range []struct{ name, disk, selector, words string }{
		{"disk", "/dev/sda", "", ""},
		{"selector", "", "disk.size > 4u * GB", ""},
		{"both", "/dev/sda", "disk.size > 4u * GB", "mutually exclusive"},
		{"neither", "", "", "either disk or disk selector must be set"},
		{"a selector that is no expression", "", "disk.size >", "not a valid boolean disk expression"},
		{"a selector that is not true or false", "", "disk.size", "not a valid boolean disk expression"},
	} {
		t.Run(test.name, func(t *testing.T) {
			config := operator.NewMachineInstallDiskConfig(uuid.NewString())
			config.TypedSpec().Disk, config.TypedSpec().DiskSelector = test.disk, test.selector

			if err := st.Create(deadline(t), config); test.words != "" {
				wantError(t, err, "InvalidArgument", test.words)

				return
			} else if err != nil {
				t.Fatal(err)
			}

			stored, err := safe.StateGetByID[*operator.MachineInstallDiskConfig](deadline(t), st, config.Metadata().ID())
			if err != nil || *stored.TypedSpec() != *config.TypedSpec() {
				t.Fatalf("it is stored as %v: %v", stored, err)
			}

			stored.TypedSpec().Disk, stored.TypedSpec().DiskSelector = "", ""
			wantError(t, st.Update(deadline(t), stored), "InvalidArgument", "either disk or disk selector must be set")

			stored.TypedSpec().Disk = "/dev/sdb"
			if err := st.Update(deadline(t), stored); err != nil {
				t.Errorf("another disk: %v", err)
			}

			s.remove(t, config.Metadata())
		})
	}
}
