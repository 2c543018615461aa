package env

import (
	"fmt"
	"path/filepath"

	"k8s.io/client-go/rest"
)

// RESTConfigFor returns a client configuration for a user and groups of the caller's choice,
// by a new client certificate. RBAC decides what they may do; nothing has to exist before.
func (h *Hub) RESTConfigFor(user string, groups ...string) (*rest.Config, error) {
	pair, err := h.creds.cluster.issue(leaf{commonName: user, organizations: groups})
	if err != nil {
		return nil, err
	}

	return restConfig(h.server, h.creds.cluster.certPEM, pair), nil
}

// KubeconfigFor writes a kubeconfig for a user and groups of the caller's choice, by a new
// client certificate, and returns its path.
func (h *Hub) KubeconfigFor(user string, groups ...string) (string, error) {
	pair, err := h.creds.cluster.issue(leaf{commonName: user, organizations: groups})
	if err != nil {
		return "", err
	}

	h.mu.Lock()
	h.users++
	path := filepath.Join(h.Dir, "kubeconfigs", fmt.Sprintf("user-%d", h.users))
	h.mu.Unlock()

	return path, writeKubeconfig(path, h.server, h.creds.cluster.certPEM, pair)
}

// URL returns the address of kube-apiserver, https://127.0.0.1:<port>.
func (h *Hub) URL() string { return h.server }

// CA returns, as PEM, the authority that signs the hub's serving and client certificates.
func (h *Hub) CA() []byte { return h.creds.cluster.certPEM }

// FrontProxyClient returns, as PEM, the client certificate and key with which a proxy may
// tell kube-apiserver, by X-Remote-User and X-Remote-Group headers, for whom it speaks.
func (h *Hub) FrontProxyClient() (cert, key []byte) {
	return h.creds.frontProxyClient.cert, h.creds.frontProxyClient.key
}

// FrontProxyClientNamed issues, as PEM, a client certificate of the front proxy's authority with a common name of the
// caller's choice. API servers believe headers of the name that FrontProxyClient has, and of no other.
func (h *Hub) FrontProxyClientNamed(name string) (cert, key []byte, err error) {
	pair, err := h.creds.frontProxy.issue(leaf{commonName: name})

	return pair.cert, pair.key, err
}
