package clusteraccess

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/url"
	"strings"

	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// refuse returns ErrUnsafe for every field that requests a forbidden action.
func refuse(cluster *clientcmdapi.Cluster, user *clientcmdapi.AuthInfo) error {
	for _, field := range []struct {
		set          bool
		name, remedy string
	}{
		{user.Exec != nil, "user.exec", "programs are not run; use a token or an inline client certificate"},
		{user.AuthProvider != nil, "user.auth-provider", "use a token or an inline client certificate"},
		{user.TokenFile != "", "user.tokenFile", "files are not read; put the token into user.token"},
		{user.ClientCertificate != "", "user.client-certificate", "files are not read; use user.client-certificate-data"},
		{user.ClientKey != "", "user.client-key", "files are not read; use user.client-key-data"},
		{cluster.CertificateAuthority != "", "cluster.certificate-authority", "files are not read; use cluster.certificate-authority-data"},
		{cluster.InsecureSkipTLSVerify, "cluster.insecure-skip-tls-verify", "put the CA into cluster.certificate-authority-data"},
		{
			user.Impersonate != "" || user.ImpersonateUID != "" || len(user.ImpersonateGroups) > 0 || len(user.ImpersonateUserExtra) > 0,
			"user.as", "impersonation is not used; export a kubeconfig for that user",
		},
	} {
		if field.set {
			return fmt.Errorf("%w: %s is set: %s", ErrUnsafe, field.name, field.remedy)
		}
	}

	return nil
}

// readURLs reads the server and the proxy. Only https is accepted for the server: over http the token could be read on
// the way.
func (a *settings) readURLs(cluster *clientcmdapi.Cluster) error {
	server, err := url.Parse(cluster.Server)

	switch {
	case cluster.Server == "":
		return fmt.Errorf("%w: cluster.server is not set", ErrInvalid)
	case err != nil || server.Host == "":
		return fmt.Errorf("%w: cluster.server is no URL such as https://host:port", ErrInvalid)
	case server.User != nil:
		return fmt.Errorf("%w: cluster.server holds user information; use user.token, or user.username and user.password", ErrInvalid)
	case server.Scheme != "https":
		return fmt.Errorf("%w: cluster.server is not https: the connection would not be encrypted", ErrUnsafe)
	}

	// Clients drop the query and the fragment. They are not shown either: a user may have put a key there.
	server.RawQuery, server.ForceQuery, server.Fragment, server.RawFragment = "", false, "", ""
	a.server = server.String()

	if cluster.ProxyURL == "" {
		return nil
	}

	proxy, err := url.Parse(cluster.ProxyURL)
	if err != nil || proxy.Host == "" || proxy.Scheme != "http" && proxy.Scheme != "https" {
		return fmt.Errorf("%w: cluster.proxy-url is no http or https URL", ErrInvalid)
	}

	a.proxy = proxy

	return nil
}

// check finds values that would fail later with a worse message.
func (a *settings) check() error {
	if len(a.ca) > 0 && !x509.NewCertPool().AppendCertsFromPEM(a.ca) {
		return fmt.Errorf("%w: cluster.certificate-authority-data holds no PEM certificate", ErrInvalid)
	}

	if len(a.certificate) > 0 || len(a.key) > 0 {
		if _, err := tls.X509KeyPair(a.certificate, a.key); err != nil {
			return fmt.Errorf("%w: user.client-certificate-data and user.client-key-data are no PEM pair that belongs together", ErrInvalid)
		}
	}

	if strings.ContainsFunc(a.token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return fmt.Errorf("%w: user.token holds a space, a line break or another character that no token has", ErrInvalid)
	}

	if len(a.certificate) == 0 && a.token == "" && a.username == "" {
		return fmt.Errorf("%w: the user has no token, client certificate or user name", ErrInvalid)
	}

	return nil
}
