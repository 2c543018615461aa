package plugin_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"omni.texashpc.com/omni-cluster-operator/pkg/admission/plugin"
	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/generated/clientset/versioned/fake"
	"omni.texashpc.com/omni-cluster-operator/pkg/generated/informers/externalversions"
)

// exportGrants allows what it lists, as "verb namespace" or "verb namespace/name", and records the questions.
type exportGrants struct {
	authorizer.Authorizer

	allowed []string
	asked   []string
	err     error
}

func (g *exportGrants) Authorize(_ context.Context, asked authorizer.Attributes) (authorizer.Decision, string, error) {
	question := asked.GetVerb() + " " + asked.GetNamespace()
	if asked.GetName() != "" {
		question += "/" + asked.GetName()
	}

	g.asked = append(g.asked, question)

	if asked.GetUser().GetName() != "alice" || asked.GetResource() != "secrets" || asked.GetAPIGroup() != "" || !asked.IsResourceRequest() {
		return authorizer.DecisionDeny, "another question", nil
	}

	if slices.Contains(g.allowed, question) {
		return authorizer.DecisionAllow, "", nil
	}

	return authorizer.DecisionNoOpinion, "", g.err
}

func export(namespace, user string) *v1alpha1.OmniKubeconfigExport {
	return &v1alpha1.OmniKubeconfigExport{Spec: v1alpha1.OmniKubeconfigExportSpec{
		TargetSecretRef: v1alpha1.TargetSecretReference{Name: "access", Namespace: namespace},
		ServiceAccount:  v1alpha1.KubeconfigServiceAccount{User: user},
	}}
}

func adopting(namespace, user string) *v1alpha1.OmniKubeconfigExport {
	o := export(namespace, user)
	o.Spec.Adopt = true

	return o
}

func TestExportTarget(t *testing.T) {
	both := []string{"create flux-system", "update flux-system"}

	for name, test := range map[string]struct {
		old, now    runtime.Object
		subresource string
		allowed     []string
		asked       []string
		refused     string
	}{
		"its own namespace, by default": {now: export("", "a")},
		"its own namespace, named":      {now: export("apps", "a")},
		"allowed":                       {now: export("flux-system", "a"), allowed: both, asked: both},
		"may not create":                {now: export("flux-system", "a"), allowed: both[1:], asked: both[:1], refused: `user "alice" cannot create Secrets in namespace "flux-system"`},
		"may not update":                {now: export("flux-system", "a"), allowed: both[:1], asked: both, refused: `user "alice" cannot update Secrets in namespace "flux-system"`},
		"nothing changed":               {old: export("flux-system", "a"), now: export("flux-system", "a")},
		"another user in the Secret":    {old: export("flux-system", "a"), now: export("flux-system", "b"), asked: both[:1], refused: "cannot create Secrets"},
		"back to its own namespace":     {old: export("flux-system", "a"), now: export("", "a")},
		"status":                        {now: export("flux-system", "a"), subresource: "status"},
		"another kind":                  {now: &v1alpha1.OmniSecretSync{}},
	} {
		t.Run(name, func(t *testing.T) {
			asked := &exportGrants{allowed: test.allowed}
			err := validateExport(t, asked, false, test.old, test.now, test.subresource)

			if diff := cmp.Diff(test.asked, asked.asked); diff != "" {
				t.Errorf("asked (-want +got):\n%s", diff)
			}

			switch {
			case test.refused == "" && err != nil:
				t.Error(err)
			case test.refused != "" && (!apierrors.IsForbidden(err) || !strings.Contains(err.Error(), test.refused)):
				t.Errorf("got %v, want %q", err, test.refused)
			}
		})
	}
}

