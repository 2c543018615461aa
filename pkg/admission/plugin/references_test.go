package plugin_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"omni.texashpc.com/omni-cluster-operator/pkg/admission/plugin"
	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// referenceGrants allows what it lists, as "verb resource name", and records the questions.
type referenceGrants struct {
	authorizer.Authorizer

	allowed []string
	asked   []string
	err     error
}

func (g *referenceGrants) Authorize(_ context.Context, asked authorizer.Attributes) (authorizer.Decision, string, error) {
	question := fmt.Sprintf("%s %s %s", asked.GetVerb(), asked.GetResource(), asked.GetName())
	g.asked = append(g.asked, question)

	if asked.GetUser().GetName() != "alice" || asked.GetNamespace() != "apps" || asked.GetAPIGroup() != "" || !asked.IsResourceRequest() {
		return authorizer.DecisionDeny, "another question", nil
	}

	for _, allowed := range g.allowed {
		if allowed == question {
			return authorizer.DecisionAllow, "", nil
		}
	}

	return authorizer.DecisionNoOpinion, "", g.err
}

func clusterWithReferences(patches ...v1alpha1.Patch) *v1alpha1.OmniCluster {
	return &v1alpha1.OmniCluster{Spec: v1alpha1.OmniClusterSpec{Patches: patches}}
}

func secretPatch(name, key string) v1alpha1.Patch {
	return v1alpha1.Patch{ValueFrom: &v1alpha1.ValueSource{SecretKeyRef: &v1alpha1.KeyReference{Name: name, Key: key}}}
}

func release(repository, auth string) *v1alpha1.OmniHelmRelease {
	return &v1alpha1.OmniHelmRelease{Spec: v1alpha1.OmniHelmReleaseSpec{
		KubeconfigSecretRef: v1alpha1.SecretKeyReference{Name: "access"},
		Chart:               v1alpha1.HelmChart{Repository: repository, Chart: "demo", AuthSecretRef: &v1alpha1.LocalObjectReference{Name: auth}},
	}}
}

// releaseIn is a release with the values of Secret db, in the cluster that is reached like this.
func releaseIn(cluster, kubeconfig, key string) *v1alpha1.OmniHelmRelease {
	return &v1alpha1.OmniHelmRelease{Spec: v1alpha1.OmniHelmReleaseSpec{
		ClusterRef:          v1alpha1.LocalObjectReference{Name: cluster},
		KubeconfigSecretRef: v1alpha1.SecretKeyReference{Name: kubeconfig, Key: key},
		Chart: v1alpha1.HelmChart{Repository: "https://a", Chart: "demo", ValuesFrom: []v1alpha1.HelmValuesReference{
			{Kind: v1alpha1.ValuesSecret, Name: "db"}, {Kind: v1alpha1.ValuesConfigMap, Name: "map"},
		}},
	}}
}

// connection uses the key of a Secret with an Omni.
func connection(endpoint, secret string) *v1alpha1.OmniConnection {
	o := &v1alpha1.OmniConnection{Spec: v1alpha1.OmniConnectionSpec{Endpoint: endpoint}}
	o.Spec.Auth.ServiceAccountSecretRef = v1alpha1.SecretKeyReference{Name: secret}

	return o
}

func workers(cluster string, more ...v1alpha1.Patch) *v1alpha1.OmniWorkers {
	o := &v1alpha1.OmniWorkers{Spec: v1alpha1.OmniWorkersSpec{ClusterRef: v1alpha1.LocalObjectReference{Name: cluster}}}
	o.Spec.Patches = append([]v1alpha1.Patch{secretPatch("a", "k")}, more...)

	return o
}

// syncOf copies these keys of Secret db; without any, all.
func syncOf(keys ...string) *v1alpha1.OmniSecretSync {
	o := &v1alpha1.OmniSecretSync{Spec: v1alpha1.OmniSecretSyncSpec{
		ClusterRef: v1alpha1.LocalObjectReference{Name: "prod"}, SourceSecretRef: v1alpha1.LocalObjectReference{Name: "db"},
	}}

	for i, key := range keys {
		o.Spec.Keys = append(o.Spec.Keys, v1alpha1.SecretKeyMapping{From: key, To: fmt.Sprint(i)})
	}

	return o
}

