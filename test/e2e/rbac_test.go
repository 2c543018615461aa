package e2e

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"omni.texashpc.com/omni-cluster-operator/test/env"
)

// Who may do what, asked by real requests of real users, each with a client certificate. Writes are dry
// runs: authorisation comes before, and every request finds what it needs.

// allowed is who may send which request about each of the kinds that it exists for. Requests are named
// like the rules of a role: verb, and subresource if any.
var allowed = map[string]string{
	"get": "view edit admin", "list": "view edit admin", "watch": "view edit admin",
	"create": writers, "update": writers, "patch": writers, "apply": writers,
	"delete": writers, "deletecollection": writers,

	"get status": "view edit admin", "update status": "", "patch status": "", "apply status": "",

	"get scale": "view edit admin", "update scale": "edit admin", "patch scale": "edit admin", "apply scale": "edit admin",

	"get template": "edit admin",
}

// What stands for who may write a kind: subject.writers of the people, and subject.holders of the programs.
const (
	writers = "writers"
	holders = "holders"
)

// programs is what the operator's own identities may do, beyond reading: the controller alone writes
// statuses, and makes and deletes no object; the API server has no right to what it serves.
var programs = map[string]string{
	"get": "omni-controller", "list": "omni-controller", "watch": "omni-controller",
	"create": "", "update": holders, "patch": holders, "apply": holders,
	"delete": "", "deletecollection": "",
	"get status": "omni-controller", "update status": "omni-controller", "patch status": "omni-controller", "apply status": "omni-controller",
	"get scale": "", "update scale": "", "patch scale": "", "apply scale": "",
	"get template": "",
}

func TestRightsOfUsers(t *testing.T) {
	t.Parallel()

	s := newSpace(t)
	users := []string{"none", "view", "edit", "admin"}

	for _, role := range users[1:] {
		bind(t, s.name, role, rbacv1.Subject{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: s.user(role)})
	}

	s.checkRights(users, allowed, func(user string) (string, []string) { return s.user(user), []string{"people"} })
}

func TestRightsOfPrograms(t *testing.T) {
	t.Parallel()

	s := newSpace(t)
	s.checkRights([]string{"omni-apiserver", "omni-controller"}, programs, func(user string) (string, []string) {
		return "system:serviceaccount:" + env.SystemNamespace + ":" + user,
			[]string{"system:serviceaccounts", "system:serviceaccounts:" + env.SystemNamespace}
	})
}

