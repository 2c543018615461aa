package session

import (
	"bufio"
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/resolver/manual"

	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
)

// maxProxyAnswer bounds the answer of a proxy to CONNECT, in bytes.
const maxProxyAnswer = 16 << 10

// proxyOf returns the proxy for an endpoint, which is that of https also for one without TLS, as in gRPC; nil: none. Choose is
// what chooses it, nil for the environment. The error does not show the proxy, which may have a password.
func proxyOf(choose func(*http.Request) (*url.URL, error), target omni.Origin) (*url.URL, error) {
	if choose == nil {
		choose = http.ProxyFromEnvironment
	}

	proxy, err := choose(&http.Request{URL: &url.URL{Scheme: "https", Host: target.Address()}})

	switch {
	case err != nil:
		return nil, unusableProxy("the proxy that HTTPS_PROXY names is not a URL")
	case proxy != nil && proxy.Scheme != "http":
		return nil, unusableProxy(fmt.Sprintf("HTTPS_PROXY names a proxy with the scheme %q: on the way to Omni it has to be http, or the host of the endpoint "+
			"belongs into NO_PROXY", proxy.Scheme))
	default:
		return proxy, nil
	}
}

// unusableProxy is the error of a proxy that cannot be used.
type unusableProxy string

// Error implements error.
func (u unusableProxy) Error() string { return string(u) }

// Classified returns the class for omni.Classify.
func (unusableProxy) Classified() omni.Class { return omni.ClassUnreachable }

// unresolved makes gRPC give the endpoint's name to the dialer: only the proxy may know its address.
func unresolved(target omni.Origin) grpc.DialOption {
	names := manual.NewBuilderWithScheme("dns") // in place of the default
	names.InitialState(resolver.State{Endpoints: []resolver.Endpoint{{Addresses: []resolver.Address{{Addr: target.Address()}}}}})

	return grpc.WithResolvers(names)
}

// proxyDialer returns a dialer that connects through a proxy. What a proxy refuses has its HTTP status, and nothing else of its
// answer, which may differ each time.
func proxyDialer(proxy *url.URL) dialFunc {
	return func(ctx context.Context, address string) (net.Conn, error) {
		connection, err := dialer(nil).DialContext(ctx, "tcp", net.JoinHostPort(proxy.Hostname(), cmp.Or(proxy.Port(), "80")))
		if err != nil {
			return nil, fmt.Errorf("connect to the proxy: %w", err)
		}

		through, err := connectThrough(ctx, connection, proxy, address)
		if err != nil {
			return nil, errors.Join(err, connection.Close())
		}

		return through, nil
	}
}

// connectThrough makes a proxy connect to an address. What the server says before the client is read with the answer, and is not lost.
func connectThrough(ctx context.Context, connection net.Conn, proxy *url.URL, address string) (net.Conn, error) {
	deadline, bounded := ctx.Deadline()
	if !bounded {
		deadline = time.Now().Add(connectTimeout)
	}

	if err := connection.SetDeadline(deadline); err != nil {
		return nil, err
	}

	request := &http.Request{Method: http.MethodConnect, URL: &url.URL{Host: address}, Host: address, Header: http.Header{}}
	if user := proxy.User; user != nil {
		password, _ := user.Password()
		request.Header.Set("Proxy-Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(user.Username()+":"+password)))
	}

	if err := request.Write(connection); err != nil {
		return nil, fmt.Errorf("ask the proxy: %w", err)
	}

	read := bufio.NewReader(io.LimitReader(connection, maxProxyAnswer))

	answer, err := http.ReadResponse(read, request) //nolint:bodyclose // the connection goes on behind the answer, or ends with it
	if err != nil {
		return nil, fmt.Errorf("the proxy's answer cannot be read: %w", err)
	}

	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the proxy answers HTTP %d (%s)", answer.StatusCode, http.StatusText(answer.StatusCode))
	}

	early, err := read.Peek(read.Buffered())
	if err != nil {
		return nil, err
	}

	return &tunnel{Conn: connection, early: early}, connection.SetDeadline(time.Time{})
}

// tunnel is a connection through a proxy.
type tunnel struct {
	net.Conn

	early []byte // read with the proxy's answer
}

// Read implements net.Conn.
func (t *tunnel) Read(into []byte) (int, error) {
	if len(t.early) == 0 {
		return t.Conn.Read(into)
	}

	count := copy(into, t.early)
	t.early = t.early[count:]

	return count, nil
}