func TestReferences(t *testing.T) {
	configMap := v1alpha1.Patch{ValueFrom: &v1alpha1.ValueSource{ConfigMapKeyRef: &v1alpha1.KeyReference{Name: "map", Key: "k"}}}

	for name, test := range map[string]struct {
		old, now    runtime.Object
		subresource string
		allowed     []string
		asked       []string
		refused     []string // words of the refusal
	}{
		"no references":          {now: clusterWithReferences(v1alpha1.Patch{Name: "inline"})},
		"allowed":                {now: clusterWithReferences(secretPatch("a", "k"), configMap), allowed: []string{"get secrets a", "get configmaps map"}, asked: []string{"get secrets a", "get configmaps map"}},
		"each is asked for once": {now: clusterWithReferences(secretPatch("a", "k"), secretPatch("a", "l")), allowed: []string{"get secrets a"}, asked: []string{"get secrets a"}},
		"refused": {
			now: clusterWithReferences(secretPatch("a", "k"), secretPatch("b", "k")), allowed: []string{"get secrets a"}, asked: []string{"get secrets a", "get secrets b"},
			refused: []string{"spec.patches[1].valueFrom.secretKeyRef", `user "alice" cannot get secrets "b" in namespace "apps"`},
		},
		"a ConfigMap":        {now: clusterWithReferences(configMap), asked: []string{"get configmaps map"}, refused: []string{`get configmaps "map"`}},
		"nothing changed":    {old: clusterWithReferences(secretPatch("a", "k")), now: clusterWithReferences(secretPatch("a", "k"))},
		"another order":      {old: clusterWithReferences(secretPatch("a", "k"), configMap), now: clusterWithReferences(configMap, secretPatch("a", "k"))},
		"one fewer":          {old: clusterWithReferences(secretPatch("a", "k"), configMap), now: clusterWithReferences(configMap)},
		"another key":        {old: clusterWithReferences(secretPatch("a", "k")), now: clusterWithReferences(secretPatch("a", "l")), asked: []string{"get secrets a"}, refused: []string{`"a"`}},
		"one more":           {old: clusterWithReferences(secretPatch("a", "k")), now: clusterWithReferences(secretPatch("a", "k"), secretPatch("b", "k")), asked: []string{"get secrets b"}, refused: []string{`"b"`}},
		"the same elsewhere": {old: release("https://a", "access"), now: release("https://evil", "access"), asked: []string{"get secrets access"}, refused: []string{"spec.chart.authSecretRef"}},
		"the same values, another cluster": {
			old: releaseIn("prod", "access", "k"), now: releaseIn("prod", "mine", "k"), allowed: []string{"get secrets mine"},
			asked: []string{"get secrets mine", "get secrets db"}, refused: []string{"spec.chart.valuesFrom[0]", `"db"`},
		},
		"the same values, another key of the kubeconfig": {
			old: releaseIn("prod", "access", "k"), now: releaseIn("prod", "access", "l"), allowed: []string{"get secrets access"},
			asked: []string{"get secrets access", "get secrets db"}, refused: []string{"spec.chart.valuesFrom[0]", `"db"`},
		},
		"the same values, another clusterRef": {
			old: releaseIn("prod", "access", "k"), now: releaseIn("mine", "access", "k"),
			asked: []string{"get secrets db"}, refused: []string{"spec.chart.valuesFrom[0]", `"db"`},
		},
		"the same values, another cluster, and allowed": {
			old: releaseIn("prod", "access", "k"), now: releaseIn("mine", "other", "k"),
			allowed: []string{"get secrets other", "get secrets db", "get configmaps map"},
			asked:   []string{"get secrets other", "get secrets db", "get configmaps map"},
		},
		"the same values, the same cluster": {old: releaseIn("prod", "access", "k"), now: releaseIn("prod", "access", "k")},
		"the same patch, another cluster":   {old: workers("prod"), now: workers("mine"), asked: []string{"get secrets a"}, refused: []string{"spec.patches[0]", `"a"`}},
		"the same key, another Omni":        {old: connection("https://a", "key"), now: connection("https://evil", "key"), asked: []string{"get secrets key"}, refused: []string{"spec.auth.serviceAccountSecretRef", `"key"`}},
		"the same key, the same Omni":       {old: connection("https://a", "key"), now: connection("https://a", "key")},
		"another key, the same Omni":        {old: connection("https://a", "key"), now: connection("https://a", "other"), asked: []string{"get secrets other"}, refused: []string{`"other"`}},
		"the same ConfigMap, another cluster": {
			old: workers("prod", configMap), now: workers("mine", configMap), allowed: []string{"get secrets a"},
			asked: []string{"get secrets a", "get configmaps map"}, refused: []string{"spec.patches[1]", `"map"`},
		},
		"the same patch, the same cluster": {old: workers("prod"), now: workers("prod")},
		"a copy of the same keys":          {old: syncOf("a", "b"), now: syncOf("b", "a")},
		"a copy of fewer keys":             {old: syncOf("a", "b"), now: syncOf("b")},
		"a copy of one key more":           {old: syncOf("a"), now: syncOf("a", "b"), asked: []string{"get secrets db"}, refused: []string{"spec.sourceSecretRef", `"db"`}},
		"a copy of all keys":               {old: syncOf("a"), now: syncOf(), asked: []string{"get secrets db"}, refused: []string{"spec.sourceSecretRef", `"db"`}},
		"a copy of some keys, of all":      {old: syncOf(), now: syncOf("a")},
		"a copy of all keys, as now":       {old: syncOf(), now: syncOf()},
		"credentials stay":                 {old: release("https://a", "auth"), now: release("https://a", "auth")},
		"status":                           {now: clusterWithReferences(secretPatch("a", "k")), subresource: "status"},
		"scale":                            {now: clusterWithReferences(secretPatch("a", "k")), subresource: "scale"},
	} {
		t.Run(name, func(t *testing.T) {
			asked := &referenceGrants{allowed: test.allowed}
			err := validateReferences(t, asked, test.old, test.now, test.subresource, "alice")

			if diff := cmp.Diff(test.asked, asked.asked); diff != "" {
				t.Errorf("asked (-want +got):\n%s", diff)
			}

			if (test.refused != nil) != apierrors.IsForbidden(err) || test.refused == nil && err != nil {
				t.Fatalf("got %v", err)
			}

			for _, words := range test.refused {
				if !strings.Contains(err.Error(), words) {
					t.Errorf("%q does not say %q", err, words)
				}
			}
		})
	}
}