// Rights in one namespace are none in another, nor in all at once; and a right on one name is none on
// another, though the server asks about names last.
func TestRightsEndAtNamespaceAndName(t *testing.T) {
	t.Parallel()

	mine, other := newSpaceNamed(t, "-mine"), newSpaceNamed(t, "-other")
	k := subjects[1]

	for _, s := range []*space{mine, other} {
		for _, name := range []string{"one", "two"} {
			must(k.admin(t, s.name).Create(t.Context(), k.object(t, name), metav1.CreateOptions{}))(t)
		}
	}

	admin, named := mine.user("admin"), mine.user("named")
	bind(t, mine.name, "admin", rbacv1.Subject{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: admin})

	if _, err := stack.Client().RbacV1().Roles(mine.name).Create(t.Context(), &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Name: "named"},
		Rules: []rbacv1.PolicyRule{{
			APIGroups: []string{"omni.texashpc.com"}, Resources: []string{k.resource}, ResourceNames: []string{"one"}, Verbs: []string{"get", "patch"},
		}},
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}

	bindRole(t, mine.name, rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "named"},
		rbacv1.Subject{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: named})

	get := func(user, namespace, name string) error {
		config := must(stack.RESTConfigFor(user))(t)
		_, err := dynamicFor(t, config).Resource(k.gvr()).Namespace(namespace).Get(t.Context(), name, metav1.GetOptions{})

		return err
	}

	mine.wait("both roles to be bound", func() error {
		return errors.Join(get(admin, mine.name, "one"), get(named, mine.name, "one"))
	})

	for _, tc := range []struct{ user, namespace, name string }{
		{admin, other.name, "one"}, {named, mine.name, "two"}, {named, other.name, "one"},
	} {
		if err := get(tc.user, tc.namespace, tc.name); !apierrors.IsForbidden(err) {
			t.Errorf("%v: %v", tc, err)
		}
	}

	// kubectl says the same without asking for an object.
	for _, tc := range []struct{ user, question, want string }{
		{named, "get omniclusters.omni.texashpc.com/one", "yes"}, {named, "get omniclusters.omni.texashpc.com/two", "no"},
		{named, "list omniclusters.omni.texashpc.com", "no"}, {admin, "deletecollection omniclusters.omni.texashpc.com", "yes"},
		{admin, "get omniclusters.omni.texashpc.com --subresource=template", "yes"}, {admin, "patch omniclusters.omni.texashpc.com --subresource=status", "no"},
	} {
		out, _ := mine.try(append([]string{"auth", "can-i", "--as=" + tc.user}, strings.Fields(tc.question)...)...)
		if strings.TrimSpace(out) != tc.want {
			t.Errorf("can %s %s: %q, want %s", tc.user, tc.question, out, tc.want)
		}
	}

	everywhere := dynamicFor(t, must(stack.RESTConfigFor(admin))(t)).Resource(k.gvr())
	if _, err := everywhere.List(t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("all namespaces: %v", err)
	}
}

// user is a name that no other test gives rights to.
func (s *space) user(role string) string { return role + "@" + s.name }

func bind(t *testing.T, namespace, clusterRole string, subject rbacv1.Subject) {
	t.Helper()
	bindRole(t, namespace, rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: clusterRole}, subject)
}

func bindRole(t *testing.T, namespace string, role rbacv1.RoleRef, subject rbacv1.Subject) {
	t.Helper()

	binding := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: role.Name}, RoleRef: role, Subjects: []rbacv1.Subject{subject}}
	if _, err := stack.Client().RbacV1().RoleBindings(namespace).Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// checkRights sends every request of the table about every kind as every user.
func (s *space) checkRights(users []string, want map[string]string, identity func(string) (string, []string)) {
	s.t.Helper()

	for _, k := range subjects {
		must(k.admin(s.t, s.name).Create(s.t.Context(), k.object(s.t, "x"), metav1.CreateOptions{}))(s.t)
	}

	s.makeTemplate()

	clients := map[string]*http.Client{}

	for _, user := range users {
		name, groups := identity(user)
		clients[user] = must(rest.HTTPClientFor(must(stack.RESTConfigFor(name, groups...))(s.t)))(s.t)
	}

	s.waitBound(clients, want)

	for _, k := range subjects {
		for name, asked := range k.requests(s.t, s) {
			allowed, listed := want[name]
			if !listed {
				s.t.Fatalf("nothing is expected of %q", name)
			}

			switch allowed {
			case writers:
				allowed = k.writers()
			case holders:
				allowed = k.holders()
			}

			for user, client := range clients {
				status, body := s.send(client, asked)
				allow := slices.Contains(strings.Fields(allowed), user)

				// A conflict with the controller's write is an answer to somebody who may write.
				if allow && status >= 300 && status != http.StatusConflict || !allow && status != http.StatusForbidden {
					s.t.Errorf("%s %s as %s: status %d, want allowed=%t: %s", name, k.resource, user, status, allow, body)
				}
			}
		}
	}
}

// makeTemplate lets the OmniCluster x have a template: a control plane names it.
func (s *space) makeTemplate() {
	s.t.Helper()

	for _, k := range subjects {
		if k.kind == "OmniControlPlane" {
			object := k.object(s.t, "x-cp")
			setPath(s.t, object, "/spec/clusterRef/name", `"x"`)
			must(k.admin(s.t, s.name).Create(s.t.Context(), object, metav1.CreateOptions{}))(s.t)
		}
	}
}