// TestAdopt: with references checked, who has an export take over a Secret, which replaces its content and deletes it with
// the export, may do both to that Secret.
func TestAdopt(t *testing.T) {
	own, other := []string{"update apps/access", "delete apps/access"}, []string{"create flux-system", "update flux-system", "update flux-system/access", "delete flux-system/access"}
	update, remove := `user "alice" cannot update Secret "access" in namespace "apps"`, `user "alice" cannot delete Secret "access" in namespace "apps"`

	for name, test := range map[string]struct {
		off      bool
		old, now *v1alpha1.OmniKubeconfigExport
		allowed  []string
		asked    []string
		refused  string
	}{
		"without any right":         {now: adopting("", "a"), asked: own[:1], refused: update},
		"its own namespace, named":  {now: adopting("apps", "a"), asked: own[:1], refused: update},
		"may only update":           {now: adopting("", "a"), allowed: own[:1], asked: own, refused: remove},
		"may do both":               {now: adopting("", "a"), allowed: own, asked: own},
		"references are unchecked":  {off: true, now: adopting("", "a")},
		"without adopt":             {now: export("", "a")},
		"elsewhere":                 {now: adopting("flux-system", "a"), allowed: other, asked: other},
		"elsewhere, may not delete": {now: adopting("flux-system", "a"), allowed: other[:3], asked: other, refused: "cannot delete"},
		"adopts from now on":        {old: export("", "a"), now: adopting("", "a"), asked: own[:1], refused: update},
		"another user in it":        {old: adopting("", "a"), now: adopting("", "b"), asked: own[:1], refused: update},
		"nothing changed":           {old: adopting("", "a"), now: adopting("", "a")},
		"adopts no more":            {old: adopting("", "a"), now: export("", "a")},
	} {
		t.Run(name, func(t *testing.T) {
			var old runtime.Object
			if test.old != nil {
				old = test.old
			}

			asked := &exportGrants{allowed: test.allowed}
			err := validateExport(t, asked, !test.off, old, test.now, "")

			if diff := cmp.Diff(test.asked, asked.asked); diff != "" {
				t.Errorf("asked (-want +got):\n%s", diff)
			}

			if test.refused == "" && err != nil || test.refused != "" && (!apierrors.IsForbidden(err) || !strings.Contains(err.Error(), test.refused)) {
				t.Errorf("got %v, want %q", err, test.refused)
			}
		})
	}
}

func validateExport(t *testing.T, asked authorizer.Authorizer, checks bool, old, now runtime.Object, subresource string) error {
	t.Helper()

	plugin := newExportTarget(t, asked)
	plugin.SetCheckReferences(checks)

	return plugin.Validate(t.Context(), attributesOf(old, now, subresource), nil)
}

func attributesOf(old, now runtime.Object, subresource string) admission.Attributes {
	operation := admission.Create
	if old != nil {
		operation = admission.Update
	}

	return admission.NewAttributesRecord(now, old, schema.GroupVersionKind{}, "apps", "x",
		v1alpha1.SchemeGroupVersion.WithResource("omnikubeconfigexports"), subresource, operation, &metav1.CreateOptions{}, false, &user.DefaultInfo{Name: "alice"})
}

// newExportTarget has a synchronized view of the stored objects.
func newExportTarget(t *testing.T, asked authorizer.Authorizer, stored ...runtime.Object) *plugin.ExportTarget {
	t.Helper()

	factory := externalversions.NewSharedInformerFactory(fake.NewClientset(stored...), 0)
	plugin := plugin.NewExportTarget()
	plugin.SetAuthorizer(asked)
	plugin.SetInformers(factory)

	if err := plugin.ValidateInitialization(); err != nil {
		t.Fatal(err)
	}

	factory.StartWithContext(t.Context())
	factory.WaitForCacheSync(t.Context().Done())

	return plugin
}