func validateReferences(t *testing.T, asked authorizer.Authorizer, old, now runtime.Object, subresource, name string) error {
	t.Helper()

	operation := admission.Create
	if old != nil {
		operation = admission.Update
	}

	plugin := plugin.NewReferences()
	plugin.SetCheckReferences(true)
	plugin.SetAuthorizer(asked)

	if err := plugin.ValidateInitialization(); err != nil {
		t.Fatal(err)
	}

	return plugin.Validate(t.Context(), admission.NewAttributesRecord(now, old, schema.GroupVersionKind{Kind: "X"}, "apps", "x",
		v1alpha1.SchemeGroupVersion.WithResource("x"), subresource, operation, &metav1.CreateOptions{}, false, &user.DefaultInfo{Name: name}), nil)
}

// Every request that can name a reference is asked about.
func TestReferencesHandles(t *testing.T) {
	for operation, want := range map[admission.Operation]bool{admission.Create: true, admission.Update: true, admission.Delete: false, admission.Connect: false} {
		if got := plugin.NewReferences().Handles(operation); got != want {
			t.Errorf("%s: %v", operation, got)
		}
	}
}

// An authorizer that gives no answer grants nothing, and the client may try again.
func TestNoAnswer(t *testing.T) {
	err := validateReferences(t, &referenceGrants{err: errors.New("hub is down")}, nil, clusterWithReferences(secretPatch("a", "k")), "", "alice")
	if !apierrors.IsServiceUnavailable(err) || !strings.Contains(err.Error(), "hub is down") {
		t.Errorf("got %v", err)
	}
}

// One request asks the management cluster a bounded number of questions.
func TestManyReferences(t *testing.T) {
	asked := &referenceGrants{}

	var patches []v1alpha1.Patch

	for i := range 5 * plugin.MaxNew {
		name := fmt.Sprintf("s%d", i)
		patches = append(patches, secretPatch(name, "k"))
		asked.allowed = append(asked.allowed, "get secrets "+name)
	}

	err := validateReferences(t, asked, nil, clusterWithReferences(patches...), "", "alice")
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "in several steps") || len(asked.asked) != plugin.MaxNew {
		t.Errorf("%d questions, %v", len(asked.asked), err)
	}
}

func TestOff(t *testing.T) {
	plugin := plugin.NewReferences()
	if err := plugin.ValidateInitialization(); err != nil {
		t.Error(err)
	}

	attributes := admission.NewAttributesRecord(clusterWithReferences(secretPatch("a", "k")), nil, schema.GroupVersionKind{}, "apps", "x",
		v1alpha1.SchemeGroupVersion.WithResource("omniclusters"), "", admission.Create, nil, false, &user.DefaultInfo{})
	if err := plugin.Validate(t.Context(), attributes, nil); err != nil {
		t.Error(err)
	}

	plugin.SetCheckReferences(true)

	if err := plugin.ValidateInitialization(); err == nil {
		t.Error("a plugin that asks nobody starts")
	}
}

