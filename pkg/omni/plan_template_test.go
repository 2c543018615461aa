package omni

import (
	"errors"
	"strings"
	"testing"

	omnires "github.com/siderolabs/omni/client/pkg/omni/resources/omni"
)

func TestPlanRefusesBadTemplates(t *testing.T) {
	for name, document := range map[string]string{
		"empty":                        "",
		"not YAML":                     "a: [",
		"unknown kind":                 "kind: Something\n",
		"unknown field":                clusterDocument + "nonsense: 1\n" + controlPlaneDocument,
		"a cluster alone":              clusterDocument,
		"two control planes":           clusterDocument + controlPlaneDocument + controlPlaneDocument,
		"an unlisted machine document": fullTemplate + "---\nkind: Machine\nname: 44444444-4444-4444-8444-444444444444\n",
		"not a machine ID":             strings.Replace(fullTemplate, machine2, "my-machine", 1),
		// Validate says nothing here; Translate does.
		"cluster-wide kernel arguments with a class": strings.Replace(clusterDocument, "talos:", "kernelArgs: [quiet]\ntalos:", 1) +
			"---\nkind: ControlPlane\nmachineClass:\n  name: cpu\n  size: 1\n",
	} {
		t.Run(name, func(t *testing.T) {
			if err := CheckTemplate([]byte(document)); !errors.Is(err, ErrTemplate) {
				t.Errorf("CheckTemplate: %v", err)
			}

			_, err := PlanSync(t.Context(), newFakeOmni(), []byte(document), PlanOptions{})
			if !errors.Is(err, ErrTemplate) || Classify(err) != ClassRefused {
				t.Errorf("PlanSync: %v", err)
			}
		})
	}

	if err := CheckTemplate([]byte(fullTemplate)); err != nil {
		t.Errorf("a good template: %v", err)
	}
}

func TestPlanLeavesAClusterAloneThatIsBeingDestroyed(t *testing.T) {
	st := newFakeOmni()
	mustSync(t, st, fullTemplate)
	tearDown(t, st, omnires.NewCluster("demo"))

	if _, err := PlanSync(t.Context(), st, []byte(fullTemplate), PlanOptions{}); !errors.Is(err, ErrClusterTearingDown) {
		t.Errorf("error %v", err)
	}
}
