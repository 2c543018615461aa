package deploy

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// annotated are the ServiceAccounts that are rendered, and their annotations.
func annotated(objects []*unstructured.Unstructured) map[string]string {
	result := map[string]string{}

	for _, object := range objects {
		if object.GetKind() == "ServiceAccount" {
			result[object.GetName()] = ""

			annotations := object.GetAnnotations()
			for _, name := range slices.Sorted(maps.Keys(annotations)) {
				result[object.GetName()] += name + "=" + annotations[name] + " "
			}
		}
	}

	return result
}

// TestServiceAccounts: names and annotations of accounts, one for each namespace that is served.
func TestServiceAccounts(t *testing.T) {
	for values, want := range map[string]map[string]string{
		`{}`: {"omni-apiserver": "", "omni-controller": ""},
		`{apiserver: {serviceAccount: {name: server, annotations: {a: b}}}, controller: {serviceAccount: {name: robot, annotations: {c: d}}}}`: {
			"server": "a=b ", "robot": "c=d ",
		},
		`controller: {allNamespaces: true, serviceAccount: {name: robot, annotations: {c: d}}}`: {"omni-apiserver": "", "robot": "c=d "},
		`controller: {namespaces: [` + namespace + `, team-a, team-b], serviceAccount: {name: robot, annotations: {c: d},
			namespaceAnnotations: {team-a: {c: e, f: g}, ` + namespace + `: {h: i}}}}`: {
			"omni-apiserver": "", "robot": "c=d h=i ", "robot-team-a": "c=e f=g ", "robot-team-b": "c=d ",
		},
		`{fullnameOverride: hub, controller: {namespaces: [team-a]}}`:                      {"hub-apiserver": "", "hub-controller-team-a": ""},
		`controller: {namespaces: [team-a], serviceAccount: {create: false, name: robot}}`: {"omni-apiserver": ""},
		`apiserver: {serviceAccount: {create: false, name: server}}`:                       {"omni-controller": ""},
	} {
		files := mustRender(t, values)
		if diff := cmp.Diff(want, annotated(decode(t, stream(files)))); diff != "" {
			t.Errorf("%s: accounts; -want +got:\n%s", values, diff)
		}

		// What is not made is used and bound all the same.
		problems := slices.DeleteFunc(inconsistencies(t, files), func(problem string) bool {
			return strings.Contains(values, "create: false") && (strings.Contains(problem, "robot") || strings.Contains(problem, "server"))
		})
		if len(problems) > 0 {
			t.Errorf("%s:\n%s", values, strings.Join(problems, "\n"))
		}
	}

	for values, want := range map[string]string{
		`controller: {serviceAccount: {create: false}}`:                                      "/controller/serviceAccount/name",
		`apiserver: {serviceAccount: {create: false}}`:                                       "/apiserver/serviceAccount/name",
		`controller: {serviceAccount: {namespaceAnnotations: {team-z: {a: b}}}}`:             "no controller serves the namespace team-z alone",
		`controller: {serviceAccount: {namespaceAnnotations: {"Team Z": {a: b}}}}`:           "namespaceAnnotations",
		`controller: {serviceAccount: {annotations: {a: 1}}}`:                                "annotations",
		`controller: {allNamespaces: true, serviceAccount: {namespaceAnnotations: {a: {}}}}`: "no controller serves the namespace a alone",
	} {
		if _, err := render(values); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", values, err, want)
		}
	}
}

// ofRoleBinding is the argument that names a RoleBinding of the chart.
var ofRoleBinding = regexp.MustCompile(`(?m)^ *- --role-binding=.*\n`)

// TestWithoutRoles: with rbac.create false nothing of RBAC is rendered, nor an argument that names it, and everything else is as
// it was.
func TestWithoutRoles(t *testing.T) {
	for set, values := range valueSets(t) {
		with := stream(mustRender(t, merged(t, values, `rbac: {helperRoles: {create: true}}`)))
		want := slices.DeleteFunc(decode(t, ofRoleBinding.ReplaceAllString(with, "")), func(object *unstructured.Unstructured) bool {
			return object.GroupVersionKind().Group == "rbac.authorization.k8s.io"
		})

		got := decode(t, stream(mustRender(t, merged(t, values, `rbac: {create: false, helperRoles: {create: true}}`))))
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: -want +got:\n%s", set, diff)
		}
	}
}

// TestHelperRoles: three roles for each kind, each about that kind alone, by the names that people have bound.
func TestHelperRoles(t *testing.T) {
	for values, prefix := range map[string]string{
		`rbac: {helperRoles: {create: true}}`:                                                   "omni-cluster-operator",
		`{fullnameOverride: hub, rbac: {helperRoles: {create: true}}}`:                          "hub",
		`{fullnameOverride: hub, rbac: {helperRoles: {create: true, prefix: my-operator-1.2}}}`: "my-operator-1.2",
	} {
		objects := decode(t, stream(mustRender(t, values)))

		for kind, resource := range map[string]string{
			"omnicluster": "omniclusters", "omniconnection": "omniconnections", "omnicontrolplane": "omnicontrolplanes", "omnihelmrelease": "omnihelmreleases",
			"omnikubeconfigexport": "omnikubeconfigexports", "omnimachine": "omnimachines", "omnisecretsync": "omnisecretsyncs", "omniworkers": "omniworkers",
			"omnirolloutpolicy": "omnirolloutpolicies",
		} {
			for role, verbs := range map[string]string{
				"viewer": "[get list watch]", "editor": "[get list watch create update patch delete]",
				"admin": "[get list watch create update patch delete deletecollection]",
			} {
				name := fmt.Sprintf("%s-%s-%s-role", prefix, kind, role)

				rules, _, err := unstructured.NestedSlice(find(t, objects, "ClusterRole", name).Object, "rules")
				if err != nil {
					t.Fatal(err)
				}

				if got := rules[0].(map[string]any); fmt.Sprint(got["resources"]) != "["+resource+"]" || fmt.Sprint(got["verbs"]) != verbs {
					t.Errorf("%s: %v", name, got)
				}

				for _, rule := range rules[1:] {
					fields := rule.(map[string]any)
					if kind == "omnicluster" && role == "admin" && fmt.Sprint(fields["resources"], fields["verbs"]) == "[omniclusters] [override]" {
						continue // who may edit clusters need not be who lets their changes begin out of turn
					}

					if got := fmt.Sprint(fields["resources"]); !strings.HasPrefix(got, "["+resource+"/") || role == "viewer" && fmt.Sprint(fields["verbs"]) != "[get]" {
						t.Errorf("%s: %v", name, fields)
					}
				}
			}
		}
	}

	if text := stream(mustRender(t, "")); strings.Contains(text, "-role\n") {
		t.Error("there are roles for each kind without being asked for")
	}
}
