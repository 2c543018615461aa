package app

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// hub answers as a kube-apiserver would: definitions by name with a code, and the
// kinds that our group serves.
type hub struct {
	definitions map[string]int // code by name; none: 404
	served      []string
	calls       atomic.Int32
	unavailable int32 // so many calls are answered with 503 first
}

func (h *hub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if h.calls.Add(1) <= h.unavailable {
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

	if r.URL.Path == "/apis/omni.texashpc.com/v1alpha1" && h.served != nil {
		list := &metav1.APIResourceList{GroupVersion: "omni.texashpc.com/v1alpha1"}
		for _, name := range h.served {
			list.APIResources = append(list.APIResources, metav1.APIResource{Name: name, Kind: name, Namespaced: true})
		}

		writeJSON(w, http.StatusOK, list)

		return
	}

	writeStatus(w, http.StatusNotFound, metav1.StatusReasonNotFound)
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

func start(t *testing.T, h *hub, timeout time.Duration) error {
	t.Helper()

	server := httptest.NewServer(h)
	t.Cleanup(server.Close)

	return waitForStart(t.Context(), &rest.Config{Host: server.URL}, timeout)
}

func TestStarts(t *testing.T) {
	if err := start(t, &hub{served: kinds()}, time.Minute); err != nil {
		t.Error(err)
	}
}

func TestRefusesBesideDefinitions(t *testing.T) {
	for _, name := range []string{"omniclusters.omni.texashpc.com", "omnihelmreleases.omni.texashpc.com"} {
		err := start(t, &hub{served: kinds(), definitions: map[string]int{name: http.StatusOK}}, time.Minute)
		if !errors.Is(err, errRefused) || !strings.Contains(err.Error(), name) || !strings.Contains(err.Error(), "finalizers") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Without the right to look it does not start either, and names the role.
func TestRefusesIfItMayNotLook(t *testing.T) {
	err := start(t, &hub{served: kinds(), definitions: map[string]int{"omniclusters.omni.texashpc.com": http.StatusForbidden}}, time.Minute)
	if !errors.Is(err, errRefused) || !strings.Contains(err.Error(), "omni-controller-crd-check") {
		t.Error(err)
	}
}

// A hub or an API that is not there yet is waited for.
func TestWaitsForTheAPI(t *testing.T) {
	h := &hub{served: kinds(), unavailable: 1}
	if err := start(t, h, time.Minute); err != nil {
		t.Error(err)
	}

	if h.calls.Load() < 10 {
		t.Errorf("%d calls", h.calls.Load())
	}
}

func TestGivesUpInTheEnd(t *testing.T) {
	for name, h := range map[string]*hub{
		"not served":       {},
		"a kind is absent": {served: kinds()[:7]},
	} {
		err := start(t, h, 100*time.Millisecond)
		if err == nil || errors.Is(err, errRefused) || !strings.Contains(err.Error(), "--start-timeout") || !strings.Contains(err.Error(), "does not serve") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
