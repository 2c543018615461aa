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
	t.Parallel()

	hub := startHub(t)
	sets := valueSets(t)
	sets["own accounts"] = merged(t, sets["everything"], `controller: {serviceAccount: {create: false, name: robot}}`)

	// By the account of a controller: where its lease is, where it may use Secrets, and where it may export to.
	type rights struct{ leases, secrets, exports []string }

	for name, accounts := range map[string]map[string]rights{
		"default": {"omni-controller": {[]string{namespace}, []string{namespace}, nil}},
		"everything": {
			"omni-controller-team-a": {[]string{"team-a"}, []string{"team-a"}, []string{"flux-system", "argocd"}},
			"omni-controller-team-b": {[]string{"team-b"}, []string{"team-b"}, []string{"flux-system"}},
			// What all had together before each got its own.
			"omni-controller": {},
		},
		"own accounts": {
			"robot-team-a": {[]string{"team-a"}, []string{"team-a"}, []string{"flux-system", "argocd"}},
			"robot-team-b": {[]string{"team-b"}, []string{"team-b"}, []string{"flux-system"}},
			"robot":        {}, "omni-controller-team-a": {},
		},
		"all-namespaces": {"omni-controller": {[]string{namespace}, []string{namespace, "team-a", "team-b", "kube-system", "flux-system", "argocd", ""}, nil}},
	} {
		t.Run(name, func(t *testing.T) {
			manifest := stream(mustRender(t, sets[name]))
			kubectl(t, hub, manifest, "apply", "--server-side", "-f", "-")

			defer kubectl(t, hub, manifest, "delete", "--ignore-not-found", "-f", "-")

			var given, refused []right

			for account, has := range accounts {
				allowed, denied := controllerRights(account, has.leases, has.secrets, has.exports)
				given, refused = append(given, allowed...), append(refused, denied...)
			}

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

// controllerRights are those of a controller that depend on the namespace.
func controllerRights(program string, leases, secrets, exports []string) (given, refused []right) {
	const lease = "leases.coordination.k8s.io"

	ofAll := slices.Contains(secrets, "")

	for _, in := range []string{namespace, "team-a", "team-b", "kube-system", "kube-node-lease", "flux-system", "argocd", ""} {
		if slices.Contains(leases, in) {
			given = append(given, right{program, in, lease, "omni-controller", []string{"get", "update"}}, right{program, in, lease, "", []string{"create"}})
			refused = append(refused, right{program, in, lease, "another", []string{"get", "update", "patch", "delete"}},
				right{program, in, lease, "", []string{"list", "watch", "deletecollection"}})
		} else if ofAll {
			refused = append(refused, right{program, in, lease, "omni-controller", []string{"update", "delete"}}, right{program, in, lease, "another", both})
		} else {
			refused = append(refused, right{program, in, lease, "omni-controller", both}, right{program, in, lease, "another", both})
		}

		const bindings = "rolebindings.rbac.authorization.k8s.io"

		// A controller of another namespace keeps its rights and its lease in it while that is being deleted. One of all namespaces
		// releases what such a controller has left.
		if ofAll {
			given = append(given, right{program, in, bindings, "omni-controller-deletion", []string{"get", "patch", "delete"}},
				right{program, in, lease, "omni-controller", []string{"get", "patch"}})
			refused = append(refused, right{program, in, bindings, "omni-controller-deletion", []string{"update"}}, right{program, in, bindings, "omni-controller", both},
				right{program, in, bindings, "another", both}, right{program, in, bindings, "", []string{"create", "list", "watch", "deletecollection"}},
				right{program, in, lease, "", []string{"list", "watch", "deletecollection"}})
		} else if slices.Contains(secrets, in) && in != namespace {
			given = append(given, right{program, in, bindings, "omni-controller", []string{"get"}}, right{program, in, lease, "omni-controller", []string{"patch"}},
				right{program, in, bindings, "omni-controller-deletion", []string{"get", "patch", "delete"}}, right{program, in, bindings, "", []string{"create"}})
			refused = append(refused, right{program, in, bindings, "omni-controller", []string{"update", "patch", "delete"}},
				right{program, in, bindings, "another", []string{"get", "update", "patch", "delete"}},
				right{program, in, bindings, "", []string{"list", "watch", "deletecollection"}}, right{program, in, bindings, "omni-controller", []string{"bind"}})
		} else {
			refused = append(refused, right{program, in, bindings, "omni-controller-deletion", both}, right{program, in, bindings, "omni-controller", both},
				right{program, in, bindings, "", both})
		}

		use := right{program, in, "secrets", "", []string{"get", "list", "watch", "create", "update", "patch", "delete"}}
		if slices.Contains(secrets, in) {
			given = append(given, use)
		} else if slices.Contains(exports, in) {
			given = append(given, right{program, in, "secrets", "", []string{"get", "list", "watch", "create", "update", "delete"}})
			refused = append(refused, right{program, in, "secrets", "", []string{"patch", "deletecollection"}}, right{program, in, "configmaps", "", both})
		} else if !slices.Contains(secrets, "") {
			refused = append(refused, use)
		}
	}

	// The UID of kube-system is the ID of the hub. Of a namespace that is served it has to be known whether it is being
	// deleted. There is no right to any other.
	for _, in := range []string{namespace, "team-a", "team-b", "kube-system", "flux-system", "argocd"} {
		get := right{program, in, "namespaces", in, []string{"get"}}
		if slices.Contains(secrets, in) || in == "kube-system" && len(leases) > 0 {
			given = append(given, get)
		} else {
			refused = append(refused, get)
		}

		refused = append(refused, right{program, in, "namespaces", in, append([]string{"list", "watch"}, writes...)})
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

	if err := env.Eventually(t.Context(), eventuallyTimeout, fmt.Sprintf("%+v: %t", r, want), func(ctx context.Context) error {
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

// TestAccounts: each Deployment of omni-controller has an account of its own, which is bound in the namespace that the
// Deployment serves and in no other. In all namespaces every one may do two things only.
func TestAccounts(t *testing.T) {
	const long = "n23456789-123456789-123456789-123456789-123456789-123456789-123"

	objects := decode(t, stream(mustRender(t, `controller: {namespaces: [`+namespace+`, team-a, team-a-b, `+long+`]}`)))
	bound := map[string][]string{}

	for _, object := range objects {
		subjects, _, _ := unstructured.NestedSlice(object.Object, "subjects")
		for _, subject := range subjects {
			name := text(t, subject.(map[string]any), "name")
			if object.GetKind() == "RoleBinding" {
				bound[name] = append(bound[name], object.GetNamespace()+"/"+object.GetName())
			} else {
				bound[name] = append(bound[name], "/"+text(t, object.Object, "roleRef", "name"))
			}
		}
	}

	for account, serves := range map[string]string{
		"omni-controller": namespace, "omni-controller-team-a": "team-a", "omni-controller-team-a-b": "team-a-b", "omni-controller-" + long: long,
	} {
		deployment := find(t, objects, "Deployment", account)
		if got := text(t, deployment.Object, "spec", "template", "spec", "serviceAccountName"); got != account {
			t.Errorf("Deployment %s runs as %s", account, got)
		}

		find(t, objects, "ServiceAccount", account)

		want := []string{"/omni-controller-crd-check", "/system:auth-delegator", serves + "/omni-controller", serves + "/omni-controller-lease"}
		if got := slices.Sorted(slices.Values(bound[account])); !slices.Equal(got, want) {
			t.Errorf("%s is bound to %q, want %q", account, got, want)
		}
	}
}

// TestNoOwners: nothing of ours sets an owner reference, so no role allows what one with blockOwnerDeletion would need.
func TestNoOwners(t *testing.T) {
	for name, values := range valueSets(t) {
		for _, object := range decode(t, stream(mustRender(t, values))) {
			rules, _, err := unstructured.NestedSlice(object.Object, "rules")
			if kind := object.GetKind(); kind != "Role" && kind != "ClusterRole" || err != nil {
				continue
			}

			for _, rule := range rules {
				resources, _, _ := unstructured.NestedStringSlice(rule.(map[string]any), "resources")
				if slices.ContainsFunc(resources, func(resource string) bool { return strings.HasSuffix(resource, "/finalizers") }) {
					t.Errorf("%s: %s allows %v", name, identity(object), resources)
				}
			}
		}
	}
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
