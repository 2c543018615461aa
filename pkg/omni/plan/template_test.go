package plan

import (
	"errors"
	"strings"
	"testing"

	omnires "github.com/siderolabs/omni/client/pkg/omni/resources/omni"

	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
	"omni.texashpc.com/omni-cluster-operator/test/omnitest"
)

func TestPlanRefusesBadTemplates(t *testing.T) {
	for name, document := range map[string]string{
		"empty":                        "",
		"not YAML":                     "a: [",
		"unknown kind":                 "kind: Something\n",
		"unknown field":                omnitest.ClusterDocument + "nonsense: 1\n" + omnitest.ControlPlaneDocument,
		"a cluster alone":              omnitest.ClusterDocument,
		"two control planes":           omnitest.ClusterDocument + omnitest.ControlPlaneDocument + omnitest.ControlPlaneDocument,
		"an unlisted machine document": omnitest.FullTemplate + "---\nkind: Machine\nname: 44444444-4444-4444-8444-444444444444\n",
		"not a machine ID":             strings.Replace(omnitest.FullTemplate, omnitest.Machine2, "my-machine", 1),
		// Validate accepts this; Translate does not.
		"cluster-wide kernel arguments with a class": strings.Replace(omnitest.ClusterDocument, "talos:", "kernelArgs: [quiet]\ntalos:", 1) +
			"---\nkind: ControlPlane\nmachineClass:\n  name: cpu\n  size: 1\n",
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Load([]byte(document))
			if !errors.Is(err, omni.ErrTemplate) || omni.Classify(err) != omni.ClassRefused {
				t.Error(err)
			}
		})
	}

	mustLoad(t, omnitest.FullTemplate)
}

func TestPlanLeavesAClusterAloneThatIsBeingDestroyed(t *testing.T) {
	st := omnitest.NewFakeOmni()
	mustSync(t, st, omnitest.FullTemplate)
	omnitest.TearDown(t, st, omnires.NewCluster("demo"))

	if _, err := Sync(t.Context(), st, mustLoad(t, omnitest.FullTemplate), Options{}); !errors.Is(err, omni.ErrClusterTearingDown) {
		t.Errorf("error %v", err)
	}
}
