package rolloutoverride_test

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

	"omni.texashpc.com/omni-cluster-operator/pkg/admission/rolloutoverride"
	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// grants answers the one question that it expects.
type grants struct {
	authorizer.Authorizer

	allow bool
	err   error
	asked int
}

func (g *grants) Authorize(_ context.Context, asked authorizer.Attributes) (authorizer.Decision, string, error) {
	g.asked++

	expected := asked.GetUser().GetName() == "alice" && asked.GetVerb() == "override" && asked.GetAPIGroup() == "omni.texashpc.com" &&
		asked.GetResource() == "omniclusters" && asked.GetSubresource() == "" && asked.GetNamespace() == "apps" && asked.GetName() == "x" && asked.IsResourceRequest()

	if expected && g.allow {
		return authorizer.DecisionAllow, "", nil
	}

	return authorizer.DecisionNoOpinion, "", g.err
}

func cluster(override string) *v1alpha1.OmniCluster {
	o := &v1alpha1.OmniCluster{}
	if override != "" {
		o.Annotations = map[string]string{"omni.texashpc.com/rollout-override": override}
	}

	return o
}

func validate(t *testing.T, asked authorizer.Authorizer, old, now runtime.Object, subresource string) error {
	t.Helper()

	operation := admission.Create
	if old != nil {
		operation = admission.Update
	}

	plugin := rolloutoverride.New()
	plugin.SetAuthorizer(asked)

	if err := plugin.ValidateInitialization(); err != nil {
		t.Fatal(err)
	}

	attributes := admission.NewAttributesRecord(now, old, schema.GroupVersionKind{}, "apps", "x",
		v1alpha1.SchemeGroupVersion.WithResource("omniclusters"), subresource, operation, &metav1.CreateOptions{}, false, &user.DefaultInfo{Name: "alice"})

	return plugin.Validate(t.Context(), attributes, nil)
}

func TestValidate(t *testing.T) {
	for name, test := range map[string]struct {
		old, now    runtime.Object
		subresource string
		allow       bool
		asked       int
		refused     bool
	}{
		"no override":                {now: cluster("")},
		"a new cluster":              {now: cluster("a"), asked: 1, refused: true},
		"a new cluster, allowed":     {now: cluster("a"), allow: true, asked: 1},
		"a new override":             {old: cluster(""), now: cluster("a"), asked: 1, refused: true},
		"another override":           {old: cluster("a"), now: cluster("b"), asked: 1, refused: true},
		"another override, allowed":  {old: cluster("a"), now: cluster("b"), allow: true, asked: 1},
		"the same override":          {old: cluster("a"), now: cluster("a")},
		"the override is taken away": {old: cluster("a"), now: cluster("")},
		"status":                     {old: cluster(""), now: cluster("a"), subresource: "status"},
		"another kind":               {now: &v1alpha1.OmniSecretSync{ObjectMeta: cluster("a").ObjectMeta}},
	} {
		t.Run(name, func(t *testing.T) {
			asked := &grants{allow: test.allow}
			err := validate(t, asked, test.old, test.now, test.subresource)

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
func TestNobodyAnswers(t *testing.T) {
	err := validate(t, &grants{err: errors.New("the hub is away")}, nil, cluster("a"), "")
	if !apierrors.IsServiceUnavailable(err) || !strings.Contains(err.Error(), "try again") {
		t.Error(err)
	}

	if err := rolloutoverride.New().ValidateInitialization(); err == nil {
		t.Error("a plugin without an authorizer is accepted")
	}
}

func TestRegister(t *testing.T) {
	plugins := admission.NewPlugins()
	rolloutoverride.Register(plugins)

	if got := plugins.Registered(); len(got) != 1 || got[0] != "OmniRolloutOverride" {
		t.Errorf("registered %v", got)
	}
}

// Every request that can bring the annotation is asked about.
func TestHandles(t *testing.T) {
	for operation, want := range map[admission.Operation]bool{admission.Create: true, admission.Update: true, admission.Delete: false} {
		if got := rolloutoverride.New().Handles(operation); got != want {
			t.Errorf("%s: %v", operation, got)
		}
	}
}