// TestWhereItLeads: who decides to which server a kubeconfig leads may write the Secret in the other namespace, as the one who
// made the export: what reads it there goes where it leads.
func TestWhereItLeads(t *testing.T) {
	written := func(name, cluster, namespace string) *v1alpha1.OmniKubeconfigExport {
		o := export(namespace, "a")
		o.Namespace, o.Name, o.Spec.ClusterRef.Name = "apps", name, cluster
		o.Status.TargetSecretRef = &v1alpha1.TargetSecretReference{Name: name, Namespace: namespace}

		return o
	}
	cluster := func(name, connection string) *v1alpha1.OmniCluster {
		o := &v1alpha1.OmniCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "apps", Name: name}}
		o.Spec.ConnectionRef.Name = connection

		return o
	}
	connection := func(endpoint, key string) *v1alpha1.OmniConnection {
		o := &v1alpha1.OmniConnection{ObjectMeta: metav1.ObjectMeta{Namespace: "apps", Name: "x"}}
		o.Spec.Endpoint, o.Spec.Auth.ServiceAccountSecretRef.Name = endpoint, key

		return o
	}
	unwritten := export("flux-system", "a")
	unwritten.Namespace, unwritten.Name, unwritten.Spec.ClusterRef.Name = "apps", "unwritten", "demo"
	may := []string{"update flux-system/access"}

	for name, test := range map[string]struct {
		stored   []runtime.Object
		old, now runtime.Object
		allowed  []string
		asked    []string
	}{
		"another endpoint":              {[]runtime.Object{written("access", "demo", "flux-system"), cluster("demo", "x")}, connection("https://a", "k"), connection("https://b", "k"), nil, may},
		"another endpoint, may":         {[]runtime.Object{written("access", "demo", "flux-system"), cluster("demo", "x")}, connection("https://a", "k"), connection("https://b", "k"), may, may},
		"another key":                   {[]runtime.Object{written("access", "demo", "flux-system"), cluster("demo", "x")}, connection("https://a", "k"), connection("https://a", "l"), nil, nil},
		"a connection made anew":        {[]runtime.Object{written("access", "demo", "flux-system"), cluster("demo", "x")}, nil, connection("https://b", "k"), nil, may},
		"of another connection":         {[]runtime.Object{written("access", "demo", "flux-system"), cluster("demo", "y")}, connection("https://a", "k"), connection("https://b", "k"), nil, nil},
		"in its own namespace":          {[]runtime.Object{written("access", "demo", "apps"), cluster("demo", "x")}, connection("https://a", "k"), connection("https://b", "k"), nil, nil},
		"nothing was written":           {[]runtime.Object{unwritten, cluster("demo", "x")}, connection("https://a", "k"), connection("https://b", "k"), nil, nil},
		"a cluster made anew":           {[]runtime.Object{written("access", "x", "flux-system")}, nil, cluster("x", "y"), nil, may},
		"a cluster that is changed":     {[]runtime.Object{written("access", "x", "flux-system")}, cluster("x", "y"), cluster("x", "y"), nil, nil},
		"a cluster with another name":   {[]runtime.Object{written("access", "demo", "flux-system")}, nil, cluster("x", "y"), nil, nil},
		"a cluster whose export is new": {[]runtime.Object{unwritten}, nil, cluster("demo", "y"), nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			asked := &exportGrants{allowed: test.allowed}
			err := newExportTarget(t, asked, test.stored...).Validate(t.Context(), attributesOf(test.old, test.now, ""), nil)

			if diff := cmp.Diff(test.asked, asked.asked); diff != "" {
				t.Errorf("asked (-want +got):\n%s", diff)
			}

			refused := len(test.asked) > len(test.allowed)
			if !refused && err != nil || refused && (!apierrors.IsForbidden(err) || !strings.Contains(err.Error(), `cannot decide where the kubeconfig leads that OmniKubeconfigExport "access" writes there`)) {
				t.Error(err)
			}
		})
	}
}

// TestNotSynced: a server that does not know all exports yet waits a moment, and allows nobody to lead them elsewhere.
func TestNotSynced(t *testing.T) {
	t.Parallel()

	plugin := plugin.NewExportTarget()
	plugin.SetAuthorizer(&exportGrants{})
	plugin.SetInformers(externalversions.NewSharedInformerFactory(fake.NewClientset(), 0))

	if err := plugin.Validate(t.Context(), attributesOf(nil, &v1alpha1.OmniConnection{}, ""), nil); !apierrors.IsServiceUnavailable(err) {
		t.Error(err)
	}
}

// An authorizer that gives no answer grants nothing.
func TestExportTargetNobodyAnswers(t *testing.T) {
	err := validateExport(t, &exportGrants{err: errors.New("the hub is away")}, false, nil, export("flux-system", "a"), "")
	if !apierrors.IsServiceUnavailable(err) || !strings.Contains(err.Error(), "try again") {
		t.Error(err)
	}

	if err := plugin.NewExportTarget().ValidateInitialization(); err == nil {
		t.Error("a plugin without an authorizer is accepted")
	}
}
