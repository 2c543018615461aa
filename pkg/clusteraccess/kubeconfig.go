package clusteraccess

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"omni.texashpc.com/omni-cluster-operator/pkg/foreign"
)

// maxKubeconfig is the largest kubeconfig that is read, in bytes. One with long certificate chains has about 20 KiB.
const maxKubeconfig = 256 << 10

// kubeconfigLimits bound a decoded kubeconfig. One of five hundred contexts, with a cluster and a user each, has some
// 15,000 values.
//
//nolint:gochecknoglobals // a constant
var kubeconfigLimits = foreign.Limits{Bytes: maxKubeconfig, Depth: 32, Nodes: 25_000, Expanded: 2 * maxKubeconfig}

var (
	// ErrUnsafe is the error for a kubeconfig that requests a forbidden action: to run a program, to read a file, to skip
	// the check of a certificate, to connect to a refused address. The text names the field and the remedy.
	ErrUnsafe = errors.New("the kubeconfig is refused")
	// ErrInvalid is the error for an unusable kubeconfig. The text names the field, never its content.
	ErrInvalid = errors.New("the kubeconfig cannot be used")
)

// settings are the values of a kubeconfig, rebuilt from an allow-list. They hold secrets and must not be printed.
type settings struct {
	server, serverName      string
	ca, certificate, key    []byte
	token, username, secret string
	proxy                   *url.URL
}

// parse reads the current context of a kubeconfig. Errors: ErrUnsafe and ErrInvalid, and that of ctx if it ends while
// other texts are being read. It opens no file, runs nothing and sends nothing.
func parse(ctx context.Context, kubeconfig []byte) (*settings, error) {
	config, err := load(ctx, kubeconfig)
	if err != nil {
		return nil, err
	}

	cluster, user, err := current(config)
	if err != nil {
		return nil, err
	}

	if err := refuse(cluster, user); err != nil {
		return nil, err
	}

	found := &settings{
		serverName: cluster.TLSServerName, ca: cluster.CertificateAuthorityData,
		certificate: user.ClientCertificateData, key: user.ClientKeyData,
		token: user.Token, username: user.Username, secret: user.Password,
	}

	if err := found.readURLs(cluster); err != nil {
		return nil, err
	}

	return found, found.check()
}

// load decodes a kubeconfig, after it has checked the decoded size.
// It is not shared with the exports and with session.Access: only foreign.Check and clientcmd.Load are the same in the three. The
// limits, what the current context has to have, and what the error says (to mend it, here; nothing; what Omni changed) are not.
func load(ctx context.Context, kubeconfig []byte) (*clientcmdapi.Config, error) {
	if len(kubeconfig) == 0 {
		return nil, fmt.Errorf("%w: it is empty", ErrInvalid)
	}

	err := foreign.Check(ctx, kubeconfig, kubeconfigLimits)

	var limit *foreign.LimitError

	switch {
	case errors.As(err, &limit):
		return nil, fmt.Errorf("%w: it %w", ErrInvalid, err)
	case err != nil && ctx.Err() != nil:
		return nil, err
	}

	if err == nil {
		var config *clientcmdapi.Config
		if config, err = clientcmd.Load(kubeconfig); err == nil {
			return config, nil
		}
	}

	// The error may quote the line, and with it a token.
	return nil, fmt.Errorf("%w: it is not a kubeconfig in YAML or JSON, or a field has the wrong type", ErrInvalid)
}

// current returns the cluster and the user of the current context. If there is only one context, current-context may be
// empty.
func current(config *clientcmdapi.Config) (*clientcmdapi.Cluster, *clientcmdapi.AuthInfo, error) {
	name := config.CurrentContext
	if name == "" && len(config.Contexts) == 1 {
		for only := range config.Contexts {
			name = only
		}
	}

	if name == "" {
		return nil, nil, fmt.Errorf("%w: current-context is not set", ErrInvalid)
	}

	context, found := config.Contexts[name]
	if !found || context == nil {
		return nil, nil, fmt.Errorf("%w: current-context names a context that is not there", ErrInvalid)
	}

	cluster, found := config.Clusters[context.Cluster]
	if !found || cluster == nil {
		return nil, nil, fmt.Errorf("%w: the current context names a cluster that is not there", ErrInvalid)
	}

	user, found := config.AuthInfos[context.AuthInfo]
	if !found || user == nil {
		return nil, nil, fmt.Errorf("%w: the current context names a user that is not there", ErrInvalid)
	}

	return cluster, user, nil
}

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
