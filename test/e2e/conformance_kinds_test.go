package e2e

import (
	"cmp"
	"encoding/json"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// subject is one of our kinds, as the conformance tests need it.
type subject struct {
	kind, resource string
	// spec is one that the controller does nothing with: what it refers to does not exist.
	spec string
	// path and value are a field of spec that may change, as path of a JSON patch, and another value of it as JSON.
	path, value string
	// field and of are the kind's field selector, and its value in spec. Empty: the kind has none.
	field, of string
	// shared is a merge patch of the spec for each of two appliers who share a list or map: both end up
	// with an element of their own, at the paths owned.
	shared [2]string
	owned  [2]string
	// roles write the kind: those that hold the role edit, if this is empty.
	roles string
	// headings are the columns of `kubectl get -o wide`.
	headings string
}

// subjects are all kinds.
var subjects = []subject{
	{
		kind: "OmniConnection", resource: "omniconnections",
		spec: `{"endpoint":"https://127.0.0.1:1","auth":{"serviceAccountSecretRef":{"name":"absent"}}}`,
		path: "/spec/endpoint", value: `"https://127.0.0.1:2"`,
		headings: "NAME READY STATUS ENDPOINT OMNI SERVICE ACCOUNT EXPIRES MESSAGE AGE",
	},
	{
		kind: "OmniCluster", resource: "omniclusters",
		spec: `{"connectionRef":{"name":"absent"},"kubernetes":{"version":"v1.35.1"},"talos":{"version":"v1.13.3"},"suspend":true}`,
		path: "/spec/kubernetes/version", value: `"v1.35.2"`,
		field: "spec.connectionRef.name", of: "absent",
		shared: [2]string{
			`{"kubernetes":{"manifests":[{"name":"one","inline":[{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"one"}}]}]}}`,
			`{"kubernetes":{"manifests":[{"name":"two","inline":[{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"two"}}]}]}}`,
		},
		owned:    [2]string{`.spec.kubernetes.manifests[name="one"]`, `.spec.kubernetes.manifests[name="two"]`},
		headings: "NAME SUSPENDED READY STATUS KUBERNETES TALOS CONTROL PLANE WORKERS CONNECTION PLAN HELD MESSAGE AGE",
	},
	{
		kind: "OmniControlPlane", resource: "omnicontrolplanes",
		spec: `{"clusterRef":{"name":"absent"},"machineClass":{"name":"m","size":1}}`,
		path: "/spec/machineClass/size", value: `3`,
		field: "spec.clusterRef.name", of: "absent",
		shared:   [2]string{`{"labels":{"one":"1"}}`, `{"labels":{"two":"2"}}`},
		owned:    [2]string{".spec.labels.one", ".spec.labels.two"},
		headings: "NAME READY STATUS CLUSTER DESIRED READY MACHINES CLASS MESSAGE AGE",
	},
	{
		kind: "OmniWorkers", resource: "omniworkers",
		spec: `{"clusterRef":{"name":"absent"},"machineClass":{"name":"m","size":1}}`,
		path: "/spec/machineClass/size", value: `3`,
		field: "spec.clusterRef.name", of: "absent",
		shared:   [2]string{`{"labels":{"one":"1"}}`, `{"labels":{"two":"2"}}`},
		owned:    [2]string{".spec.labels.one", ".spec.labels.two"},
		headings: "NAME READY STATUS CLUSTER DESIRED READY MACHINES CLASS MESSAGE AGE",
	},
	{
		kind: "OmniMachine", resource: "omnimachines",
		spec: `{"clusterRef":{"name":"absent"},"machineID":"27c16241-96bf-4f17-9579-ea3a6c4a3ca8","locked":false}`,
		path: "/spec/locked", value: `true`,
		field: "spec.clusterRef.name", of: "absent",
		shared:   [2]string{`{"labels":{"one":"1"}}`, `{"labels":{"two":"2"}}`},
		owned:    [2]string{".spec.labels.one", ".spec.labels.two"},
		headings: "NAME READY STATUS CLUSTER MACHINE STAGE CONNECTED MESSAGE AGE",
	},
	{
		kind: "OmniKubeconfigExport", resource: "omnikubeconfigexports",
		spec: `{"clusterRef":{"name":"absent"},"targetSecretRef":{"name":"t"},"serviceAccount":{"user":"u","groups":["g"]},"ttl":"24h","deletionPolicy":"Delete"}`,
		path: "/spec/ttl", value: `"48h"`,
		field: "spec.clusterRef.name", of: "absent",
		shared:   [2]string{`{"serviceAccount":{"groups":["one"]}}`, `{"serviceAccount":{"groups":["two"]}}`},
		owned:    [2]string{`.spec.serviceAccount.groups[="one"]`, `.spec.serviceAccount.groups[="two"]`},
		headings: "NAME READY STATUS CLUSTER SECRET EXPIRES ROTATES MESSAGE AGE",
	},
	{
		kind: "OmniSecretSync", resource: "omnisecretsyncs",
		spec: `{"clusterRef":{"name":"absent"},"kubeconfigSecretRef":{"name":"k"},"sourceSecretRef":{"name":"s"},` +
			`"targetSecretRef":{"name":"t","namespace":"apps"},"deletionPolicy":"Delete"}`,
		path: "/spec/sourceSecretRef/name", value: `"other"`,
		field: "spec.clusterRef.name", of: "absent",
		shared:   [2]string{`{"keys":[{"from":"a","to":"one"}]}`, `{"keys":[{"from":"b","to":"two"}]}`},
		owned:    [2]string{`.spec.keys[to="one"]`, `.spec.keys[to="two"]`},
		headings: "NAME READY STATUS CLUSTER SOURCE TARGET SYNCED MESSAGE AGE",
	},
	{
		kind: "OmniHelmRelease", resource: "omnihelmreleases",
		spec: `{"suspend":true,"clusterRef":{"name":"absent"},"kubeconfigSecretRef":{"name":"k"},"chart":{"chart":"oci://example.com/x","version":"1.0.0"}}`,
		path: "/spec/chart/version", value: `"1.0.1"`,
		field: "spec.clusterRef.name", of: "absent",
		shared:   [2]string{`{"dependsOn":[{"name":"one"}]}`, `{"dependsOn":[{"name":"two"}]}`},
		owned:    [2]string{`.spec.dependsOn[name="one"]`, `.spec.dependsOn[name="two"]`},
		headings: "NAME SUSPENDED READY STATUS CLUSTER CHART VERSION REVISION HELM MESSAGE AGE",
	},
	{
		kind: "OmniRolloutPolicy", resource: "omnirolloutpolicies", roles: "admin",
		spec: `{"clusterSelector":{"matchLabels":{"absent":"true"}},"stages":[{"name":"all"}],"maxFailed":1}`,
		path: "/spec/maxFailed", value: `2`,
		shared: [2]string{
			`{"freezes":[{"name":"one","from":"2026-01-01T00:00:00Z","until":"2026-01-02T00:00:00Z"}]}`,
			`{"freezes":[{"name":"two","from":"2026-02-01T00:00:00Z","until":"2026-02-02T00:00:00Z"}]}`,
		},
		owned:    [2]string{`.spec.freezes[name="one"]`, `.spec.freezes[name="two"]`},
		headings: "NAME SUSPENDED READY STATUS STAGES HELD RUNNING FAILED NEXT MESSAGE AGE",
	},
}

// writers are the roles that may write the kind.
func (k subject) writers() string { return cmp.Or(k.roles, "edit admin") }

// holders are the programs that put a finalizer on objects of the kind. Nothing remote hangs on a policy.
func (k subject) holders() string {
	if k.kind == "OmniRolloutPolicy" {
		return ""
	}

	return "omni-controller"
}

// scales reports whether the kind has a scale.
func (k subject) scales() bool { return k.kind == "OmniControlPlane" || k.kind == "OmniWorkers" }

// gvr is the resource as dynamic clients name it.
func (k subject) gvr() schema.GroupVersionResource {
	return v1alpha1.SchemeGroupVersion.WithResource(k.resource)
}

// object is a valid object of the kind.
func (k subject) object(t *testing.T, name string) *unstructured.Unstructured {
	t.Helper()

	var spec map[string]any
	if err := json.Unmarshal([]byte(k.spec), &spec); err != nil {
		t.Fatal(err)
	}

	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": v1alpha1.SchemeGroupVersion.String(), "kind": k.kind,
		"metadata": map[string]any{"name": name}, "spec": spec,
	}}
}

