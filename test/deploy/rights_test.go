package deploy

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"omni.texashpc.com/omni-cluster-operator/test/env"
)

// right is what a program asks for: the verbs of one resource, in a namespace or, without one, in all of them.
type right struct {
	program, namespace, resource, name string
	verbs                              []string
}

var (
	reads  = []string{"get", "list", "watch"}
	writes = []string{"create", "update", "patch", "delete", "deletecollection"}
	both   = slices.Concat(reads, writes)
)

// TestRights asks the authoriser of a real hub what the programs may do with what is rendered, and what they may not.
func TestRights(t *testing.T) {
	hub := startHub(t)
	sets := valueSets(t)

	// Where a controller's lease is, and where it may use Secrets.
	for name, tc := range map[string]struct{ leases, secrets []string }{
		"default":        {[]string{namespace}, []string{namespace}},
		"everything":     {[]string{"team-a", "team-b"}, []string{"team-a", "team-b"}},
		"all-namespaces": {[]string{namespace}, []string{namespace, "team-a", "team-b", "kube-system", ""}},
	} {
		t.Run(name, func(t *testing.T) {
			manifest := stream(mustRender(t, sets[name]))
			kubectl(t, hub, manifest, "apply", "--server-side", "-f", "-")

			defer kubectl(t, hub, manifest, "delete", "--ignore-not-found", "-f", "-")

			given, refused := controllerRights(tc.leases, tc.secrets)

			// First what is given: when the authoriser knows all of it, a refusal is its last word.
			for _, r := range given {
				r.wait(t, hub, true)
			}

			for _, r := range slices.Concat(refused, apiserverRefused()) {
				r.wait(t, hub, false)
			}
		})
	}
}

// controllerRights are those of omni-controller that depend on the namespace.
func controllerRights(leases, secrets []string) (given, refused []right) {
	const program, lease = "omni-controller", "leases.coordination.k8s.io"

	for _, in := range []string{namespace, "team-a", "team-b", "kube-system", "kube-node-lease", ""} {
		if slices.Contains(leases, in) {
			given = append(given, right{program, in, lease, "omni-controller", []string{"get", "update"}}, right{program, in, lease, "", []string{"create"}})
			refused = append(refused, right{program, in, lease, "another", []string{"get", "update", "patch", "delete"}},
				right{program, in, lease, "", []string{"list", "watch", "deletecollection"}})
		} else {
			refused = append(refused, right{program, in, lease, "omni-controller", both}, right{program, in, lease, "another", both})
		}

		use := right{program, in, "secrets", "", []string{"get", "list", "watch", "create", "update", "patch", "delete"}}
		if slices.Contains(secrets, in) {
			given = append(given, use)
		} else if !slices.Contains(secrets, "") {
			refused = append(refused, use)
		}
	}

	return given, refused
}

// apiserverRefused is what omni-apiserver must not do: read what users keep secret, and write where it is registered.
func apiserverRefused() []right {
	const program = "omni-apiserver"

	refused := []right{
		{program, "", "apiservices.apiregistration.k8s.io", "v1alpha1.omni.texashpc.com", writes},
		{program, "", "validatingwebhookconfigurations.admissionregistration.k8s.io", "", writes},
		{program, "", "flowschemas.flowcontrol.apiserver.k8s.io", "", writes},
	}

	for _, in := range []string{namespace, "team-a", "kube-system", ""} {
		refused = append(refused, right{program, in, "secrets", "", both}, right{program, in, "configmaps", "others", both},
			right{program, in, "leases.coordination.k8s.io", "omni-controller", both}, right{program, in, "omniclusters.omni.texashpc.com", "", both})
	}

	return refused
}

// wait asks until the authoriser answers as wanted: it hears of roles a moment after they were stored.
func (r right) wait(t *testing.T, hub *env.Hub, want bool) {
	t.Helper()

	if err := env.Eventually(t.Context(), patience, fmt.Sprintf("%+v: %t", r, want), func(ctx context.Context) error {
		var problems []error

		for _, verb := range r.verbs {
			if got, err := r.allowed(ctx, hub, verb); err != nil || got != want {
				problems = append(problems, fmt.Errorf("%s: %t (%v)", verb, got, err))
			}
		}

		return errors.Join(problems...)
	}); err != nil {
		t.Error(err)
	}
}

// allowed is the authoriser's answer.
func (r right) allowed(ctx context.Context, hub *env.Hub, verb string) (bool, error) {
	resource, group, _ := strings.Cut(r.resource, ".")

	answer, err := hub.Client().AuthorizationV1().SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{
		Spec: authorizationv1.SubjectAccessReviewSpec{
			User:   "system:serviceaccount:" + namespace + ":" + r.program,
			Groups: []string{"system:serviceaccounts", "system:serviceaccounts:" + namespace, "system:authenticated"},
			ResourceAttributes: &authorizationv1.ResourceAttributes{
				Verb: verb, Group: group, Resource: resource, Name: r.name, Namespace: r.namespace,
			},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		return false, err
	}

	return answer.Status.Allowed, nil
}

// TestSecurityPage: docs/concepts/security.md names every resource that a role of ours is about.
func TestSecurityPage(t *testing.T) {
	_, rest, _ := strings.Cut(read(t, filepath.Join(root, "docs/concepts/security.md")), "\n## Roles\n")
	section, _, _ := strings.Cut(rest, "\n## ")
	named := map[string]bool{}

	for _, object := range decode(t, stream(mustRender(t, valueSets(t)["everything"]))) {
		if kind := object.GetKind(); kind != "Role" && kind != "ClusterRole" {
			continue
		}

		rules, _, err := unstructured.NestedSlice(object.Object, "rules")
		if err != nil || len(rules) == 0 {
			t.Fatalf("%s: %v, rules %v", identity(object), err, rules)
		}

		for _, rule := range rules {
			for _, list := range []string{"resources", "nonResourceURLs"} {
				found, _, _ := unstructured.NestedStringSlice(rule.(map[string]any), list)
				for _, resource := range found {
					named[resource] = true
				}
			}
		}
	}

	for _, resource := range slices.Sorted(maps.Keys(named)) {
		// Our own kinds have the first table of the page.
		if !strings.HasPrefix(resource, "omni") && !strings.Contains(section, "`"+resource+"`") {
			t.Errorf("the page does not name %s", resource)
		}
	}
}
