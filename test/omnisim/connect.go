package omnisim

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/siderolabs/go-api-signature/pkg/pgp"
	"github.com/siderolabs/go-api-signature/pkg/serviceaccount"
	"google.golang.org/grpc"

	"github.com/siderolabs/omni/client/pkg/client"
)

// Connect opens a client of an Omni, simulated or real, at an https:// endpoint whose certificate the given PEM
// certificates sign; without any, those that the machine trusts. Tests use it as a second client beside the operator. The
// client library has no option for a CA, so Connect does TLS in the dialer. The options are for connections that differ in
// something.
func Connect(endpoint, serviceAccountKey string, ca []byte, options ...grpc.DialOption) (*client.Client, error) {
	address, secure := strings.CutPrefix(endpoint, "https://")
	if !secure {
		return nil, fmt.Errorf("endpoint %q: want https://", endpoint)
	}

	var pool *x509.CertPool // nil: what the machine trusts

	if len(ca) > 0 {
		if pool = x509.NewCertPool(); !pool.AppendCertsFromPEM(ca) {
			return nil, errors.New("the CA holds no certificate")
		}
	}

	dialer := &tls.Dialer{Config: &tls.Config{RootCAs: pool, NextProtos: []string{"h2"}, MinVersion: tls.VersionTLS12}}

	c, err := client.New("grpc://"+address, client.WithServiceAccount(serviceAccountKey),
		client.WithGrpcOpts(append(options, grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) {
			return dialer.DialContext(ctx, "tcp", address)
		}))...))
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", endpoint, err)
	}

	return c, nil
}

// CreateAccount creates a service account in any Omni with an Admin's client, and returns its key, like `omnictl
// serviceaccount create`. Lifetimes are rounded down to seconds.
func CreateAccount(ctx context.Context, admin *client.Client, name string, role Role, lifetime time.Duration) (string, error) {
	// The real server parses the address as a mail address, which needs a name before it.
	key, err := pgp.GenerateKey(name, "test", accountID(name), lifetime)
	if err != nil {
		return "", fmt.Errorf("generate key: %w", err)
	}

	public, err := key.ArmorPublic()
	if err != nil {
		return "", fmt.Errorf("export public key: %w", err)
	}

	if _, err := admin.Management().CreateServiceAccount(ctx, name, public, string(role), false); err != nil {
		return "", fmt.Errorf("create service account %s: %w", name, err)
	}

	return serviceaccount.Encode(name, key)
}
