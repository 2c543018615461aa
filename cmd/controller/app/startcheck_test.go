package app

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// fakeHub answers as a kube-apiserver would: definitions by name with a status code, and the kinds of our group that
// it serves.
type fakeHub struct {
	definitions map[string]int // code by name; none: 404
	served      []string
	unreadable  string // a kind that cannot be listed
	forbidden   int32  // so many calls for objects are answered with 403 first
	lists       atomic.Int32
	calls       atomic.Int32
	unavailable int32 // so many calls are answered with 503 first
	enough      int32 // with that call the test has seen enough
	stop        func()
	stale       bool // the list of everything served is of before our group was served

	lacks     string // a right that the account does not have; see described
	lacking   int32  // so many questions for it are answered with no first
	unaskable bool   // nobody may ask for rights
	denied    atomic.Int32
	asked     atomic.Int32
	others    atomic.Int32 // questions for rights to what is not ours
}

func (h *fakeHub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	calls := h.calls.Add(1)
	if calls == h.enough {
		h.stop()
	}

	if calls <= h.unavailable {
		writeStatus(w, http.StatusServiceUnavailable, "ServiceUnavailable")

		return
	}

	if name, found := strings.CutPrefix(r.URL.Path, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/"); found {
		switch h.definitions[name] {
		case http.StatusOK:
			writeJSON(w, http.StatusOK, &metav1.PartialObjectMetadata{
				TypeMeta:   metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadata"},
				ObjectMeta: metav1.ObjectMeta{Name: name},
			})
		case http.StatusForbidden:
			writeStatus(w, http.StatusForbidden, metav1.StatusReasonForbidden)
		default:
			writeStatus(w, http.StatusNotFound, metav1.StatusReasonNotFound)
		}

		return
	}

	if r.URL.Path == "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews" {
		h.writeReview(w, r)

		return
	}

	if r.URL.Path == "/apis" {
		h.writeGroups(w, r)

		return
	}

	if r.URL.Path == "/apis/omni.texashpc.com/v1alpha1" && h.served != nil {
		list := &metav1.APIResourceList{GroupVersion: "omni.texashpc.com/v1alpha1"}
		for _, name := range h.served {
			list.APIResources = append(list.APIResources, metav1.APIResource{Name: name, Kind: name, Namespaced: true})
		}

		writeJSON(w, http.StatusOK, list)

		return
	}

	if kind, found := strings.CutPrefix(r.URL.Path, "/apis/omni.texashpc.com/v1alpha1/namespaces/team-a/"); found && kind != h.unreadable {
		if h.lists.Add(1) <= h.forbidden {
			writeStatus(w, http.StatusForbidden, metav1.StatusReasonForbidden)

			return
		}

		writeJSON(w, http.StatusOK, &metav1.PartialObjectMetadataList{
			TypeMeta: metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadataList"},
		})

		return
	}

	writeStatus(w, http.StatusNotFound, metav1.StatusReasonNotFound)
}

// writeReview says whether the account has a right.
func (h *fakeHub) writeReview(w http.ResponseWriter, r *http.Request) {
	var review authorizationv1.SelfSubjectAccessReview
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
		writeStatus(w, http.StatusBadRequest, metav1.StatusReasonBadRequest)

		return
	}

	h.asked.Add(1)

	if review.Spec.ResourceAttributes.Group != "omni.texashpc.com" {
		h.others.Add(1)
	}

	if h.unaskable {
		writeStatus(w, http.StatusForbidden, metav1.StatusReasonForbidden)

		return
	}

	review.Status.Allowed = described(*review.Spec.ResourceAttributes) != h.lacks || h.denied.Add(1) > h.lacking
	writeJSON(w, http.StatusCreated, &review)
}

// writeGroups lists what is served, as a kube-apiserver has collected it: on request as one document with all
// resources.
func (h *fakeHub) writeGroups(w http.ResponseWriter, r *http.Request) {
	if !h.stale || !strings.Contains(r.Header.Get("Accept"), "as=APIGroupDiscoveryList") {
		version := metav1.GroupVersionForDiscovery{GroupVersion: "omni.texashpc.com/v1alpha1", Version: "v1alpha1"}
		writeJSON(w, http.StatusOK, &metav1.APIGroupList{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "APIGroupList"},
			Groups:   []metav1.APIGroup{{Name: "omni.texashpc.com", Versions: []metav1.GroupVersionForDiscovery{version}, PreferredVersion: version}},
		})

		return
	}

	w.Header().Set("Content-Type", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList")
	_ = json.NewEncoder(w).Encode(&apidiscoveryv2.APIGroupDiscoveryList{Items: []apidiscoveryv2.APIGroupDiscovery{
		group("apps", apidiscoveryv2.DiscoveryFreshnessCurrent, "deployments"),
		group("omni.texashpc.com", apidiscoveryv2.DiscoveryFreshnessStale),
	}})
}

