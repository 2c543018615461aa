package plugin_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/warning"

	"omni.texashpc.com/omni-cluster-operator/pkg/admission/plugin"
	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// ownerGrants answers the one question that it expects.
type ownerGrants struct {
	authorizer.Authorizer

	allow bool
	err   error
	asked int
}

func (g *ownerGrants) Authorize(_ context.Context, asked authorizer.Attributes) (authorizer.Decision, string, error) {
	g.asked++

	expected := asked.GetUser().GetName() == "alice" && asked.GetVerb() == "delete" && asked.GetAPIGroup() == "omni.texashpc.com" &&
		asked.GetResource() == "omniworkers" && asked.GetSubresource() == "" && asked.GetNamespace() == "apps" && asked.GetName() == "x" && asked.IsResourceRequest()

	if expected && g.allow {
		return authorizer.DecisionAllow, "", nil
	}

	return authorizer.DecisionNoOpinion, "", g.err
}

// owned has owners with these UIDs.
func owned(uids ...string) *v1alpha1.OmniWorkers {
	o := &v1alpha1.OmniWorkers{ObjectMeta: metav1.ObjectMeta{Name: "x"}}
	for _, uid := range uids {
		o.OwnerReferences = append(o.OwnerReferences, metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "owner", UID: types.UID(uid)})
	}

	return o
}

func confirmed(o *v1alpha1.OmniWorkers) *v1alpha1.OmniWorkers {
	o.Annotations = map[string]string{"omni.texashpc.com/confirm-deletion": "x"}

	return o
}

func blocking(o *v1alpha1.OmniWorkers) *v1alpha1.OmniWorkers {
	o.OwnerReferences[0].BlockOwnerDeletion, o.OwnerReferences[0].Controller = new(true), new(true)

	return o
}

func renamed(o *v1alpha1.OmniWorkers) *v1alpha1.OmniWorkers {
	o.OwnerReferences[0].Name = "another"

	return o
}

// warnings are those of a request.
type warnings []string

func (w *warnings) AddWarning(_, text string) { *w = append(*w, text) }

func validateOwners(t *testing.T, asked authorizer.Authorizer, old, now runtime.Object, subresource string) (warnings, error) {
	t.Helper()

	operation := admission.Create
	if old != nil {
		operation = admission.Update
	}

	plugin := plugin.NewOwnerReferences()
	plugin.SetAuthorizer(asked)

	if err := plugin.ValidateInitialization(); err != nil {
		t.Fatal(err)
	}

	attributes := admission.NewAttributesRecord(now, old, schema.GroupVersionKind{}, "apps", "x",
		v1alpha1.SchemeGroupVersion.WithResource("omniworkers"), subresource, operation, &metav1.CreateOptions{}, false, &user.DefaultInfo{Name: "alice"})

	told := warnings{}
	err := plugin.Validate(warning.WithWarningRecorder(t.Context(), &told), attributes, nil)

	return told, err
}

func TestOwnerReferences(t *testing.T) {
	for name, test := range map[string]struct {
		old, now    runtime.Object
		subresource string
		asks, warns bool
	}{
		"a new object without an owner":   {now: owned()},
		"a new object with an owner":      {now: owned("a"), asks: true, warns: true},
		"a new one, confirmed":            {now: confirmed(owned("a")), asks: true},
		"an owner":                        {old: owned(), now: owned("a"), asks: true, warns: true},
		"another owner":                   {old: owned("a"), now: owned("b"), asks: true, warns: true},
		"one more":                        {old: owned("a"), now: owned("a", "b"), asks: true, warns: true},
		"one of two is taken away":        {old: owned("a", "b"), now: owned("a"), asks: true, warns: true},
		"the same under another name":     {old: owned("a"), now: renamed(owned("a")), asks: true, warns: true},
		"all are taken away":              {old: owned("a", "b"), now: owned()},
		"the same":                        {old: owned("a", "b"), now: owned("b", "a")},
		"the same, which blocks":          {old: owned("a"), now: blocking(owned("a"))},
		"the confirmation":                {old: owned("a"), now: confirmed(owned("a")), asks: true},
		"the confirmation stays":          {old: confirmed(owned("a")), now: confirmed(owned("a"))},
		"the confirmation is taken away":  {old: confirmed(owned("a")), now: owned("a")},
		"the confirmation without owners": {old: owned(), now: confirmed(owned())},
		"an owner of what is confirmed":   {old: confirmed(owned()), now: confirmed(owned("a")), asks: true},
		"the status":                      {old: owned(), now: owned("a"), subresource: "status"},
		"what has no metadata":            {now: &metav1.Status{}},
	} {
		t.Run(name, func(t *testing.T) {
			for _, allowed := range []bool{true, false} {
				asked := &ownerGrants{allow: allowed}
				told, err := validateOwners(t, asked, test.old, test.now, test.subresource)

				if (asked.asked == 1) != test.asks {
					t.Errorf("asked %d times", asked.asked)
				}

				if (len(told) == 1 && strings.Contains(told[0], "omni.texashpc.com/confirm-deletion")) != test.warns {
					t.Errorf("warnings: %q", told)
				}

				switch refused := test.asks && !allowed; {
				case !refused && err != nil:
					t.Error(err)
				case refused && (!apierrors.IsForbidden(err) || !strings.Contains(err.Error(), `user "alice" cannot delete omniworkers in namespace "apps"`)):
					t.Errorf("got %v", err)
				}
			}
		})
	}
}

// An authorizer that gives no answer grants nothing.
func TestOwnerReferencesNobodyAnswers(t *testing.T) {
	_, err := validateOwners(t, &ownerGrants{err: errors.New("the hub is away")}, nil, owned("a"), "")
	if !apierrors.IsServiceUnavailable(err) || !strings.Contains(err.Error(), "try again") {
		t.Error(err)
	}

	if err := plugin.NewOwnerReferences().ValidateInitialization(); err == nil {
		t.Error("a plugin without an authorizer is accepted")
	}
}

// Every request that can bring an owner is asked about.
func TestHandles(t *testing.T) {
	for operation, want := range map[admission.Operation]bool{admission.Create: true, admission.Update: true, admission.Delete: false} {
		if got := plugin.NewOwnerReferences().Handles(operation); got != want {
			t.Errorf("%s: %v", operation, got)
		}
	}
}