// kinds are all kinds.
func kinds() []runtime.Object {
	return []runtime.Object{
		&v1alpha1.OmniConnection{}, &v1alpha1.OmniCluster{}, &v1alpha1.OmniControlPlane{}, &v1alpha1.OmniWorkers{},
		&v1alpha1.OmniMachine{}, &v1alpha1.OmniKubeconfigExport{}, &v1alpha1.OmniSecretSync{}, &v1alpha1.OmniHelmRelease{},
	}
}

// notRead are fields with a Secret in their name whose content no object uses.
var notRead = []string{
	"spec.targetSecretRef", // is written
	"spec.secretTemplate",  // metadata of what is written
}

// TestEveryReferenceIsListed finds the fields by their types and names, so that it covers every kind and fields that
// are added later.
func TestEveryReferenceIsListed(t *testing.T) {
	for _, object := range kinds() {
		kind := reflect.TypeOf(object).Elem().Name()

		var want []plugin.Reference

		fill(t, reflect.ValueOf(object).Elem().FieldByName("Spec"), "spec", &want)

		got := plugin.Of(object)
		if diff := cmp.Diff(want, got, cmpopts.SortSlices(func(a, b plugin.Reference) bool { return a.Field < b.Field }),
			cmpopts.IgnoreFields(plugin.Reference{}, "Destination")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", kind, diff)
		}

		if plugin.Of(nil) != nil {
			t.Error("nothing has references")
		}
	}
}

// fill sets every field of a value, and gives every reference to a Secret or ConfigMap a different name.
func fill(t *testing.T, value reflect.Value, path string, found *[]plugin.Reference) {
	t.Helper()

	reference := func(resource string, fields ...string) {
		added := plugin.Reference{Field: path, Resource: resource}
		for i, target := range []*string{&added.Name, &added.Key}[:len(fields)] {
			*target = fmt.Sprintf("n%d-%d", len(*found), i)
			value.FieldByName(fields[i]).SetString(*target)
		}

		*found = append(*found, added)
	}

	about := regexp.MustCompile(`(?i)secret|configmap`).MatchString(path[strings.LastIndex(path, ".")+1:])

	for _, known := range notRead {
		if path == known {
			return
		}
	}

	switch value.Interface().(type) {
	case v1alpha1.SecretKeyReference:
		reference("secrets", "Name", "Key")
	case v1alpha1.KeyReference:
		if strings.HasSuffix(path, ".configMapKeyRef") {
			reference("configmaps", "Name", "Key")
		} else {
			reference("secrets", "Name", "Key")
		}
	case v1alpha1.HelmValuesReference:
		value.FieldByName("Kind").SetString(string(v1alpha1.ValuesSecret))
		reference("secrets", "Name", "Key")
	case v1alpha1.LocalObjectReference:
		if about {
			reference("secrets", "Name")
		}
	case v1alpha1.SecretKeyMapping: // of the source, which is the last reference
		(*found)[len(*found)-1].Key = "from"
		value.FieldByName("From").SetString("from")
	default:
		if strings.HasSuffix(value.Type().Name(), "Reference") || about && value.Kind() != reflect.Pointer {
			t.Errorf("%s (%s) may be a reference: list it in Of, or in notRead", path, value.Type())
		}

		descend(t, value, path, found)
	}
}

func descend(t *testing.T, value reflect.Value, path string, found *[]plugin.Reference) {
	t.Helper()

	switch value.Kind() { // the rest holds nothing
	case reflect.Pointer:
		value.Set(reflect.New(value.Type().Elem()))
		fill(t, value.Elem(), path, found)
	case reflect.Slice:
		if value.Type().Elem().Kind() == reflect.Struct {
			value.Set(reflect.MakeSlice(value.Type(), 1, 1))
			fill(t, value.Index(0), path+"[0]", found)
		}
	case reflect.Struct:
		for i := range value.NumField() {
			field := value.Type().Field(i)
			if !field.IsExported() {
				continue
			}

			at := path
			if name, _, _ := strings.Cut(field.Tag.Get("json"), ","); name != "" {
				at += "." + name
			}

			fill(t, value.Field(i), at, found)
		}
	}
}
