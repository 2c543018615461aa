package hub

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata/fake"
	"k8s.io/client-go/rest"
	clienttesting "k8s.io/client-go/testing"
)

func TestValidateID(t *testing.T) {
	for id, valid := range map[string]bool{
		"": false, "5f4dcc3b-5aa7-465d-8327-deb882cf99aa": true, "berlin-1": true, "a b": false, "-a": false, "a/b": false,
		strings.Repeat("a", 63): true, strings.Repeat("a", 64): false,
	} {
		if err := ValidateID(id); (err == nil) != valid {
			t.Errorf("%q: %v", id, err)
		}
	}
}

// server answers for the Namespace kube-system with a code.
func server(t *testing.T, calls *atomic.Int32, code int) *rest.Config {
	t.Helper()

	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		calls.Add(1)
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)

		if r.URL.Path != "/api/v1/namespaces/kube-system" {
			t.Errorf("asked for %s", r.URL.Path)
		}

		_ = json.NewEncoder(w).Encode(&metav1.PartialObjectMetadata{
			TypeMeta:   metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadata"},
			ObjectMeta: metav1.ObjectMeta{Name: "kube-system", UID: "uid-of-kube-system"},
		})
	}))
	t.Cleanup(srv.Close)

	return &rest.Config{Host: srv.URL}
}

func TestTheUIDOfKubeSystemIsTheID(t *testing.T) {
	var calls atomic.Int32

	id, err := Identify(t.Context(), server(t, &calls, http.StatusOK), "", "a-role")
	if id != "uid-of-kube-system" || err != nil {
		t.Errorf("%q, %v", id, err)
	}
}

// Where it is given nothing is asked.
func TestTheGivenIDIsTheID(t *testing.T) {
	var calls atomic.Int32

	id, err := Identify(t.Context(), server(t, &calls, http.StatusForbidden), "berlin", "a-role")
	if id != "berlin" || err != nil || calls.Load() != 0 {
		t.Errorf("%q, %v, %d calls", id, err, calls.Load())
	}
}

func clientThat(answer func(call int) error) *fake.FakeMetadataClient {
	client := fake.NewSimpleMetadataClient(runtime.NewScheme())
	calls := 0

	client.PrependReactor("get", "namespaces", func(clienttesting.Action) (bool, runtime.Object, error) {
		calls++

		return true, &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "kube-system", UID: "uid"}}, answer(calls)
	})

	return client
}

func forbidden() error {
	return apierrors.NewForbidden(schema.GroupResource{Resource: "namespaces"}, "kube-system", nil)
}

// A hub that does not answer yet, or knows no bindings yet, is waited for.
func TestWaitsForTheHub(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		id, err := ask(t.Context(), clientThat(func(call int) error {
			switch {
			case call < 20:
				return forbidden()
			case call < 25:
				return apierrors.NewServiceUnavailable("starting")
			case call < 40: // it has started anew, and so has the time for its bindings
				return forbidden()
			}

			return nil
		}))
		if id != "uid" || err != nil {
			t.Errorf("%q, %v", id, err)
		}
	})
}

// Neither a refusal nor silence is waited for without an end; a refusal ends it sooner.
func TestGivesUp(t *testing.T) {
	for name, test := range map[string]struct {
		answer error
		after  time.Duration
	}{
		"refused": {forbidden(), refusedTimeout}, "away": {apierrors.NewServiceUnavailable("away"), identifyTimeout},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), identifyTimeout)
				defer cancel()

				began := time.Now()

				if id, err := ask(ctx, clientThat(func(int) error { return test.answer })); id != "" || err == nil || time.Since(began) != test.after {
					t.Errorf("%q, %v after %s", id, err, time.Since(began))
				}
			})
		})
	}
}

// The error says what to grant, and what to set instead.
func TestSaysWhatToDo(t *testing.T) {
	var calls atomic.Int32

	ctx, cancel := context.WithCancel(t.Context())
	cancel()

	_, err := Identify(ctx, server(t, &calls, http.StatusForbidden), "", "a-role")
	if err == nil || !strings.Contains(err.Error(), "ClusterRole a-role") || !strings.Contains(err.Error(), "--hub-id") ||
		!strings.Contains(err.Error(), "kube-system") {
		t.Error(err)
	}
}
