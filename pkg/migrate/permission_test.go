package migrate

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/metadata"
	metadatafake "k8s.io/client-go/metadata/fake"
	"sigs.k8s.io/yaml"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// noSecrets is a management cluster without Secrets.
func noSecrets() metadata.Interface {
	scheme := metadatafake.NewTestScheme()
	if err := metav1.AddMetaToScheme(scheme); err != nil {
		panic(err)
	}

	return metadatafake.NewSimpleMetadataClient(scheme)
}

// fakeHub is a management cluster with some objects. It does not keep managed fields: tests write them.
func fakeHub(objects ...*unstructured.Unstructured) *fake.FakeDynamicClient {
	lists := map[schema.GroupVersionResource]string{
		podsResource: "PodList", namespacesResource: "NamespaceList", deploymentsResource: "DeploymentList",
		definitionsResource: "CustomResourceDefinitionList", apiServicesResource: "APIServiceList",
		validatingResource: "ValidatingWebhookConfigurationList", mutatingResource: "MutatingWebhookConfigurationList",
		v1alpha1.SchemeGroupVersion.WithResource("omniclusteraddons"): "OmniClusterAddonList",
	}
	for _, k := range kinds() {
		lists[k.resource()] = k.Name + "List"
	}

	var all []runtime.Object
	for _, obj := range objects {
		all = append(all, obj)
	}

	return fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), lists, all...)
}

// migrationOn makes a migration of a fake hub, with the old objects as its backup.
func migrationOn(objects *fake.FakeDynamicClient, old ...*unstructured.Unstructured) *Migration {
	m := &Migration{
		hub: &hub{objects: objects}, now: time.Now, backup: &backup{Format: backupFormat}, report: &Report{},
		options: Options{Progress: &bytes.Buffer{}, Timeout: time.Minute},
	}

	for _, obj := range old {
		m.backup.Objects = append(m.backup.Objects, *obj)
	}

	return m
}

// writtenBy notes that field managers have written a field of the spec.
func writtenBy(obj *unstructured.Unstructured, field string, managers ...string) {
	entries := obj.GetManagedFields()
	for _, manager := range managers {
		entries = append(entries, metav1.ManagedFieldsEntry{
			Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate, FieldsType: "FieldsV1",
			FieldsV1: metav1.NewFieldsV1(fmt.Sprintf(`{"f:spec":{"f:%s":{}}}`, field)),
		})
	}

	obj.SetManagedFields(entries)
}

const (
	syncSpec    = `{clusterRef: {name: c}, kubeconfigSecretRef: {name: k}, sourceSecretRef: {name: s}, targetSecretRef: {name: t, namespace: apps}, deletionPolicy: Delete%s}`
	releaseSpec = `{clusterRef: {name: c}, kubeconfigSecretRef: {name: k}, namespace: apps, chart: {repository: "https://charts.example.com", chart: app, version: 1.0.0}%s}`
)