// manifest is the object as JSON, which kubectl takes as well as YAML.
func (k subject) manifest(t *testing.T, name string) string {
	t.Helper()

	data, err := json.Marshal(k.object(t, name))
	if err != nil {
		t.Fatal(err)
	}

	return string(data)
}

// labelled is an object with a label.
func (k subject) labelled(t *testing.T, name, key, value string) *unstructured.Unstructured {
	t.Helper()

	object := k.object(t, name)
	object.SetLabels(map[string]string{key: value})

	return object
}

// dynamicFor returns a client that knows no types.
func dynamicFor(t *testing.T, config *rest.Config) dynamic.Interface {
	t.Helper()

	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}

	return client
}

// admin is the administrator's client of the kind in the namespace.
func (k subject) admin(t *testing.T, namespace string) dynamic.ResourceInterface {
	t.Helper()

	return dynamicFor(t, stack.RESTConfig()).Resource(k.gvr()).Namespace(namespace)
}

// must is for calls that have to succeed.
func must[T any](value T, err error) func(t *testing.T) T {
	return func(t *testing.T) T {
		t.Helper()

		if err != nil {
			t.Fatal(err)
		}

		return value
	}
}

// namesOf are the names in a list, in its order.
func namesOf(list *unstructured.UnstructuredList) []string {
	var names []string
	for i := range list.Items {
		names = append(names, list.Items[i].GetName())
	}

	return names
}

// forEachKind runs a test of every kind in one namespace, in parallel with other tests.
func forEachKind(t *testing.T, test func(t *testing.T, k subject, namespace string)) {
	t.Helper()
	t.Parallel()

	s := newSpace(t)

	for _, k := range subjects {
		t.Run(k.kind, func(t *testing.T) { test(t, k, s.name) })
	}
}

var dryRun = []string{metav1.DryRunAll}
