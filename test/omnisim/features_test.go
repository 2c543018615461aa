package omnisim_test

import (
	"bytes"
	"testing"

	"github.com/cosi-project/runtime/pkg/safe"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/siderolabs/omni/client/api/omni/specs"
	"github.com/siderolabs/omni/client/pkg/omni/resources/omni"

	"omni.texashpc.com/omni-cluster-operator/test/omnisim"
)

// newCluster returns a Cluster with features and unknown fields in them.
func newCluster(name, talos string, embedded bool, unknown []byte) *omni.Cluster {
	cluster := omni.NewCluster(name)
	spec := cluster.TypedSpec().Value
	spec.TalosVersion, spec.KubernetesVersion = talos, "1.35.1"
	spec.Features = &specs.ClusterSpec_Features{UseEmbeddedDiscoveryService: embedded}
	spec.Features.ProtoReflect().SetUnknown(unknown)

	return cluster
}

// What the client library does not know survives the wire, in both directions.
func TestUnknownFieldsAreKept(t *testing.T) {
	st := operator(t, start(t, omnisim.Options{}))
	unknown := protowire.AppendString(protowire.AppendTag(nil, 900, protowire.BytesType), "of a release to come")

	if err := st.Create(deadline(t), newCluster("alpha", "1.13.3", false, unknown)); err != nil {
		t.Fatal(err)
	}

	_, err := safe.StateUpdateWithConflicts(deadline(t), st, omni.NewCluster("alpha").Metadata(), func(cluster *omni.Cluster) error {
		cluster.Metadata().Labels().Set("team", "a")

		return nil
	})
	if err != nil {
		t.Fatal(err)
	}

	found, err := safe.StateGetByID[*omni.Cluster](deadline(t), st, "alpha")
	if err != nil {
		t.Fatal(err)
	}

	if got := []byte(found.TypedSpec().Value.GetFeatures().ProtoReflect().GetUnknown()); !bytes.Equal(got, unknown) {
		t.Errorf("% x", got)
	}
}

// The texts are those of Omni's validation of clusters since 1.10.
func TestPublicDiscoveryCanBeDisabledSinceTalos14(t *testing.T) {
	catalogue := omnisim.DefaultCatalogue()
	catalogue.Talos = append(catalogue.Talos, "1.14.0")
	disabled := protowire.AppendVarint(protowire.AppendTag(nil, 5, protowire.VarintType), 1)

	for _, test := range []struct {
		name, talos       string
		offered, embedded bool
		refusal           string
	}{
		{"older", "1.13.3", true, true, "can only be configured for clusters created with Talos 1.14 or newer"},
		{"none", "1.14.0", true, false, "the discovery service cannot be disabled entirely"},
		{"not-offered", "1.14.0", false, true, "embedded discovery service is not enabled"},
		{"both", "1.14.0", true, true, ""},
	} {
		sim := start(t, omnisim.Options{OmniVersion: "1.11", Catalogue: &catalogue, EmbeddedDiscovery: test.offered})

		if err := sim.State().Create(deadline(t), newCluster(test.name, test.talos, test.embedded, disabled)); test.refusal != "" {
			wantRefused(t, err, test.refusal)
		} else if err != nil {
			t.Errorf("%s: %v", test.name, err)
		}
	}
}
