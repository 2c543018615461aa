package exporttarget_test

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

	"omni.texashpc.com/omni-cluster-operator/pkg/admission/exporttarget"
	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// grants allows what it lists, as "verb namespace" or "verb namespace/name", and records the questions.
type grants struct {
	authorizer.Authorizer

	allowed []string
	asked   []string
	err     error
}

func (g *grants) Authorize(_ context.Context, asked authorizer.Attributes) (authorizer.Decision, string, error) {
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

func TestValidate(t *testing.T) {
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
			asked := &grants{allowed: test.allowed}
			err := validate(t, asked, false, test.old, test.now, test.subresource)

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

			asked := &grants{allowed: test.allowed}
			err := validate(t, asked, !test.off, old, test.now, "")

			if diff := cmp.Diff(test.asked, asked.asked); diff != "" {
				t.Errorf("asked (-want +got):\n%s", diff)
			}

			if test.refused == "" && err != nil || test.refused != "" && (!apierrors.IsForbidden(err) || !strings.Contains(err.Error(), test.refused)) {
				t.Errorf("got %v, want %q", err, test.refused)
			}
		})
	}
}

func validate(t *testing.T, asked authorizer.Authorizer, checks bool, old, now runtime.Object, subresource string) error {
	t.Helper()

	operation := admission.Create
	if old != nil {
		operation = admission.Update
	}

	plugin := exporttarget.New()
	plugin.SetAuthorizer(asked)
	plugin.SetCheckReferences(checks)

	if err := plugin.ValidateInitialization(); err != nil {
		t.Fatal(err)
	}

	attributes := admission.NewAttributesRecord(now, old, schema.GroupVersionKind{}, "apps", "x",
		v1alpha1.SchemeGroupVersion.WithResource("omnikubeconfigexports"), subresource, operation, &metav1.CreateOptions{}, false, &user.DefaultInfo{Name: "alice"})

	return plugin.Validate(t.Context(), attributes, nil)
}

// An authorizer that gives no answer grants nothing.
func TestNobodyAnswers(t *testing.T) {
	err := validate(t, &grants{err: errors.New("the hub is away")}, false, nil, export("flux-system", "a"), "")
	if !apierrors.IsServiceUnavailable(err) || !strings.Contains(err.Error(), "try again") {
		t.Error(err)
	}

	if err := exporttarget.New().ValidateInitialization(); err == nil {
		t.Error("a plugin without an authorizer is accepted")
	}
}

func TestRegister(t *testing.T) {
	plugins := admission.NewPlugins()
	exporttarget.Register(plugins)

	if got := plugins.Registered(); len(got) != 1 || got[0] != "OmniExportTarget" {
		t.Errorf("registered %v", got)
	}
}
