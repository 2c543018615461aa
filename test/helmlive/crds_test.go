package helmlive

import (
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"omni.texashpc.com/omni-cluster-operator/pkg/helm"
	"omni.texashpc.com/omni-cluster-operator/test/chartserver"
)

const crd = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.live.example.com, annotations: {from: VERSION}}
spec:
  group: live.example.com
  names: {kind: Thing, plural: things}
  scope: Namespaced
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
`

// crdOf is a CRD of a kind of the test's own.
func crdOf(kind, version string) string {
	return strings.NewReplacer("things", strings.ToLower(kind)+"s", "Thing", kind, "VERSION", version).Replace(crd)
}

// findCRD is the CRD of a kind, or an error.
func findCRD(t *testing.T, kind string) (*apiextensionsv1.CustomResourceDefinition, error) {
	t.Helper()

	client, err := apiextensions.NewForConfig(cluster.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}

	return client.ApiextensionsV1().CustomResourceDefinitions().Get(t.Context(), strings.ToLower(kind)+"s.live.example.com", metav1.GetOptions{})
}

// fromOf says where the CRD of a kind is from.
func fromOf(t *testing.T, kind string) string {
	t.Helper()

	found, err := findCRD(t, kind)
	if err != nil {
		t.Fatal(err)
	}

	return found.Annotations["from"]
}

// custom is a chart with an object of a kind, and a file of CRDs.
func custom(kind, version, crds string) chartserver.Chart {
	made := chartOf(version, "apiVersion: live.example.com/v1\nkind: "+kind+"\nmetadata: {name: {{ .Release.Namespace }}}\n")
	made.Files["crds/all.yaml"] = crds

	return made
}

func TestCRDs(t *testing.T) {
	chart := func(version string) chartserver.Chart { return custom("Thing", version, crdOf("Thing", version)) }

	t.Run("first", func(t *testing.T) {
		r := newRelease(t)
		r.want(helm.ActionInstall, chart("1.0.0"), "")
		r.want(helm.ActionNone, chart("1.0.0"), "")
	})
	t.Run("second", func(t *testing.T) { newRelease(t).want(helm.ActionInstall, chart("2.0.0"), "") })

	if got := fromOf(t, "Thing"); got != "1.0.0" {
		t.Errorf("the CRD is from %q: an existing one was overwritten", got)
	}
}

// Of a file with several CRDs only those are installed that are missing, also if the file is a list.
func TestCRDsInOneFile(t *testing.T) {
	list := func(crds ...string) string {
		text := "apiVersion: v1\nkind: List\nitems:\n"
		for _, one := range crds {
			text += "- " + strings.ReplaceAll(strings.TrimSpace(one), "\n", "\n  ") + "\n"
		}

		return text
	}

	for name, file := range map[string]func(crds ...string) string{
		"documents": func(crds ...string) string { return "# all\n---\n" + strings.Join(crds, "---\n") },
		"list":      list,
	} {
		t.Run(name, func(t *testing.T) {
			there, missing := "There"+name, "Missing"+name

			t.Run("theirs", func(t *testing.T) {
				newRelease(t).want(helm.ActionInstall, custom(there, "1.0.0", crdOf(there, "theirs")), "")
			})
			t.Run("ours", func(t *testing.T) {
				newRelease(t).want(helm.ActionInstall, custom(missing, "2.0.0", file(crdOf(there, "ours"), crdOf(missing, "ours"))), "")
			})

			if got := fromOf(t, there); got != "theirs" {
				t.Errorf("the CRD is from %q: an existing one was overwritten", got)
			}

			if got := fromOf(t, missing); got != "ours" {
				t.Errorf("the missing CRD is from %q", got)
			}
		})
	}
}

// The folder may hold nothing but CRDs.
func TestOtherObjectsBesideCRDs(t *testing.T) {
	r := newRelease(t)
	beside := custom("Beside", "1.0.0", crdOf("Beside", "1.0.0")+"---\napiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\nmetadata: {name: beside}\n"+
		"roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}\n")
	r.wantError(helm.ActionInstall, beside, "", helm.ReasonRefused, "chart demo 1.0.0", `crds/all.yaml has the "ClusterRoleBinding" "beside"`, "skipCRDs")

	if _, err := findCRD(t, "Beside"); !apierrors.IsNotFound(err) {
		t.Errorf("the CRD beside it was made: %v", err)
	}

	if _, err := cluster.Client().RbacV1().ClusterRoleBindings().Get(t.Context(), "beside", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the binding was made: %v", err)
	}
}

// An upgrade installs no CRDs; one over attempts that never were in effect stands for an install.
func TestCRDsAfterAFailedInstall(t *testing.T) {
	r := newRelease(t)
	r.wantError(helm.ActionInstall, refused("1.0.0"), "", helm.ReasonFailed)

	first := custom("Late", "1.1.0", crdOf("Late", "1.1.0"))
	first.Files["Chart.yaml"] = "apiVersion: v2\nname: demo\nversion: 1.1.0\ndependencies: [{name: extra, version: 1.0.0, condition: extra.enabled}]\n"
	first.Files["charts/extra/Chart.yaml"] = "apiVersion: v2\nname: extra\nversion: 1.0.0\n"
	first.Files["charts/extra/crds/extra.yaml"] = crdOf("Extra", "1.0.0")

	r.want(helm.ActionUpgrade, first, "extra: {enabled: false}")
	r.want(helm.ActionNone, first, "extra: {enabled: false}")

	if _, err := findCRD(t, "Extra"); !apierrors.IsNotFound(err) {
		t.Errorf("a dependency that is switched off has brought its CRDs: %v", err)
	}

	// From now on the CRDs stay as they are.
	r.want(helm.ActionUpgrade, custom("Late", "1.2.0", crdOf("Late", "1.2.0")), "")

	if got := fromOf(t, "Late"); got != "1.1.0" {
		t.Errorf("the CRD is from %q", got)
	}
}

func TestCRDsThatAreSkippedAfterAFailedInstall(t *testing.T) {
	r := newRelease(t)
	r.settings.SkipCRDs = true
	r.wantError(helm.ActionInstall, refused("1.0.0"), "", helm.ReasonFailed)
	r.wantError(helm.ActionUpgrade, custom("Skipped", "1.1.0", crdOf("Skipped", "1.1.0")), "", helm.ReasonFailed, "Skipped")
}
