package omnisim_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/cosi-project/runtime/pkg/resource"
	"github.com/cosi-project/runtime/pkg/safe"
	"github.com/cosi-project/runtime/pkg/state"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/siderolabs/omni/client/api/omni/specs"
	"github.com/siderolabs/omni/client/pkg/omni/resources/omni"

	"omni.texashpc.com/omni-cluster-operator/test/omnisim"
)

// wantRefused checks a local error: its status and a word of it.
func wantRefused(t *testing.T, err error, word string) {
	t.Helper()

	if err == nil {
		t.Errorf("accepted, want a refusal that says %q", word)

		return
	}

	if code := status.Code(err); code != codes.InvalidArgument || !strings.Contains(err.Error(), word) {
		t.Errorf("error %q with code %s, want InvalidArgument and %q", err, code, word)
	}
}

func workers(cluster string) *omni.MachineSet {
	set := omni.NewMachineSet(cluster + "-more")
	set.Metadata().Labels().Set(omni.LabelCluster, cluster)
	set.Metadata().Labels().Set(omni.LabelWorkerRole, "")

	return set
}

// startIota starts a simulator with a cluster of that name, which runs with two machines of a class.
func startIota(t *testing.T) *omnisim.Server {
	t.Helper()

	sim := start(t, omnisim.Options{Machines: 4})
	ctx, st := deadline(t), sim.State()

	if err := sim.AddMachineClass("any", omni.MachineStatusLabelArch+" = amd64"); err != nil {
		t.Fatal(err)
	}

	apply(ctx, t, st, classed("iota", "any", "1"))
	waitFor(ctx, t, st, omni.NewClusterStatus("iota"), healthy(2))

	return sim
}

// TestRunningClusterRefuses tests refusals that need machines, and so are not part of the contract.
func TestRunningClusterRefuses(t *testing.T) {
	sim := startIota(t)
	ctx, st := deadline(t), sim.State()

	change := func(set string, edit func(*omni.MachineSet)) error {
		_, err := safe.StateUpdateWithConflicts(ctx, st, omni.NewMachineSet(set).Metadata(), func(res *omni.MachineSet) error {
			edit(res)

			return nil
		})

		return err
	}

	t.Run("class in use", func(t *testing.T) {
		_, err := st.Teardown(ctx, omni.NewMachineClass("any").Metadata())
		wantRefused(t, err, "still in use by machine sets: iota-control-planes, iota-workers")
	})

	t.Run("from class to list", func(t *testing.T) {
		wantRefused(t, change("iota-workers", func(s *omni.MachineSet) { s.TypedSpec().Value.MachineAllocation = nil }), "manual mode is not allowed")
	})

	t.Run("to a class that is missing", func(t *testing.T) {
		wantRefused(t, change("iota-workers", func(s *omni.MachineSet) { s.TypedSpec().Value.MachineAllocation.Name = "none" }), "doesn't exist")
	})

	t.Run("count of an unlimited set", func(t *testing.T) {
		wantRefused(t, change("iota-workers", func(s *omni.MachineSet) {
			s.TypedSpec().Value.MachineAllocation.AllocationType = specs.MachineSetSpec_MachineAllocation_Unlimited
		}), "static allocation")
	})

	t.Run("to another cluster", func(t *testing.T) {
		wantRefused(t, change("iota-workers", func(s *omni.MachineSet) { s.Metadata().Labels().Set(omni.LabelCluster, "kappa") }), "changing value of label")
	})

	t.Run("node beside the class", func(t *testing.T) {
		set, err := safe.StateGetByID[*omni.MachineSet](ctx, st, "iota-workers")
		if err != nil {
			t.Fatal(err)
		}

		wantRefused(t, st.Create(ctx, omni.NewMachineSetNode("33333333-3333-3333-3333-333333333333", set)), "automated machine allocation")
	})

	t.Run("bootstrap of workers", func(t *testing.T) {
		set := workers("iota")
		set.TypedSpec().Value.BootstrapSpec = &specs.MachineSetSpec_BootstrapSpec{ClusterUuid: "a", Snapshot: "b"}
		wantRefused(t, st.Create(ctx, set), "bootstrap spec is not allowed")
	})

	t.Run("older minor version of Talos", func(t *testing.T) {
		_, err := safe.StateUpdateWithConflicts(ctx, st, omni.NewCluster("iota").Metadata(), func(cluster *omni.Cluster) error {
			cluster.TypedSpec().Value.TalosVersion = "1.12.8"

			return nil
		})
		wantRefused(t, err, "downgrading from version")
	})

	t.Run("new parts of a cluster that goes", func(t *testing.T) {
		sim.Pause()

		if _, err := st.Teardown(ctx, omni.NewCluster("iota").Metadata()); err != nil {
			t.Fatal(err)
		}

		wantRefused(t, st.Create(ctx, workers("iota")), "is tearing down")

		patch := omni.NewConfigPatch("late")
		patch.Metadata().Labels().Set(omni.LabelCluster, "iota")
		wantRefused(t, st.Create(ctx, patch), "is tearing down")
		sim.Resume()
		waitGone(ctx, t, st, omni.NewCluster("iota").Metadata())
	})
}

