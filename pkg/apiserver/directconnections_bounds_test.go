package apiserver

import (
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apiserver/pkg/authentication/authenticator"
)

// accepted is a connection from an address, with the client's end.
func accepted(t *testing.T, all *directConnections, source string) (*connection, net.Conn) {
	t.Helper()

	server, client := net.Pipe()
	t.Cleanup(func() { _, _ = server.Close(), client.Close() })

	c := &connection{Conn: server, all: all, source: source, changed: make(chan struct{})}
	all.add(c)

	return c, client
}

// TestTooManyDirectConnections: of too many, the oldest of the address that has most is closed, so that others connect. Those that
// have sent a request, and new ones, are counted apart.
func TestTooManyDirectConnections(t *testing.T) {
	for name, test := range map[string]struct {
		limit int
		asked bool
	}{"new": {maxNewConnections, false}, "that have sent a request": {maxDirectConnections, true}} {
		t.Run(name, func(t *testing.T) {
			all := &directConnections{}
			open := func(source string) *connection {
				c, _ := accepted(t, all, source)
				if test.asked {
					all.asks(c)
				}

				return c
			}

			other, _ := accepted(t, all, "10.0.0.2")
			if !test.asked {
				all.asks(other)
			}

			alone := open("10.0.0.1")

			var many []*connection
			for range test.limit + 5 {
				many = append(many, open("10.0.0.2"))
			}

			proxy := open("10.0.0.3")

			for i, c := range many {
				if want := i < 7; c.closed != want {
					t.Errorf("number %d is closed: %t", i, c.closed)
				}
			}

			if other.closed || alone.closed || proxy.closed || len(all.open) != test.limit+1 {
				t.Errorf("closed: one of the others %t, the first of all %t, kube-apiserver's %t; %d are open",
					other.closed, alone.closed, proxy.closed, len(all.open))
			}

			// One that turned out to be the front proxy's counts no more.
			all.remove(proxy)

			for range test.limit {
				open("10.0.0.3")
			}

			if proxy.closed {
				t.Error("the front proxy's connection was closed")
			}
		})
	}
}

// TestClosedConnectionIsNotCounted: one that ends while its certificate is found to be accepted no longer would be counted for ever.
func TestClosedConnectionIsNotCounted(t *testing.T) {
	all := &directConnections{}
	c, _ := accepted(t, all, "10.0.0.1")
	all.remove(c)
	_ = c.Close()

	if all.add(c); len(all.open) != 0 {
		t.Error("it is counted")
	}
}

// TestDirectConnectionIsReadSlowly: a direct connection is not read on when it has sent much that was not answered, and closed if
// that lasts. That of the front proxy is read on as soon as it is known.
func TestDirectConnectionIsReadSlowly(t *testing.T) {
	type step struct {
		change func(*connection)
		more   int // bytes that are read then
	}

	answer := func(c *connection) {
		answered, _ := c.begin()
		answered()
	}

	var open func()

	for name, steps := range map[string][]step{
		"nothing is answered": {{func(*connection) {}, 0}},
		"a request is answered, and another": {
			{answer, directBytes}, {answer, directBytes}, {func(*connection) {}, 0},
		},
		"one of two requests is answered": {{func(c *connection) {
			open, _ = c.begin()
			answer(c)
		}, 0}},
		"both are": {{func(c *connection) {
			open, _ = c.begin()
			answer(c)
			open()
		}, directBytes}},
		"it is the front proxy's":  {{func(c *connection) { c.trust(verifiedWith{}) }, 3 * directBytes}},
		"it is this process's own": {{func(c *connection) { c.own(true) }, 3 * directBytes}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, client := accepted(t, &directConnections{}, "10.0.0.2")

				go func() { _, _ = client.Write(make([]byte, 8*directBytes)) }()

				read := func(want int) {
					t.Helper()

					got, err := 0, error(nil)
					for into := make([]byte, 5000); err == nil && got < want; {
						var n int
						n, err = c.Read(into[:min(len(into), want-got)])
						got += n
					}

					if err != nil || got != want {
						t.Errorf("read %d bytes, want %d: %v", got, want, err)
					}
				}

				read(directBytes)

				for _, step := range steps {
					go func() {
						time.Sleep(time.Second)
						step.change(c)
					}()

					if step.more > 0 {
						read(step.more)

						continue
					}

					if n, err := c.Read(make([]byte, 1)); n != 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
						t.Errorf("read %d bytes more: %v", n, err)
					}
				}

				_ = c.Close()
				if _, err := c.Read(make([]byte, 1)); !errors.Is(err, io.ErrClosedPipe) {
					t.Errorf("after its end: %v", err)
				}
			})
		})
	}
}

// TestRotationOfTheFrontProxy: a connection is trusted while the authorities that its certificate was verified with are there. With
// others it is verified again, and the next request over a connection that was not trusted may be.
func TestRotationOfTheFrontProxy(t *testing.T) {
	known, now := true, verifiedWith{authorities: x509.NewCertPool()}
	verified := 0

	all := &directConnections{
		current: func() (verifiedWith, bool) { return now, true },
		verifier: authenticator.RequestFunc(func(*http.Request) (*authenticator.Response, bool, error) {
			verified++

			if !known {
				return nil, false, errors.New("unknown authority")
			}

			return nil, true, nil
		}),
	}
	c, _ := accepted(t, all, "10.0.0.2")
	request := newProxyFixture().request()

	for _, step := range []struct {
		name           string
		change         func()
		want           bool
		verified, open int
	}{
		{"the first request", func() {}, true, 1, 0},
		{"the next", func() {}, true, 1, 0},
		{"other authorities, which know it", func() { now.authorities = x509.NewCertPool() }, true, 2, 0},
		{"other names, too", func() { now.allowed = []string{"front-proxy-client"} }, true, 3, 0},
		{"authorities that do not", func() { known, now.authorities = false, x509.NewCertPool() }, false, 4, 1},
		{"still", func() {}, false, 5, 1},
		{"its authority is loaded", func() { known = true }, true, 6, 0},
	} {
		step.change()

		if got := all.trusts(c, request); got != step.want || verified != step.verified || len(all.open) != step.open {
			t.Errorf("%s: trusted %t, verified %d times, %d are counted", step.name, got, verified, len(all.open))
		}
	}

	request.TLS = nil
	if all.trusts(c, request) {
		t.Error("a request without a certificate is trusted")
	}
}
