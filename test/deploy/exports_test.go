package deploy

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"omni.texashpc.com/omni-cluster-operator/test/omnisim"
)

// TestExportNamespaces: a namespace of others has a role for Secrets, bound to the accounts of those controllers that may export
// to it, and these controllers are told of it.
func TestExportNamespaces(t *testing.T) {
	for values, want := range map[string]struct{ flags, bound map[string]string }{
		``: {flags: map[string]string{"omni-controller": ""}},
		`controller: {exportNamespaces: {` + namespace + `: [flux-system, argocd]}}`: {
			flags: map[string]string{"omni-controller": "argocd,flux-system"},
			bound: map[string]string{"argocd": "omni-controller", "flux-system": "omni-controller"},
		},
		`controller: {namespaces: [team-a, team-b, team-c], exportNamespaces: {team-a: [flux-system], team-b: [team-a, flux-system]}}`: {
			flags: map[string]string{
				"omni-controller-team-a": "flux-system", "omni-controller-team-b": "flux-system,team-a", "omni-controller-team-c": "",
			},
			bound: map[string]string{"flux-system": "omni-controller-team-a omni-controller-team-b", "team-a": "omni-controller-team-b"},
		},
		`controller: {namespaces: [team-a], exportNamespaces: {team-a: [argocd]}, serviceAccount: {create: false, name: robot}}`: {
			flags: map[string]string{"omni-controller-team-a": "argocd"}, bound: map[string]string{"argocd": "robot-team-a"},
		},
		// It may use Secrets everywhere, and writes to these only.
		`controller: {allNamespaces: true, exportNamespaces: {"*": [flux-system]}}`: {flags: map[string]string{"omni-controller": "flux-system"}},
		`{rbac: {create: false}, controller: {exportNamespaces: {` + namespace + `: [argocd]}}}`: {
			flags: map[string]string{"omni-controller": "argocd"},
		},
	} {
		flags, bound := exports(t, decode(t, stream(mustRender(t, values))))
		if !maps.Equal(flags, want.flags) || !maps.Equal(bound, want.bound) {
			t.Errorf("%s: got %v, bound %v", values, flags, bound)
		}
	}
}

// exports are the namespaces that controllers are told of, and the accounts that are bound in them.
func exports(t *testing.T, objects []*unstructured.Unstructured) (flags, bound map[string]string) {
	t.Helper()

	const role = "omni-controller-exports"

	flags, bound = map[string]string{}, map[string]string{}

	for _, object := range objects {
		switch {
		case object.GetKind() == "Deployment":
			containers, _, _ := unstructured.NestedSlice(object.Object, "spec", "template", "spec", "containers")
			args, _, _ := unstructured.NestedStringSlice(containers[0].(map[string]any), "args")
			flags[object.GetName()] = ""

			for _, arg := range args {
				if given, ok := strings.CutPrefix(arg, "--export-namespaces="); ok {
					flags[object.GetName()] = given
				}
			}
		case object.GetKind() == "RoleBinding" && object.GetName() == role:
			subjects, _, _ := unstructured.NestedSlice(object.Object, "subjects")

			var names []string
			for _, subject := range subjects {
				names = append(names, text(t, subject.(map[string]any), "name"))
			}

			bound[object.GetNamespace()] = strings.Join(names, " ")

			if !slices.ContainsFunc(objects, func(other *unstructured.Unstructured) bool {
				return other.GetKind() == "Role" && other.GetName() == role && other.GetNamespace() == object.GetNamespace()
			}) {
				t.Errorf("there is no Role %s/%s", object.GetNamespace(), role)
			}
		}
	}

	return flags, bound
}

// TestRefusedExports: what names nobody, or opens the programs' own Secrets, is an error before anything is installed.
func TestRefusedExports(t *testing.T) {
	for values, want := range map[string]string{
		`{exportNamespaces: {team-z: [flux-system]}}`:                                      "no controller serves the namespace team-z",
		`{exportNamespaces: {` + namespace + `: [` + namespace + `]}}`:                     "are written there without being listed",
		`{namespaces: [team-a], exportNamespaces: {team-a: [` + namespace + `]}}`:          "is the release's namespace, with the Secrets of the programs",
		`{allNamespaces: true, exportNamespaces: {"*": [` + namespace + `]}}`:              "is the release's namespace, with the Secrets of the programs",
		`{allNamespaces: true, exportNamespaces: {team-a: [flux-system]}}`:                 "exportNamespaces",
		`{exportNamespaces: {"*": [flux-system]}}`:                                         "exportNamespaces",
		`{namespaces: [team-a], exportNamespaces: {team-a: []}}`:                           "minItems",
		`{namespaces: [team-a], exportNamespaces: {team-a: [a, a]}}`:                       "equal",
		`{namespaces: [team-a], exportNamespaces: {team-a: flux-system}}`:                  "array",
		`{namespaces: [team-a], exportNamespaces: {team-a: ["a,b"]}}`:                      "does not match pattern",
		`{exportNamespaces: {"Team A": [flux-system]}}`:                                    "exportNamespaces",
		`{extraArgs: [--export-namespaces=a], exportNamespaces: {` + namespace + `: [b]}}`: "--export-namespaces is given by the chart already",
	} {
		if _, err := render(fmt.Sprintf(`{controller: %s}`, values)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", values, err, want)
		}
	}
}

// checkExport: with the flag and the rights that are rendered, an export in team-a writes its Secret into flux-system, and
// takes it away again.
func checkExport(t *testing.T, r *running) {
	t.Helper()

	sim, err := omnisim.Start(omnisim.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer sim.Close()

	machines, err := sim.AddMachines(1)
	if err != nil {
		t.Fatal(err)
	}

	kubectl(t, r.hub, connection(t, sim)+fmt.Sprintf(`apiVersion: omni.texashpc.com/v1alpha1
kind: OmniCluster
metadata: {name: exported}
spec:
  connectionRef: {name: omni}
  kubernetes: {version: v1.35.1}
  talos: {version: v1.13.3}
---
apiVersion: omni.texashpc.com/v1alpha1
kind: OmniControlPlane
metadata: {name: exported}
spec:
  clusterRef: {name: exported}
  machines: [%s]
---
apiVersion: omni.texashpc.com/v1alpha1
kind: OmniKubeconfigExport
metadata: {name: exported}
spec:
  clusterRef: {name: exported}
  targetSecretRef: {name: exported-kubeconfig, namespace: flux-system}
  serviceAccount: {user: robot, groups: [robots]}
  ttl: 24h
  renewBefore: 4h
  deletionPolicy: Delete
`, machines[0]), "apply", "-n", "team-a", "-f", "-")

	secrets := []string{"get", "secrets", "-n", "flux-system", "-l", "omni.texashpc.com/cluster=exported", "-o", "name"}
	is := func(want string) func(string) error {
		return func(stdout string) error {
			if got := strings.TrimSpace(stdout); got != want {
				return fmt.Errorf("there is %q, want %q", got, want)
			}

			return nil
		}
	}

	eventually(t, r.hub, "the exported Secret", is("secret/exported-kubeconfig"), secrets...)

	_, warning, err := r.hub.KubectlInput(t.Context(), nil, "delete", "omnikubeconfigexport", "exported", "-n", "team-a")
	if err != nil || !strings.Contains(warning, `deletes Secret "flux-system/exported-kubeconfig"`) {
		t.Errorf("the deletion of the export: %v; warnings: %q", err, warning)
	}

	eventually(t, r.hub, "the Secret to go with its export", is(""), secrets...)
}