// waitBound waits until new bindings have arrived at both servers: one that was asked too early remembers
// its no for some seconds.
func (s *space) waitBound(clients map[string]*http.Client, want map[string]string) {
	s.t.Helper()

	for _, user := range strings.Fields(want["list"]) {
		s.wait(user+" to be bound", func() error {
			if status, body := s.send(clients[user], asked{method: http.MethodGet, path: s.path(subjects[0].resource)}); status != http.StatusOK {
				return fmt.Errorf("status %d: %s", status, body)
			}

			return nil
		})
	}
}

// asked is a request to the hub.
type asked struct{ method, path, contentType, body string }

// send returns the status, and the beginning of an answer that is not good.
func (s *space) send(client *http.Client, a asked) (int, string) {
	s.t.Helper()

	ctx, cancel := context.WithTimeout(s.t.Context(), eventually)
	defer cancel()

	request, err := http.NewRequestWithContext(ctx, a.method, stack.Hub.URL()+a.path, strings.NewReader(a.body))
	if err != nil {
		s.t.Fatal(err)
	}

	request.Header.Set("Content-Type", a.contentType)

	answer, err := client.Do(request)
	if err != nil {
		s.t.Fatal(err)
	}
	defer answer.Body.Close()

	if answer.StatusCode < 300 {
		return answer.StatusCode, "" // a watch has no end
	}

	body, err := io.ReadAll(io.LimitReader(answer.Body, 500))
	if err != nil {
		s.t.Error(err)
	}

	return answer.StatusCode, string(body)
}

// requests are all that can be asked about the kind and its object x.
func (k subject) requests(t *testing.T, s *space) map[string]asked {
	t.Helper()

	const dry = "?dryRun=All"

	all := s.path(k.resource)
	requests := map[string]asked{
		"list":             {method: http.MethodGet, path: all},
		"watch":            {method: http.MethodGet, path: all + "?watch=true&timeoutSeconds=5"},
		"create":           {http.MethodPost, all + dry, "application/json", k.manifest(t, "new")},
		"delete":           {method: http.MethodDelete, path: all + "/x" + dry},
		"deletecollection": {method: http.MethodDelete, path: all + dry},
	}

	subresources := []string{"", "status"}
	if k.scales() {
		subresources = append(subresources, "scale")
	}

	for _, subresource := range subresources {
		name := func(verb string) string { return strings.TrimSpace(verb + " " + subresource) }
		path := strings.TrimSuffix(all+"/x/"+subresource, "/")
		current, identity := k.current(t, s.name, subresource)

		requests[name("get")] = asked{method: http.MethodGet, path: path}
		requests[name("update")] = asked{http.MethodPut, path + dry, "application/json", current}
		requests[name("patch")] = asked{http.MethodPatch, path + dry, "application/merge-patch+json", "{}"}
		requests[name("apply")] = asked{http.MethodPatch, path + dry + "&fieldManager=rights", "application/apply-patch+yaml", identity}
	}

	if k.kind == "OmniCluster" {
		requests["get template"] = asked{method: http.MethodGet, path: all + "/x/template"}
	}

	return requests
}

// current is the object x or its subresource as it is, and an apply of nothing to it.
func (k subject) current(t *testing.T, namespace, subresource string) (whole, identity string) {
	t.Helper()

	var path []string
	if subresource == "scale" {
		path = []string{subresource}
	}

	object := must(k.admin(t, namespace).Get(t.Context(), "x", metav1.GetOptions{}, path...))(t)

	return string(must(object.MarshalJSON())(t)),
		fmt.Sprintf(`{"apiVersion":%q,"kind":%q,"metadata":{"name":"x"}}`, object.GetAPIVersion(), object.GetKind())
}
