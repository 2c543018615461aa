package observe

import (
	"slices"
	"strings"
	"testing"

	"github.com/cosi-project/runtime/pkg/resource/meta"
	"github.com/siderolabs/omni/client/api/omni/specs"
	omnires "github.com/siderolabs/omni/client/pkg/omni/resources/omni"

	"omni.texashpc.com/omni-cluster-operator/pkg/foreign/redact"
	"omni.texashpc.com/omni-cluster-operator/test/omnitest"
)

// TestManifestsOfNoStatus has a cluster of which Omni has not looked at the manifests, or that has none.
func TestManifestsOfNoStatus(t *testing.T) {
	st := omnitest.NewFakeOmni()
	omnitest.MustCreate(t, st, omnitest.ClusterNamed("demo"))

	got, err := Observe(t.Context(), st, "demo")
	if err != nil || got.Manifests != (Manifests{}) {
		t.Errorf("%+v, %v", got.Manifests, err)
	}
}

// TestManifestsAreBounded has objects with names that Kubernetes would refuse.
func TestManifestsAreBounded(t *testing.T) {
	st := omnitest.NewFakeOmni()
	status := omnires.NewClusterKubernetesManifestsStatus("demo")
	long := strings.Repeat("long", 1000)

	group := manifestGroup(0, manifest(manifestPending, long, long, long), manifest(manifestDeleting, long, long, long+"er"))
	status.TypedSpec().Value = &specs.ClusterKubernetesManifestsStatusSpec{
		Total: 2, OutOfSync: 2, LastError: long, Groups: map[string]*specs.ClusterKubernetesManifestsStatusSpec_GroupStatus{"a": group},
	}
	omnitest.MustCreate(t, st, omnitest.ClusterNamed("demo"), status)

	got, err := Observe(t.Context(), st, "demo")
	if err != nil {
		t.Fatal(err)
	}

	running := runningStatus()
	running.Manifests = got.Manifests

	_, reason, message := Running(running)
	if reason != ReasonManifestsNotApplied || len(message) > redact.MaxBytes || !strings.Contains(message, "clusterkubernetesmanifestsstatus demo") {
		t.Errorf("%s, %d bytes: %s", reason, len(message), message)
	}
}

// TestNameForOmnictl checks that omnictl has the type under the name that the message tells.
func TestNameForOmnictl(t *testing.T) {
	definition, err := meta.NewResourceDefinition(omnires.ClusterKubernetesManifestsStatusExtension{}.ResourceDefinition())
	if err != nil {
		t.Fatal(err)
	}

	if names := definition.TypedSpec().AllAliases; !slices.Contains(names, "clusterkubernetesmanifestsstatus") {
		t.Errorf("it has %v", names)
	}
}
