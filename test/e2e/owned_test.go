package e2e

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/cosi-project/runtime/pkg/safe"
	"github.com/siderolabs/omni/client/pkg/omni/resources/omni"
	"google.golang.org/protobuf/encoding/protowire"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

const (
	labelDisabled = "omni.sidero.dev/disabled"
	byHand        = "example.com/by-hand"
)

// setByOthers sets, on a Cluster and a patch, what people and newer releases of Omni set there.
func (f *fleet) setByOthers(cluster, patch string) {
	f.t.Helper()

	unknown := protowire.AppendString(protowire.AppendTag(nil, 900, protowire.BytesType), "of a release to come")

	_, err := safe.StateUpdateWithConflicts(f.t.Context(), f.omni.State(), omni.NewCluster(cluster).Metadata(), func(c *omni.Cluster) error {
		c.Metadata().Labels().Set(byHand, "a")
		c.Metadata().Annotations().Set(byHand, "b")

		spec := c.TypedSpec().Value
		spec.Features.EnableNodeAuditSkip = true
		spec.Features.ProtoReflect().SetUnknown(unknown)
		spec.ProtoReflect().SetUnknown(unknown)

		return nil
	})
	if err != nil {
		f.t.Fatal(err)
	}

	_, err = safe.StateUpdateWithConflicts(f.t.Context(), f.omni.State(), omni.NewConfigPatch(patch).Metadata(), func(p *omni.ConfigPatch) error {
		p.Metadata().Labels().Set(labelDisabled, "")

		return nil
	})
	if err != nil {
		f.t.Fatal(err)
	}
}

// wantByOthers checks that it is all there.
func (f *fleet) wantByOthers(when, cluster, patch string) {
	f.t.Helper()

	found, err := safe.StateGetByID[*omni.Cluster](f.t.Context(), f.omni.State(), cluster)
	if err != nil {
		f.t.Fatal(err)
	}

	spec := found.TypedSpec().Value
	_, label := found.Metadata().Labels().Get(byHand)
	_, annotation := found.Metadata().Annotations().Get(byHand)

	if !label || !annotation || !spec.GetFeatures().GetEnableNodeAuditSkip() ||
		len(spec.ProtoReflect().GetUnknown()) == 0 || len(spec.GetFeatures().ProtoReflect().GetUnknown()) == 0 {
		f.t.Errorf("after %s: labels %v, annotations %v, %v", when, found.Metadata().Labels().Raw(), found.Metadata().Annotations().Raw(), spec)
	}

	disabled, err := safe.StateGetByID[*omni.ConfigPatch](f.t.Context(), f.omni.State(), patch)
	if err != nil {
		f.t.Fatal(err)
	}

	if _, is := disabled.Metadata().Labels().Get(labelDisabled); !is {
		f.t.Errorf("after %s: the patch is enabled again", when)
	}
}

// TestOthersSettingsSurvive has a feature switched on, a patch disabled, labels and unknown fields set in Omni, through a scale, an
// upgrade, a changed patch and an adoption.
func TestOthersSettingsSurvive(t *testing.T) {
	t.Parallel()

	const patches = `  patches:
  - name: sysctls
    inline: {machine: {sysctls: {vm.max_map_count: "1"}}}`

	f := newFleet(t)
	f.cluster("c", patches)
	f.setByOthers("c", "200-cluster-c-sysctls")
	f.omni.ForgetRequests()
	f.reconciled("c")
	f.wantByOthers("nothing", "c", "200-cluster-c-sysctls")

	if writes := f.omni.Writes(); len(writes) > 0 {
		t.Errorf("what others set was answered with %+v", writes)
	}

	steps := []struct{ name, manifest string }{
		{"a scale", workersManifest("c-w", "c", classOf(pool, 3))},
		{"an upgrade", strings.Replace(clusterManifest("c", patches), "v1.35.1", "v1.35.4", 1)},
		{"a patch", strings.Replace(strings.Replace(clusterManifest("c", patches), "v1.35.1", "v1.35.4", 1), `"1"`, `"2"`, 1)},
	}
	for _, step := range steps {
		f.apply(step.manifest)
		f.reconciled("c")
		f.waitCondition("ocl", "c", v1alpha1.ConditionReady, metav1.ConditionTrue, "")
		f.wantByOthers(step.name, "c", "200-cluster-c-sysctls")
	}

	// Somebody else's cluster, which this object takes over.
	f.run("patch", "ocl", "c", "--type=merge", "-p", `{"spec":{"deletePolicy":{"orphan":true}}}`)
	f.run("delete", "ocl/c", "ocp/c-cp", "ow/c-w", "--timeout=60s")
	f.apply(strings.Replace(steps[2].manifest, "spec:\n", "spec:\n  adopt: true\n", 1), controlPlaneManifest("c-cp", "c", f.machines[0]), steps[0].manifest)
	f.waitCondition("ocl", "c", v1alpha1.ConditionReady, metav1.ConditionTrue, "")
	f.wantByOthers("an adoption", "c", "200-cluster-c-sysctls")

	// What Git says is done, and said.
	f.apply(strings.Replace(steps[2].manifest, "spec:\n", "spec:\n  adopt: true\n  features: {enableNodeAuditSkip: false}\n", 1))
	f.wait("the feature to be off", func() error {
		found, err := safe.StateGetByID[*omni.Cluster](t.Context(), f.omni.State(), "c")
		if err == nil && found.TypedSpec().Value.GetFeatures().GetEnableNodeAuditSkip() {
			err = errors.New("it is on")
		}

		return err
	})
}

// TestOmniIsUpgradedUnderAFleet makes a cluster in Omni 1.9, which becomes 1.11 and 1.14: nothing is written, and what others set
// stays. After that, changes go on as before.
func TestOmniIsUpgradedUnderAFleet(t *testing.T) {
	t.Parallel()

	const spec = `  features: {enableWorkloadProxy: true}
  patches:
  - name: sysctls
    inline: {machine: {sysctls: {vm.max_map_count: "1"}}}`

	f := newFleet(t)
	f.apply(machineManifest(f.machines[0], "c", "  install: {disk: /dev/sda}"))
	f.cluster("c", spec)
	f.manifests("extra")
	f.ready("c")
	f.setByOthers("c", "200-cluster-c-sysctls")

	for _, version := range []string{"1.11", "1.14"} {
		f.omni.ForgetRequests()

		if err := f.omni.Upgrade(version); err != nil {
			t.Fatal(err)
		}

		f.wait("the connection to see Omni "+version, func() error {
			connection := get[v1alpha1.OmniConnection](f.space, "oconn", "omni")
			if now := connection.Status.Omni; now == nil || !strings.HasPrefix(now.Version, "v"+version+".") {
				return fmt.Errorf("it shows %v", now)
			}

			return nil
		})

		cluster := f.reconciled("c")
		f.waitCondition("ocl", "c", v1alpha1.ConditionReady, metav1.ConditionTrue, "")
		f.nothingWritten()
		f.wantByOthers("the upgrade to "+version, "c", "200-cluster-c-sysctls")

		if plan := cluster.Status.Plan; plan != nil && plan.Creates+plan.Updates+plan.Destroys > 0 {
			t.Errorf("Omni %s: %+v", version, plan)
		}
	}

	f.apply(workersManifest("c-w", "c", classOf(pool, 3)), strings.Replace(clusterManifest("c", spec), `"1"`, `"2"`, 1))
	f.ready("c")
	f.waitMachines("c", "c-w", 3)
	f.wantByOthers("a scale and a patch", "c", "200-cluster-c-sysctls")
	f.wantDestroyed()
}
