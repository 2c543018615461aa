package kubeclient

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
)

// A request that is no watch has an end, and a finished one leaves nothing behind.
func TestRequestsEnd(t *testing.T) {
	life, end := context.WithCancel(t.Context())

	for target, bounded := range map[string]bool{"/api/v1/pods": true, "/api/v1/pods?watch=true": false} {
		var seen context.Context

		transport := &boundedTransport{ctx: life, next: roundTripper(func(request *http.Request) (*http.Response, error) {
			seen = request.Context()

			return &http.Response{Body: http.NoBody, Request: request}, nil
		})}

		response, err := transport.RoundTrip(httptest.NewRequest(http.MethodGet, "https://cluster.example.com"+target, nil))
		if err != nil {
			t.Fatal(err)
		}

		if _, has := seen.Deadline(); has != bounded || seen.Err() != nil {
			t.Errorf("%s: deadline %v, want %v; %v", target, has, bounded, seen.Err())
		}

		if err := response.Body.Close(); err != nil || seen.Err() == nil {
			t.Errorf("%s: goes on after its answer was read, %v", target, err)
		}
	}

	end()
}

type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (r roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return r(request) }