func TestMetadataIsChecked(t *testing.T) {
	sim := start(t, omnisim.Options{})
	ctx, st := deadline(t), sim.State()

	withLabel := func(key, value string) resource.Resource {
		class := omni.NewMachineClass("class")
		class.TypedSpec().Value.MatchLabels = []string{"site"}
		class.Metadata().Labels().Set(key, value)

		return class
	}

	for name, test := range map[string]struct {
		res  resource.Resource
		word string
	}{
		"no ID":       {omni.NewMachineClass(""), "resource ID must not be empty"},
		"long ID":     {omni.NewMachineClass(strings.Repeat("a", 1025)), "resource ID is too long"},
		"long key":    {withLabel(strings.Repeat("a", 1025), ""), "label key is too long"},
		"long value":  {withLabel("a", strings.Repeat("a", 16*1024+1)), "label value"},
		"no key":      {withLabel("", "a"), "label key must not be empty"},
		"long arg":    {kernelArgs(strings.Repeat("a", 257)), "args[0] is too long"},
		"many args":   {kernelArgs(strings.Split(strings.Repeat("a ", 65), " ")...), "too many entries"},
		"two origins": {twoOrigins(), "can't set both"},
		"selector":    {withSelector("a = "), "matchLabels"},
	} {
		t.Run(name, func(t *testing.T) { wantRefused(t, st.Create(ctx, test.res), test.word) })
	}
}

func kernelArgs(args ...string) *omni.KernelArgs {
	res := omni.NewKernelArgs("44444444-4444-4444-4444-444444444444")
	res.TypedSpec().Value.Args = args

	return res
}

func withSelector(selector string) *omni.MachineClass {
	class := omni.NewMachineClass("selecting")
	class.TypedSpec().Value.MatchLabels = []string{selector, "=="}

	return class
}

func twoOrigins() *omni.MachineClass {
	class := omni.NewMachineClass("both")
	class.TypedSpec().Value.MatchLabels = []string{"site"}
	class.TypedSpec().Value.AutoProvision = &specs.MachineClassSpec_Provision{ProviderId: "somebody"}

	return class
}

func TestExtensionsAreChecked(t *testing.T) {
	catalogue := omnisim.DefaultCatalogue()
	catalogue.Since = map[string]string{"siderolabs/util-linux-tools": "1.13.5", "siderolabs/qemu-guest-agent": "1.12.8"}
	sim := start(t, omnisim.Options{Manual: true, Catalogue: &catalogue})
	ctx, st := deadline(t), sim.State()

	older := testCluster("older")
	older.TypedSpec().Value.TalosVersion = "1.12.8"

	if err := errors.Join(st.Create(ctx, testCluster("a")), st.Create(ctx, older)); err != nil {
		t.Fatal(err)
	}

	for _, test := range []struct {
		name, cluster string
		extensions    []string
		word          string // empty: accepted
	}{
		{"official short name", "a", []string{"iscsi-tools"}, ""},
		{"of this Talos", "a", []string{"util-linux-tools"}, ""},
		{"since this Talos", "older", []string{"qemu-guest-agent"}, ""},
		{"of a newer Talos", "older", []string{"util-linux-tools"}, "not available for Talos version"},
		{"none", "", nil, ""},
		{"twice", "a", []string{"iscsi-tools", "siderolabs/iscsi-tools"}, "more than once"},
		{"unknown", "a", []string{"siderolabs/no-such-thing"}, "not available"},
		{"without cluster", "", []string{"iscsi-tools"}, "must target a cluster"},
		{"of a missing cluster", "b", []string{"iscsi-tools"}, "does not exist"},
	} {
		t.Run(test.name, func(t *testing.T) {
			res := omni.NewExtensionsConfiguration(test.name)
			res.TypedSpec().Value.Extensions = test.extensions

			if test.cluster != "" {
				res.Metadata().Labels().Set(omni.LabelCluster, test.cluster)
			}

			if err := st.Create(ctx, res); test.word != "" {
				wantRefused(t, err, test.word)
			} else if err != nil {
				t.Error(err)
			}
		})
	}
}

// TestTornDownPartsGo checks that the server finishes deletions that a client has only requested, also of resources
// that belong to no cluster.
func TestTornDownPartsGo(t *testing.T) {
	sim := start(t, omnisim.Options{})
	ctx, st := deadline(t), sim.State()

	class := omni.NewMachineClass("class")
	class.TypedSpec().Value.MatchLabels = []string{"site"}

	patch := omni.NewConfigPatch("patch")
	patch.Metadata().Labels().Set(omni.LabelCluster, "no-such-cluster")

	if err := patch.TypedSpec().Value.SetUncompressedData([]byte("machine:\n  sysctls:\n    vm.swappiness: \"10\"\n")); err != nil {
		t.Fatal(err)
	}

	for _, res := range []resource.Resource{class, patch, kernelArgs("quiet")} {
		if err := st.Create(ctx, res); err != nil {
			t.Fatal(err)
		}

		if _, err := st.Teardown(ctx, res.Metadata()); err != nil && !state.IsNotFoundError(err) {
			t.Fatal(err)
		}

		waitGone(ctx, t, st, res.Metadata())
	}
}
