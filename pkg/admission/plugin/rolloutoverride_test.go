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
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"omni.texashpc.com/omni-cluster-operator/pkg/admission/plugin"
	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// overrideGrants answers the one question that it expects.
type overrideGrants struct {
	authorizer.Authorizer

	allow bool
	err   error
	asked int
}

func (g *overrideGrants) Authorize(_ context.Context, asked authorizer.Attributes) (authorizer.Decision, string, error) {
	g.asked++

	expected := asked.GetUser().GetName() == "alice" && asked.GetVerb() == "override" && asked.GetAPIGroup() == "omni.texashpc.com" &&
		asked.GetResource() == "omniclusters" && asked.GetSubresource() == "" && asked.GetNamespace() == "apps" && asked.GetName() == "x" && asked.IsResourceRequest()

	if expected && g.allow {
		return authorizer.DecisionAllow, "", nil
	}

	return authorizer.DecisionNoOpinion, "", g.err
}

func clusterWithOverride(override string) *v1alpha1.OmniCluster {
	o := &v1alpha1.OmniCluster{}
	if override != "" {
		o.Annotations = map[string]string{"omni.texashpc.com/rollout-override": override}
	}

	return o
}

func validateOverride(t *testing.T, asked authorizer.Authorizer, old, now runtime.Object, subresource string) error {
	t.Helper()

	operation := admission.Create
	if old != nil {
		operation = admission.Update
	}

	plugin := plugin.NewRolloutOverride()
	plugin.SetAuthorizer(asked)

	if err := plugin.ValidateInitialization(); err != nil {
		t.Fatal(err)
	}

	attributes := admission.NewAttributesRecord(now, old, schema.GroupVersionKind{}, "apps", "x",
		v1alpha1.SchemeGroupVersion.WithResource("omniclusters"), subresource, operation, &metav1.CreateOptions{}, false, &user.DefaultInfo{Name: "alice"})

	return plugin.Validate(t.Context(), attributes, nil)
}

func TestRolloutOverride(t *testing.T) {
	for name, test := range map[string]struct {
		old, now    runtime.Object
		subresource string
		allow       bool
		asked       int
		refused     bool
	}{
		"no override":                {now: clusterWithOverride("")},
		"a new cluster":              {now: clusterWithOverride("a"), asked: 1, refused: true},
		"a new cluster, allowed":     {now: clusterWithOverride("a"), allow: true, asked: 1},
		"a new override":             {old: clusterWithOverride(""), now: clusterWithOverride("a"), asked: 1, refused: true},
		"another override":           {old: clusterWithOverride("a"), now: clusterWithOverride("b"), asked: 1, refused: true},
		"another override, allowed":  {old: clusterWithOverride("a"), now: clusterWithOverride("b"), allow: true, asked: 1},
		"the same override":          {old: clusterWithOverride("a"), now: clusterWithOverride("a")},
		"the override is taken away": {old: clusterWithOverride("a"), now: clusterWithOverride("")},
		"status":                     {old: clusterWithOverride(""), now: clusterWithOverride("a"), subresource: "status"},
		"another kind":               {now: &v1alpha1.OmniSecretSync{ObjectMeta: clusterWithOverride("a").ObjectMeta}},
	} {
		t.Run(name, func(t *testing.T) {
			asked := &overrideGrants{allow: test.allow}
			err := validateOverride(t, asked, test.old, test.now, test.subresource)

			if asked.asked != test.asked {
				t.Errorf("asked %d times, want %d", asked.asked, test.asked)
			}

			switch {
			case !test.refused && err != nil:
				t.Error(err)
			case test.refused && (!apierrors.IsForbidden(err) || !strings.Contains(err.Error(), `user "alice" cannot override omniclusters in namespace "apps"`)):
				t.Errorf("got %v", err)
			}
		})
	}
}

// An authorizer that gives no answer grants nothing.
func TestRolloutOverrideNobodyAnswers(t *testing.T) {
	err := validateOverride(t, &overrideGrants{err: errors.New("the hub is away")}, nil, clusterWithOverride("a"), "")
	if !apierrors.IsServiceUnavailable(err) || !strings.Contains(err.Error(), "try again") {
		t.Error(err)
	}

	if err := plugin.NewRolloutOverride().ValidateInitialization(); err == nil {
		t.Error("a plugin without an authorizer is accepted")
	}
}

// Every request that can bring the annotation is asked about.
func TestRolloutOverrideHandles(t *testing.T) {
	for operation, want := range map[admission.Operation]bool{admission.Create: true, admission.Update: true, admission.Delete: false} {
		if got := plugin.NewRolloutOverride().Handles(operation); got != want {
			t.Errorf("%s: %v", operation, got)
		}
	}
}
