package clusteraccess

import (
	"context"
	"errors"
	"fmt"
	"net/url"

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
