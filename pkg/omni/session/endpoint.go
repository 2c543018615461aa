package session

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/url"
	"strconv"

	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
)

// endpoint is a parsed Config.Endpoint.
type endpoint struct {
	host string // without brackets or port
	port string
	tls  bool
}

// parseEndpoint accepts https://, http:// and grpc:// with a host and at most a "/" path. Its errors do not repeat the
// input, which may hold user info.
func parseEndpoint(raw string) (endpoint, error) {
	parsed, err := url.Parse(raw)
	if err != nil {
		return endpoint{}, fmt.Errorf("%w: it does not parse", omni.ErrEndpoint)
	}

	port := map[string]string{"https": "443", "http": "80", "grpc": "80"}[parsed.Scheme]

	switch {
	case port == "":
		return endpoint{}, fmt.Errorf("%w: unknown scheme", omni.ErrEndpoint)
	case parsed.Hostname() == "":
		return endpoint{}, fmt.Errorf("%w: no host", omni.ErrEndpoint)
	case parsed.User != nil, parsed.RawQuery != "", parsed.Fragment != "", parsed.Path != "" && parsed.Path != "/":
		return endpoint{}, fmt.Errorf("%w: only scheme, host and port are allowed", omni.ErrEndpoint)
	}

	if parsed.Port() != "" {
		number, err := strconv.ParseUint(parsed.Port(), 10, 16)
		if err != nil || number == 0 {
			return endpoint{}, fmt.Errorf("%w: bad port", omni.ErrEndpoint)
		}

		port = parsed.Port()
	}

	return endpoint{host: parsed.Hostname(), port: port, tls: parsed.Scheme == "https"}, nil
}

func (e endpoint) address() string { return net.JoinHostPort(e.host, e.port) }

// libraryURL returns the URL for the library's New. New has no option for a custom CA and sets its transport
// credentials after ours: with a custom CA, we pass a plaintext URL and do TLS in the dialer.
func (e endpoint) libraryURL(ownRoots bool) string {
	if e.tls && !ownRoots {
		return "https://" + e.address()
	}

	return "grpc://" + e.address()
}

// tlsDialer connects with TLS and the given roots. gRPC resolves the name before it calls the dialer, so the server
// name is set here.
func tlsDialer(target endpoint, roots *x509.CertPool, dial dialFunc) dialFunc {
	config := &tls.Config{
		RootCAs:    roots,
		ServerName: target.host,
		NextProtos: []string{"h2"},
		MinVersion: tls.VersionTLS12,
	}

	return func(ctx context.Context, address string) (net.Conn, error) {
		ctx, cancel := context.WithTimeout(ctx, connectTimeout)
		defer cancel()

		connection, err := dial(ctx, address)
		if err != nil {
			return nil, err
		}

		secured := tls.Client(connection, config)
		if err := secured.HandshakeContext(ctx); err != nil {
			_ = connection.Close() // its error differs each time

			return nil, err
		}

		return secured, nil
	}
}
