package kubeclient

import (
	"context"
	"errors"
	"io"
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

// What is asked after the end reaches nobody: clients repeat requests, and wait in between whether or not the end has come.
func TestNoRequestAfterTheEnd(t *testing.T) {
	life, end := context.WithCancel(t.Context())
	end()

	for _, target := range []string{"/api/v1/pods", "/api/v1/pods?watch=true"} {
		transport := &boundedTransport{ctx: life, next: roundTripper(func(request *http.Request) (*http.Response, error) {
			t.Errorf("%s is sent", request.URL)

			return &http.Response{Body: http.NoBody, Request: request}, nil
		})}
		body := &closing{}

		_, err := transport.RoundTrip(httptest.NewRequest(http.MethodPost, "https://cluster.example.com"+target, body))
		if !errors.Is(err, context.Canceled) || !body.closed {
			t.Errorf("%s: %v, its body is closed: %v", target, err, body.closed)
		}
	}
}

// closing is a body that notes whether it was closed.
type closing struct{ closed bool }

// Read implements io.Reader.
func (*closing) Read([]byte) (int, error) { return 0, io.EOF }

// Close implements io.Closer.
func (c *closing) Close() error {
	c.closed = true

	return nil
}

type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (r roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return r(request) }
