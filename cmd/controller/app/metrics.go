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

// Limits of the calls to the management cluster that check readers of metrics. Everybody who reaches the port can
// cause such calls, so these are far below the limits of the controllers' own calls.
const (
	reviewTimeout    = 10 * time.Second
	reviewsPerSecond = 10
	reviewBurst      = 20
)

// Names of the files in --metrics-cert-path, as in a Secret of cert-manager.
const (
	certificateFile = "tls.crt"
	keyFile         = "tls.key"
)

// MetricsOptions are the flags about metrics.
type MetricsOptions struct {
	// BindAddress serves metrics; "0" turns them off.
	BindAddress string
	// Secure serves metrics by TLS, and only to clients that may get the path /metrics in the management cluster.
	Secure bool
	// CertPath is a directory with tls.crt and tls.key, which are read again when they change. Empty: a self-signed
	// certificate, generated at the start.
	CertPath string
}

func (o *MetricsOptions) addFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.BindAddress, "metrics-bind-address", o.BindAddress, "Where to serve metrics; 0 turns them off.")
	flags.BoolVar(&o.Secure, "metrics-secure", o.Secure, "Serve metrics by TLS, and only to who may get /metrics in the management cluster. False serves them to anybody who reaches the address, in plain text.")
	flags.StringVar(&o.CertPath, "metrics-cert-path", o.CertPath, "Directory with tls.crt and tls.key for the metrics; renewed ones are taken without a restart. Default: a self-signed certificate made at the start.")
}

// validate checks that the flags fit together.
func (o *MetricsOptions) validate() error {
	if o.CertPath != "" && !o.Secure {
		return errors.New("--metrics-cert-path is of no use with --metrics-secure=false: leave one of them out")
	}

	return nil
}

// serving returns the library's options for the metrics. It reads the certificate once, so that a missing file fails
// here: the library would silently replace it by a certificate that it generates.
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
		// HTTP/1.1 only, so one request at a time on a connection: with HTTP/2 a caller without credentials could
		// start and abandon many requests.
		config.NextProtos = []string{"http/1.1"}
	}}
	options.FilterProvider = onlyReaders

	return options, nil
}

// onlyReaders lets only clients through whom the management cluster authenticates and allows to get the path.
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
