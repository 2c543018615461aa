package app

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// What asking the management cluster about readers of metrics may cost. Anybody who reaches the port can make us ask,
// so this is far below what the controllers themselves may send.
const (
	reviewTimeout    = 10 * time.Second
	reviewsPerSecond = 10
	reviewBurst      = 20
)

// Names of the files in --metrics-cert-path, as cert-manager calls them in a Secret.
const (
	certificateFile = "tls.crt"
	keyFile         = "tls.key"
)

// MetricsOptions are the flags about metrics.
type MetricsOptions struct {
	// BindAddress serves metrics; "0" turns them off.
	BindAddress string
	// Secure serves them by TLS, and only to who may get the path /metrics in the management cluster.
	Secure bool
	// CertPath is a directory with tls.crt and tls.key, which are read again when they change. Empty: a
	// certificate that nobody signed, made at the start.
	CertPath string
}

func (o *MetricsOptions) addFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.BindAddress, "metrics-bind-address", o.BindAddress, "Where to serve metrics; 0 turns them off.")
	flags.BoolVar(&o.Secure, "metrics-secure", o.Secure, "Serve metrics by TLS, and only to who may get /metrics in the management cluster. False serves them to anybody who reaches the address, in plain text.")
	flags.StringVar(&o.CertPath, "metrics-cert-path", o.CertPath, "Directory with tls.crt and tls.key for the metrics; renewed ones are taken without a restart. Default: a self-signed certificate made at the start.")
}

// validate says what does not fit together.
func (o *MetricsOptions) validate() error {
	if o.CertPath != "" && !o.Secure {
		return errors.New("--metrics-cert-path is of no use with --metrics-secure=false: leave one of them out")
	}

	return nil
}

// serving is how the library serves the metrics. The certificate is read once to fail here: the library would take
// one of its own making in the place of a missing file, and tell nobody.
func (o *MetricsOptions) serving() (server.Options, error) {
	options := server.Options{BindAddress: o.BindAddress}
	if !o.Secure {
		return options, nil
	}

	if o.CertPath != "" {
		if _, err := tls.LoadX509KeyPair(filepath.Join(o.CertPath, certificateFile), filepath.Join(o.CertPath, keyFile)); err != nil {
			return server.Options{}, fmt.Errorf("--metrics-cert-path: %w", err)
		}
	}

	options.SecureServing = true
	options.CertDir, options.CertName, options.KeyName = o.CertPath, certificateFile, keyFile
	options.TLSOpts = []func(*tls.Config){func(config *tls.Config) {
		config.MinVersion = tls.VersionTLS12
		// One request at a time on a connection: HTTP/2 would let a caller without credentials start and abandon many.
		config.NextProtos = []string{"http/1.1"}
	}}
	options.FilterProvider = onlyReaders

	return options, nil
}

// onlyReaders lets those through whom the management cluster knows and who may get the path.
func onlyReaders(hub *rest.Config, _ *http.Client) (server.Filter, error) {
	bounded := rest.CopyConfig(hub)
	bounded.Timeout, bounded.QPS, bounded.Burst = reviewTimeout, reviewsPerSecond, reviewBurst

	client, err := rest.HTTPClientFor(bounded)
	if err != nil {
		return nil, fmt.Errorf("metrics: %w", err)
	}

	filter, err := filters.WithAuthenticationAndAuthorization(bounded, client)
	if err != nil {
		return nil, fmt.Errorf("metrics: %w", err)
	}

	return filter, nil
}