func group(name string, freshness apidiscoveryv2.DiscoveryFreshness, resources ...string) apidiscoveryv2.APIGroupDiscovery {
	version := apidiscoveryv2.APIVersionDiscovery{Version: "v1alpha1", Freshness: freshness}
	for _, resource := range resources {
		version.Resources = append(version.Resources, apidiscoveryv2.APIResourceDiscovery{
			Resource: resource, Scope: apidiscoveryv2.ScopeNamespace, ResponseKind: &metav1.GroupVersionKind{Group: name, Version: "v1alpha1", Kind: resource},
		})
	}

	return apidiscoveryv2.APIGroupDiscovery{ObjectMeta: metav1.ObjectMeta{Name: name}, Versions: []apidiscoveryv2.APIVersionDiscovery{version}}
}

func writeStatus(w http.ResponseWriter, code int, reason metav1.StatusReason) {
	writeJSON(w, code, &metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: "Failure", Reason: reason, Code: int32(code), Message: string(reason),
	})
}

func writeJSON(w http.ResponseWriter, code int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(body)
}

func start(t *testing.T, h http.Handler, timeout time.Duration) error {
	t.Helper()

	server := httptest.NewServer(h)
	t.Cleanup(server.Close)

	hub := &rest.Config{Host: server.URL, QPS: requestsPerSecond, Burst: requestBurst, ContentConfig: rest.ContentConfig{ContentType: "application/json"}}

	mapper, err := waitForStart(t.Context(), hub, &Options{Namespace: "team-a", StartTimeout: timeout})
	if err != nil {
		return err
	}

	for _, kind := range kinds() {
		if _, err := mapper.RESTMapping(schema.GroupKind{Group: "omni.texashpc.com", Kind: kind}, "v1alpha1"); err != nil {
			t.Errorf("the mapper of a controller that may start: %s", err)
		}
	}

	return nil
}

func TestStarts(t *testing.T) {
	if err := start(t, &fakeHub{served: kinds()}, time.Minute); err != nil {
		t.Error(err)
	}
}

