package startup

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"path"
	"strings"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/klog/v2"
)

const (
	// readTimeout bounds the read that proves that a member can serve.
	readTimeout = 5 * time.Second
	// alertTimeout is how long a server may take to say that it does not accept our certificate.
	alertTimeout = time.Second
)

// WaitForEtcd returns when an external etcd can serve: at least one member answers a read that needs a majority of
// the members. Until then it logs what is wrong with each member. The library would give up after 20 seconds with
// "context deadline exceeded", whether a host name, a certificate or a firewall is the reason.
//
// It reads below the prefix of our keys, because access may be limited to that prefix. It returns an error at once if
// a certificate or key cannot be read, and otherwise when the context ends.
func WaitForEtcd(ctx context.Context, etcd EtcdTarget, prefix string) error {
	return retry(ctx, "etcd", func(ctx context.Context) error { return askEtcd(ctx, etcd, path.Join("/", prefix, "health")) })
}

// askEtcd asks all members at the same time.
func askEtcd(ctx context.Context, etcd EtcdTarget, key string) error {
	if _, err := etcd.TLS(); err != nil {
		return permanentError{err}
	}

	var members sync.WaitGroup

	errs := make([]error, len(etcd.Endpoints))
	for i, endpoint := range etcd.Endpoints {
		members.Go(func() { errs[i] = askMember(ctx, etcd, endpoint, key) })
	}

	members.Wait()

	away := errors.Join(errs...)
	for _, err := range errs {
		if err == nil && away != nil {
			klog.InfoS("Going on without members of the etcd cluster that cannot serve", "reason", away.Error())
		}

		if err == nil {
			return nil
		}
	}

	return away
}

// askMember reads a key, which need not exist, from a member.
func askMember(ctx context.Context, etcd EtcdTarget, endpoint, key string) error {
	etcd.Endpoints = []string{endpoint}

	conn, err := dialMember(ctx, etcd, endpoint)
	if err != nil {
		return err
	}
	defer conn.Close() // nothing was written

	client, err := ConnectEtcd(ctx, etcd)
	if err != nil {
		return cmp.Or(alertOn(conn, endpoint), err)
	}
	defer client.Close() // nothing was written

	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()

	if _, err := client.Get(ctx, key, clientv3.WithCountOnly()); err != nil {
		return fmt.Errorf("etcd at %s runs but cannot serve, as without most of its members: %w", endpoint, err)
	}

	return nil
}

// dialMember connects step by step, because etcd's client does not say which step fails.
func dialMember(ctx context.Context, etcd EtcdTarget, endpoint string) (net.Conn, error) {
	network, address, secured := memberAddress(endpoint, etcd.CAFile != "" || etcd.CertFile != "")

	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()

	conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
	if err != nil {
		return nil, fmt.Errorf("no connection to etcd at %s: %w", endpoint, err)
	}

	if !secured {
		return conn, nil
	}

	config, err := etcd.TLS()
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}

	if config.ServerName, _, err = net.SplitHostPort(address); err != nil {
		config.ServerName = address
	}

	secure := tls.Client(conn, config)
	if err := secure.HandshakeContext(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("etcd at %s is not trusted, or does not speak TLS (--etcd-cafile): %w", endpoint, err), conn.Close())
	}

	return secure, nil
}

// memberAddress returns the address of an endpoint of --etcd-servers, and whether it uses TLS. An endpoint without a
// scheme uses TLS if there are certificates, as in etcd's client.
func memberAddress(endpoint string, certificates bool) (network, address string, secured bool) {
	scheme, rest, found := strings.Cut(endpoint, "://")
	if !found {
		return "tcp", endpoint, certificates
	}

	if scheme == "unix" || scheme == "unixs" {
		return "unix", rest, scheme == "unixs"
	}

	address, _, _ = strings.Cut(rest, "/")

	return "tcp", address, scheme == "https"
}

// alertOn returns an error if the server closed the connection: a server that refuses our certificate does so after
// the handshake.
func alertOn(conn net.Conn, endpoint string) error {
	if err := conn.SetReadDeadline(time.Now().Add(alertTimeout)); err != nil {
		return nil // it is not the reason
	}

	var alert *net.OpError
	if _, err := conn.Read(make([]byte, 1)); errors.As(err, &alert) && !alert.Timeout() {
		return fmt.Errorf("etcd at %s does not accept us (--etcd-certfile, --etcd-keyfile): %w", endpoint, err)
	}

	return nil
}
