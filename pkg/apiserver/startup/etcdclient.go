package startup

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
)

// etcdAnswerTimeout is how long a member may take to answer before the next member is asked.
const etcdAnswerTimeout = 5 * time.Second

// EtcdTarget is an etcd to connect to.
type EtcdTarget struct {
	// Endpoints are the members, as URLs.
	Endpoints []string
	// CAFile, CertFile and KeyFile are PEM files for TLS; empty where the etcd needs none.
	CAFile, CertFile, KeyFile string
}

// TLS reads the files of the target. The error names the flag of omni-apiserver that each belongs to.
func (t EtcdTarget) TLS() (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}

	if t.CAFile != "" {
		text, err := os.ReadFile(t.CAFile)
		if err != nil {
			return nil, fmt.Errorf("--etcd-cafile: %w", err)
		}

		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("--etcd-cafile: %s has no certificate in PEM format", t.CAFile)
		}
	}

	if t.CertFile != "" || t.KeyFile != "" {
		pair, err := tls.LoadX509KeyPair(t.CertFile, t.KeyFile)
		if err != nil {
			return nil, fmt.Errorf("--etcd-certfile and --etcd-keyfile: %w", err)
		}

		config.Certificates = []tls.Certificate{pair}
	}

	return config, nil
}

// ConnectEtcd returns a client of the first member that answers. Its only endpoint is that member's, as
// snapshots need it. Close it.
func ConnectEtcd(ctx context.Context, target EtcdTarget) (*clientv3.Client, error) {
	config := clientv3.Config{DialTimeout: etcdAnswerTimeout, Logger: zap.NewNop()}

	if target.CAFile != "" || target.CertFile != "" || target.KeyFile != "" {
		var err error
		if config.TLS, err = target.TLS(); err != nil {
			return nil, fmt.Errorf("read the certificates for etcd: %w", err)
		}
	}

	var errs []error

	for _, endpoint := range target.Endpoints {
		config.Endpoints = []string{endpoint}

		client, err := connectTo(ctx, config)
		if err == nil {
			return client, nil
		}

		errs = append(errs, err)
	}

	return nil, errors.Join(errs...)
}

func connectTo(ctx context.Context, config clientv3.Config) (*clientv3.Client, error) {
	endpoint := config.Endpoints[0]

	client, err := clientv3.New(config)
	if err != nil {
		return nil, fmt.Errorf("connect to etcd at %s: %w", endpoint, err)
	}

	ctx, cancel := context.WithTimeout(ctx, etcdAnswerTimeout)
	defer cancel()

	if _, err := client.Status(ctx, endpoint); err != nil {
		return nil, errors.Join(fmt.Errorf("no answer from etcd at %s (%s): %w", endpoint, etcdHint(endpoint), err), client.Close())
	}

	return client, nil
}

// etcdHint says what to check. The library logs why it cannot connect, but returns only a timeout.
func etcdHint(endpoint string) string {
	switch {
	case strings.HasPrefix(endpoint, "unix://"):
		return "is omni-apiserver running, and this command run by the same user?"
	case strings.HasPrefix(endpoint, "https://"):
		return "is it running, are --etcd-cafile, --etcd-certfile and --etcd-keyfile those of the server? Warnings above say more"
	}

	return "is it running? If it has TLS, its address begins with https://. Warnings above say more"
}
