package app

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"
)

// checkedHub answers what check asks beyond the start-up checks.
type checkedHub struct {
	fakeHub

	forbidden  string                       // "verb resource in namespace" that the account may not
	unanswered string                       // the same for one that the hub cannot answer
	lease      func() *coordinationv1.Lease // nil: there is none
}

func (h *checkedHub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case strings.HasSuffix(r.URL.Path, "/leases/"+leaseName) && h.lease != nil:
		writeJSON(w, http.StatusOK, h.lease())
	case strings.HasSuffix(r.URL.Path, "/selfsubjectaccessreviews"):
		h.review(w, r)
	default:
		h.fakeHub.ServeHTTP(w, r)
	}
}

func (h *checkedHub) review(w http.ResponseWriter, r *http.Request) {
	var review authorizationv1.SelfSubjectAccessReview
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
		writeStatus(w, http.StatusBadRequest, metav1.StatusReasonBadRequest)

		return
	}

	asked := review.Spec.ResourceAttributes
	if described(*asked) == h.unanswered {
		writeStatus(w, http.StatusInternalServerError, metav1.StatusReasonInternalError)

		return
	}

	review.Status.Allowed = described(*asked) != h.forbidden
	writeJSON(w, http.StatusCreated, &review)
}

// heldLease is a lease that was renewed the given time before somebody asks, however long a busy machine takes to ask.
func heldLease(holder string, age time.Duration) func() *coordinationv1.Lease {
	return func() *coordinationv1.Lease {
		renewed := metav1.NewMicroTime(time.Now().Add(-age))

		return &coordinationv1.Lease{
			TypeMeta:   metav1.TypeMeta{APIVersion: "coordination.k8s.io/v1", Kind: "Lease"},
			ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: leaseName},
			Spec:       coordinationv1.LeaseSpec{HolderIdentity: &holder, RenewTime: &renewed},
		}
	}
}

// once is a check that is not repeated when it fails.
func once(run func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		if err := run(ctx); err != nil {
			return fmt.Errorf("%w: %w", errRefused, err)
		}

		return nil
	}
}

// checked runs all checks against the hub, each of them once.
func checked(t *testing.T, hub *checkedHub) (string, error) {
	t.Helper()

	server := httptest.NewServer(hub)
	t.Cleanup(server.Close)

	options := NewOptions()
	options.Namespace, options.ExportNamespaces = "team-a", []string{"flux-system"}

	checks, err := newInstallationChecks(&rest.Config{Host: server.URL, ContentConfig: rest.ContentConfig{ContentType: "application/json"}}, options)
	if err != nil {
		t.Fatal(err)
	}

	var out bytes.Buffer

	for i := range checks {
		checks[i].run = once(checks[i].run)
	}

	err = runChecks(t.Context(), checks, time.Minute, &out)

	return out.String(), err
}

func TestCheck(t *testing.T) {
	t.Parallel()

	working := func() *checkedHub {
		return &checkedHub{fakeHub: fakeHub{served: append(kinds(), rolloutPolicies)}, lease: heldLease("controller-0", time.Second)}
	}

	out, err := checked(t, working())
	if err != nil || strings.Count(out, "ok      ") != 5 {
		t.Fatalf("%v\n%s", err, out)
	}

	for name, tc := range map[string]struct {
		breaks func(*checkedHub)
		want   string
	}{
		"a leader that died": {func(h *checkedHub) { h.lease = heldLease("controller-0", 80*time.Second) }, "has not renewed it for 1m20s"},
		"collision":          {func(h *checkedHub) { h.definitions = map[string]int{"omniclusters.omni.texashpc.com": http.StatusOK} }, "custom resource definitions omniclusters.omni.texashpc.com exist"},
		"not served":         {func(h *checkedHub) { h.served = h.served[1:] }, "does not serve omniconnections"},
		"not readable":       {func(h *checkedHub) { h.unreadable = "omniworkers" }, "list omniworkers"},
		"a right less":       {func(h *checkedHub) { h.forbidden = "patch secrets in team-a" }, "it may not patch secrets in team-a"},
		"not all answered": {func(h *checkedHub) {
			h.forbidden, h.unanswered = "patch secrets in team-a", "delete secrets in flux-system"
		}, "it may not patch secrets in team-a\nask for the rights of the account: "},
		"no exports":     {func(h *checkedHub) { h.forbidden = "delete secrets in flux-system" }, "it may not delete secrets in flux-system"},
		"no lease":       {func(h *checkedHub) { h.lease = nil }, "get the lease team-a/omni-controller"},
		"a lease let go": {func(h *checkedHub) { h.lease = heldLease("", time.Second) }, "nobody holds the lease"},
		"an old lease":   {func(h *checkedHub) { h.lease = heldLease("controller-0", time.Hour) }, "has not renewed it for 1h0m"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			hub := working()
			tc.breaks(hub)

			out, err := checked(t, hub)
			if err == nil || err.Error() != "1 of 5 checks failed" || !strings.Contains(out, "FAILED  ") || !strings.Contains(out, tc.want) {
				t.Errorf("%v, want %q\n%s", err, tc.want, out)
			}
		})
	}
}

