package env

import (
	"fmt"
	"os"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// kubeconfigName names the one cluster, user and context of every kubeconfig made here.
const kubeconfigName = "hub"

// writeKubeconfig writes a kubeconfig with everything inline, readable by its owner only.
func writeKubeconfig(path, server string, ca []byte, client keyPair) error {
	config := clientcmdapi.Config{
		Clusters: map[string]*clientcmdapi.Cluster{
			kubeconfigName: {Server: server, CertificateAuthorityData: ca},
		},
		AuthInfos: map[string]*clientcmdapi.AuthInfo{
			kubeconfigName: {ClientCertificateData: client.cert, ClientKeyData: client.key},
		},
		Contexts: map[string]*clientcmdapi.Context{
			kubeconfigName: {Cluster: kubeconfigName, AuthInfo: kubeconfigName},
		},
		CurrentContext: kubeconfigName,
	}

	content, err := clientcmd.Write(config)
	if err != nil {
		return fmt.Errorf("encode kubeconfig: %w", err)
	}

	if err := os.WriteFile(path, content, 0o600); err != nil {
		return fmt.Errorf("write kubeconfig: %w", err)
	}

	return nil
}

// restConfig returns a client configuration without client-side rate limits: the server's
// own priority and fairness is what a test should meet.
func restConfig(server string, ca []byte, client keyPair) *rest.Config {
	return &rest.Config{
		Host:  server,
		QPS:   -1,
		Burst: -1,
		TLSClientConfig: rest.TLSClientConfig{
			CAData:   ca,
			CertData: client.cert,
			KeyData:  client.key,
		},
	}
}