// The permission to take over what others have made ends with the takeover. It stays while an object is not Ready, and if
// somebody else wants it, too.
func TestPermissionEnds(t *testing.T) {
	for name, test := range map[string]struct {
		before, spec string   // further fields of the old and of the new object
		ready        string   // the status of Ready
		writers      []string // of the permission
		ends, kept   bool     // whether the permission is taken away; whether we keep our fields after that
	}{
		"it is ready":                     {spec: ": true", ready: "True", writers: []string{fieldManager}, ends: true},
		"it is not ready":                 {spec: ": true", ready: "False", writers: []string{fieldManager}, kept: true},
		"the run died before it let go":   {spec: ": false", ready: "True", writers: []string{fieldManager}},
		"somebody set it again":           {spec: ": true", ready: "True", writers: []string{"kubectl-edit"}},
		"Git has it, too":                 {spec: ": true", ready: "True", writers: []string{fieldManager, "kustomize-controller"}},
		"the old object had it":           {before: ": true", spec: ": true", ready: "True", writers: []string{fieldManager}},
		"it was made by somebody else":    {spec: ": true", ready: "True"},
		"nobody has looked at the change": {spec: ": true", ready: "", writers: []string{fieldManager}, kept: true},
	} {
		for kind, of := range map[string]struct{ spec, field string }{"OmniSecretSync": {syncSpec, "adopt"}, "OmniHelmRelease": {releaseSpec, "takeOwnership"}} {
			t.Run(kind+"/"+name, func(t *testing.T) {
				fields := func(value string) string {
					if value == "" {
						return fmt.Sprintf(of.spec, "")
					}

					return fmt.Sprintf(of.spec, ", "+of.field+value)
				}
				live := stored(t, kind, "", fields(test.spec))
				live.Object["status"] = map[string]any{"conditions": []any{
					map[string]any{"type": "Ready", "status": test.ready, "reason": "R", "message": "m", "observedGeneration": int64(3)},
				}}

				writtenBy(live, of.field, test.writers...)

				live.SetGeneration(3)

				if test.ready == "" {
					live.SetGeneration(4)
				}

				objects := fakeHub(live)
				old := stored(t, kind, "", fields(test.before))
				old.Object["status"] = map[string]any{} // it was not Ready: nothing waits for it
				m := migrationOn(objects, old)
				c := m.converted()[0]

				v, err := m.verifyOther(t.Context(), c)
				if err != nil || !v.over {
					t.Fatalf("%+v, %v, refused: %v", v, err, c.Refusals)
				}

				m.report.add(c, v)

				if ended := writes(objects, of.field); ended != test.ends {
					t.Errorf("ended: %t, want %t", ended, test.ends)
				}

				objects.ClearActions()

				if err := m.letGo(t.Context(), c); err != nil {
					t.Fatal(err)
				}

				if letGo := writes(objects, "managedFields"); letGo != (!test.kept && weOwn(live)) {
					t.Errorf("let go: %t", letGo)
				}

				if text := "spec." + of.field + " stays true"; strings.Contains(v.text, text) != test.kept {
					t.Errorf("the report says %q", v.text)
				}
			})
		}
	}
}

// writes reports whether a patch names a field. Any other write is a failure of the fake.
func writes(objects *fake.FakeDynamicClient, field string) bool {
	for _, action := range objects.Actions() {
		patch, isPatch := action.(interface{ GetPatch() []byte })
		if isPatch && bytes.Contains(patch.GetPatch(), []byte(`"`+field+`"`)) {
			return true
		}
	}

	return false
}

// In Git the permissions would stay for good, so the manifests for Git do not have them, except where the user has written
// them. They say so.
func TestManifestsHaveNoPermission(t *testing.T) {
	s := &state{}
	for i, more := range []string{"", ", takeOwnership: true"} {
		release := stored(t, "OmniHelmRelease", "", fmt.Sprintf(releaseSpec, more))
		release.SetName(fmt.Sprintf("release-%d", i))
		s.Objects = append(s.Objects, *release)
	}

	s.Objects = append(s.Objects, *stored(t, "OmniSecretSync", "", fmt.Sprintf(syncSpec, "")), *stored(t, "OmniCluster", "", cluster+"}"))

	text, err := planOf(s, nil).Manifests()
	if err != nil {
		t.Fatal(err)
	}

	documents := strings.Split(string(text), "---\n")[1:]
	if len(documents) != 4 {
		t.Fatalf("%d documents:\n%s", len(documents), text)
	}

	for i, want := range []any{nil, true, nil, true} {
		var document struct{ Spec map[string]any }
		if err := yaml.Unmarshal([]byte(documents[i]), &document); err != nil {
			t.Fatal(err)
		}

		got := document.Spec["adopt"]
		if i < 2 {
			got = document.Spec["takeOwnership"]
		}

		if got != want || strings.Contains(documents[i], "# ") != (want == nil) {
			t.Errorf("%v, want %v:\n%s", got, want, documents[i])
		}
	}
}