func TestRefusesBesideDefinitions(t *testing.T) {
	for _, name := range []string{"omniclusters.omni.texashpc.com", "omnihelmreleases.omni.texashpc.com"} {
		err := start(t, &fakeHub{served: kinds(), definitions: map[string]int{name: http.StatusOK}}, time.Minute)
		if !errors.Is(err, errRefused) || !strings.Contains(err.Error(), name) || !strings.Contains(err.Error(), "finalizers") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Without the right to look for definitions the controller does not start, and the error names the role.
func TestRefusesIfItMayNotLook(t *testing.T) {
	err := start(t, &fakeHub{served: kinds(), definitions: map[string]int{"omniclusters.omni.texashpc.com": http.StatusForbidden}}, time.Minute)
	if !errors.Is(err, errRefused) || !strings.Contains(err.Error(), "omni-controller-crd-check") {
		t.Error(err)
	}
}

// The start waits for a hub or an API that does not answer yet.
func TestWaitsForTheAPI(t *testing.T) {
	h := &fakeHub{served: kinds(), unavailable: 1}
	if err := start(t, h, time.Minute); err != nil {
		t.Error(err)
	}

	if h.calls.Load() < 10 {
		t.Errorf("%d calls", h.calls.Load())
	}
}

// A kube-apiserver may serve our group before it lists the group.
func TestWaitsForTheListOfKinds(t *testing.T) {
	if err := start(t, &fakeHub{served: kinds(), stale: true}, time.Minute); err != nil {
		t.Error(err)
	}
}

// An account may get its rights after the Pod. Until then the Pod is not ready, and does not take the work from one that has them.
func TestWaitsForRights(t *testing.T) {
	h := &fakeHub{served: kinds(), forbidden: 1}
	if err := start(t, h, time.Minute); err != nil {
		t.Error(err)
	}

	if h.lists.Load() != int32(1+len(kinds())) {
		t.Errorf("%d lists", h.lists.Load())
	}

	err := start(t, &fakeHub{served: kinds(), unreadable: "omniworkers"}, 6*time.Second)
	if err == nil || errors.Is(err, errRefused) || !strings.Contains(err.Error(), "--start-timeout") || !strings.Contains(err.Error(), "list omniworkers") {
		t.Error(err)
	}
}

// A kind that can be listed is not all that a controller needs: its caches watch, and what it has done is in the status.
func TestWaitsForTheRightsToItsKinds(t *testing.T) {
	t.Parallel()

	const lacks = "patch omniclusters.omni.texashpc.com/status in team-a"

	h := &fakeHub{served: kinds(), lacks: lacks, lacking: 1}
	if err := start(t, h, time.Minute); err != nil {
		t.Error(err)
	}

	if h.lists.Load() != int32(2*len(kinds())) || h.asked.Load() != int32(2*8*len(kinds())) || h.others.Load() > 0 {
		t.Errorf("%d lists, %d questions, %d for the rights to other kinds", h.lists.Load(), h.asked.Load(), h.others.Load())
	}

	err := start(t, &fakeHub{served: kinds(), lacks: lacks, lacking: 1 << 30}, 6*time.Second)
	if err == nil || errors.Is(err, errRefused) || !strings.Contains(err.Error(), "--start-timeout") || !strings.Contains(err.Error(), "may not "+lacks) {
		t.Error(err)
	}
}

// Where an account may not ask for its rights, they cannot be told: what can be listed has to do.
func TestStartsIfItMayNotAskForRights(t *testing.T) {
	if err := start(t, &fakeHub{served: kinds(), unaskable: true}, time.Minute); err != nil {
		t.Error(err)
	}
}

func TestGivesUpInTheEnd(t *testing.T) {
	for name, h := range map[string]*fakeHub{
		"not served":       {},
		"a kind is absent": {served: kinds()[:7]},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			gaveUp(t, h)
		})
	}
}

func gaveUp(t *testing.T, h http.Handler) {
	t.Helper()

	err := start(t, h, 6*time.Second) // longer than any one look
	if err == nil || errors.Is(err, errRefused) || !strings.Contains(err.Error(), "--start-timeout") || !strings.Contains(err.Error(), "does not serve") {
		t.Error(err)
	}
}

// The last attempt is cut short: the error still names what was missing before.
func TestGivesUpInALook(t *testing.T) {
	t.Parallel()

	var looked atomic.Bool

	gaveUp(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch definitions := strings.Contains(r.URL.Path, "customresourcedefinitions"); {
		case !definitions:
			looked.Store(true)
		case looked.Load():
			<-r.Context().Done()

			return
		}

		(&fakeHub{}).ServeHTTP(w, r)
	}))
}

// A stop while the start waits is no failure.
func TestStopsWhileItWaits(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	h := &fakeHub{unavailable: 1 << 30, enough: 1, stop: func() { time.AfterFunc(100*time.Millisecond, stop) }}

	server := httptest.NewServer(h)
	t.Cleanup(server.Close)

	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"hub": {Server: server.URL}},
		Contexts:       map[string]*clientcmdapi.Context{"hub": {Cluster: "hub"}},
		CurrentContext: "hub",
	}, kubeconfig); err != nil {
		t.Fatal(err)
	}

	// It ends by the hub's word alone, that is, after it has asked.
	if err := Run(ctx, parse(t, "--namespace=apps", "--kubeconfig="+kubeconfig)); err != nil {
		t.Error(err)
	}
}

func TestSaysHowToReachTheHub(t *testing.T) {
	t.Setenv("KUBERNETES_SERVICE_HOST", "")

	for flag, want := range map[string]string{
		"--kubeconfig=":             "outside of a cluster give --kubeconfig",
		"--kubeconfig=/nonexistent": "--kubeconfig: stat /nonexistent: no such file or directory",
	} {
		if err := Run(t.Context(), parse(t, "--namespace=apps", flag)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q in it", flag, err, want)
		}
	}
}

func TestServes(t *testing.T) {
	for want, args := range map[string][]string{"namespace apps": {"--namespace=apps"}, "all namespaces": {"--namespace=apps", "--all-namespaces"}} {
		if got := parse(t, args...).serves(); got != want {
			t.Errorf("%v: %s", args, got)
		}
	}
}
