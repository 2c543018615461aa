package app

import (
	"crypto/tls"
	"errors"
	"fmt"
	"slices"

	cliflag "k8s.io/component-base/cli/flag"
)

// validateServing refuses to start without a certificate or a port: kube-apiserver would not trust a certificate that
// the library generates.
func (o *Options) validateServing() []error {
	var errs []error

	if o.Serving.BindPort == 0 {
		errs = append(errs, errors.New("--secure-port: 0 serves nobody; give a port"))
	}

	if pair := o.Serving.ServerCert.CertKey; pair.CertFile == "" || pair.KeyFile == "" {
		errs = append(errs, errors.New("--tls-cert-file and --tls-private-key-file: give both, with a certificate for the name of the Service; "+
			"cert-manager writes one"))
	}

	return errs
}

// validateTLS refuses settings that are too weak for connections from kube-apiserver. The library accepts TLS 1.0 and
// 1.1, and ciphers that it calls insecure itself.
func (o *Options) validateTLS() []error {
	var errs []error

	switch version, err := cliflag.TLSVersion(o.Serving.MinTLSVersion); {
	case err != nil:
		errs = append(errs, fmt.Errorf("--tls-min-version: %w; give VersionTLS12 or VersionTLS13", err))
	case version < tls.VersionTLS12:
		errs = append(errs, fmt.Errorf("--tls-min-version: %s is not safe; give VersionTLS12 or VersionTLS13", o.Serving.MinTLSVersion))
	}

	for _, cipher := range o.Serving.CipherSuites {
		switch {
		case slices.Contains(cliflag.InsecureTLSCipherNames(), cipher):
			errs = append(errs, fmt.Errorf("--tls-cipher-suites: %s is not safe; leave it out", cipher))
		case !slices.Contains(cliflag.PreferredTLSCipherNames(), cipher):
			errs = append(errs, fmt.Errorf("--tls-cipher-suites: %q is unknown; see omni-apiserver --help", cipher))
		}
	}

	return errs
}