// TestCheckWaits: check waits for a new installation, and does not repeat a check after a refusal.
func TestCheckWaits(t *testing.T) {
	t.Parallel()

	calls := 0
	late := installationCheck{"late", func(context.Context) error {
		if calls++; calls == 1 {
			return errors.New("not yet")
		}

		return nil
	}}

	if err := try(t.Context(), late, time.Minute); err != nil || calls != 2 {
		t.Errorf("%d calls: %v", calls, err)
	}

	refused := installationCheck{"refused", func(context.Context) error { return fmt.Errorf("%w: no", errRefused) }}
	if err := try(t.Context(), refused, time.Hour); !errors.Is(err, errRefused) {
		t.Errorf("got %v", err)
	}
}

// TestCheckKnowsTheRoles: check asks for exactly the rights that the deployment's roles give.
func TestCheckKnowsTheRoles(t *testing.T) {
	t.Parallel()

	base, golden := "../../../artifacts/kustomize/base/", "../../../test/deploy/testdata/golden/"

	for name, test := range map[string]struct {
		files   []string
		served  string
		options *Options
	}{
		"the release's namespace": {[]string{base + "rbac-controller.yaml", base + "rbac-lease.yaml"}, "n", &Options{Namespace: "n", Rollouts: true}},
		"another namespace": {
			[]string{golden + "everything.yaml"}, "n",
			&Options{Namespace: "n", Rollouts: true, RoleBinding: "omni-controller", ExportNamespaces: []string{"exports"}},
		},
		"all namespaces": {
			[]string{golden + "all-namespaces.yaml"}, "",
			&Options{AllNamespaces: true, LeaderElectionNamespace: "n", Rollouts: true, RoleBinding: "omni-controller"},
		},
	} {
		given, asked := rightsGiven(t, test.files), map[string]bool{}

		for _, right := range rightsOf(test.served, test.options) {
			right.Namespace = ""
			if right.Name == "n" { // the role is bound there, so it needs no name
				right.Name = ""
			}

			asked[described(right)] = true
		}

		for right := range given {
			// The roles also allow Events of the core group, for older readers; our own Events are of the other group.
			if !asked[right] && !slices.Contains([]string{"create events", "patch events"}, right) {
				t.Errorf("%s: check does not ask for: %s", name, right)
			}
		}

		for right := range asked {
			if !given[right] {
				t.Errorf("%s: the roles do not give: %s", name, right)
			}
		}
	}
}

// rightsGiven returns what the roles of omni-controller in files of manifests give, in the words of described.
func rightsGiven(t *testing.T, files []string) map[string]bool {
	t.Helper()

	given := map[string]bool{}

	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}

		for document := range strings.SplitSeq(string(content), "\n---\n") {
			var role rbacv1.ClusterRole
			if err := yaml.Unmarshal([]byte(document), &role); err != nil {
				t.Fatal(err)
			}

			if !strings.HasSuffix(role.Kind, "Role") || !strings.HasPrefix(role.Name, "omni-controller") {
				continue
			}

			for _, rule := range role.Rules {
				collect(given, rule)
			}
		}
	}

	return given
}

// collect adds what a rule gives, in the words of described.
func collect(given map[string]bool, rule rbacv1.PolicyRule) {
	names := rule.ResourceNames
	if len(names) == 0 {
		names = []string{""}
	}

	for _, group := range rule.APIGroups {
		for _, resource := range rule.Resources {
			resource, subresource, _ := strings.Cut(resource, "/")

			for _, name := range names {
				for _, verb := range rule.Verbs {
					given[described(authorizationv1.ResourceAttributes{Group: group, Resource: resource, Subresource: subresource, Name: name, Verb: verb})] = true
				}
			}
		}
	}
}
