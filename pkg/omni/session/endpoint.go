package session

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"

	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
)

// libraryURL returns the URL for the library's New. New has no option for a custom CA and sets its transport
// credentials after ours: with a custom CA, we pass a plaintext URL and do TLS in the dialer.
func libraryURL(target omni.Origin, ownRoots bool) string {
	if target.TLS && !ownRoots {
		return "https://" + target.Address()
	}

	return "grpc://" + target.Address()
}

// tlsDialer connects with TLS and the given roots. gRPC resolves the name before it calls the dialer, so the server
// name is set here.
func tlsDialer(target omni.Origin, roots *x509.CertPool, dial dialFunc) dialFunc {
	config := &tls.Config{
		RootCAs:    roots,
		ServerName: target.Host,
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
