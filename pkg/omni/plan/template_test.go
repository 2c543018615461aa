package plan

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	omnires "github.com/siderolabs/omni/client/pkg/omni/resources/omni"

	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/bounds"
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

// A document of a kind that our Talos library does not know is for Omni to judge. The documents beside it are checked as before.
func TestTemplateWithUnknownTalosKinds(t *testing.T) {
	const unknown = "apiVersion: v1alpha1\nkind: NoSuchConfig\nsecret: canary # as it is\n"

	with := func(patches ...string) string {
		list := "patches:\n"
		for i, patch := range patches {
			list += fmt.Sprintf("- name: p%d\n  inline: %q\n", i, patch)
		}

		return strings.Replace(omnitest.FullTemplate, "talos:", list+"talos:", 1)
	}

	for name, tc := range map[string]struct{ document, refusal string }{
		"alone":                      {with(unknown), ""},
		"behind a known one":         {with("machine: {sysctls: {a: b}}\n---\n" + unknown), ""},
		"beside another patch":       {with(unknown, "machine: {sysctls: {a: b}}"), ""},
		"the known one is wrong":     {with("machine: {sysctl: {a: b}}\n---\n" + unknown), "unknown keys"},
		"and the unknown one first":  {with(unknown + "---\nmachine: {sysctl: {a: b}}\n"), "unknown keys"},
		"the known one is Omni's":    {with(unknown + "---\ncluster: {token: a}\n"), "cluster.token"},
		"another patch is wrong":     {with(unknown, "machine: {sysctl: {a: b}}"), "unknown keys"},
		"another document is wrong":  {strings.Replace(with(unknown), omnitest.Machine2, "my-machine", 1), "my-machine"},
		"the kind cannot be a kind":  {with("apiVersion: v1alpha1\nkind: no-such-config\n"), "not registered"},
		"the patch is not YAML":      {with(unknown + "---\na: ["), "not registered"},
		"the patch has only comment": {with("# nothing\n", unknown), "config not found"},
	} {
		t.Run(name, func(t *testing.T) {
			loaded, err := Load([]byte(tc.document))
			if tc.refusal != "" {
				if !errors.Is(err, omni.ErrTemplate) || !strings.Contains(err.Error(), tc.refusal) {
					t.Errorf("error %v", err)
				}

				return
			}

			if err != nil {
				t.Fatal(err)
			}

			var contents []string

			for _, item := range loaded.parsed.resources {
				if patch, isPatch := item.(*omnires.ConfigPatch); isPatch {
					content, err := bounds.Inflate(patch.TypedSpec().Value)
					if err != nil {
						t.Fatal(err)
					}

					contents = append(contents, content)
				}
			}

			if !strings.Contains(strings.Join(contents, "\n"), unknown) {
				t.Errorf("the document is not in the plan as it was written: %q", contents)
			}
		})
	}
}

func TestPlanLeavesAClusterAloneThatIsBeingDestroyed(t *testing.T) {
	st := omnitest.NewFakeOmni()
	mustSync(t, st, omnitest.FullTemplate)
	omnitest.TearDown(t, st, omnires.NewCluster("demo"))

	if _, err := Sync(t.Context(), st, mustLoad(t, omnitest.FullTemplate), Options{}); !errors.Is(err, omni.ErrClusterTearingDown) {
		t.Errorf("error %v", err)
	}
}
