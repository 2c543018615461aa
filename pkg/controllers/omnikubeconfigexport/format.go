package omnikubeconfigexport

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/foreign"
)

// Keys of the Secrets.
const (
	// fluxKey is the key that Flux reads when a kubeConfig.secretRef names none.
	fluxKey = "value"

	argoName       = "name"
	argoServer     = "server"
	argoConfig     = "config"
	argoLabel      = "argocd.argoproj.io/secret-type"
	argoLabelValue = "cluster"
)

// errKubeconfig intentionally has nothing of the content.
var errKubeconfig = errors.New("this is not a kubeconfig with one server and one bearer token")

// access is the server and the credential of a cluster.
type access struct {
	server string
	token  string
}

// shape is the form of access in a Secret.
type shape struct {
	format    v1alpha1.KubeconfigFormat
	key       string
	cluster   string // the cluster's name in Omni
	user      string
	namespace string // of the context; may be empty
	ca        []byte // PEM; may be empty
}

// mainKey returns the key that status and hash describe.
func (s shape) mainKey() string {
	if s.format == v1alpha1.FormatArgoCD {
		return argoConfig
	}

	return s.key
}

// writes reports whether a Secret of this shape has the key.
func (s shape) writes(key string) bool {
	if s.format == v1alpha1.FormatArgoCD {
		return slices.Contains([]string{argoName, argoServer, argoConfig}, key)
	}

	return key == s.key || key == fluxKey && s.key == v1alpha1.DefaultKubeconfigKey
}

// dataOf is render, except that an existing kubeconfig with the same meaning stays, byte by byte.
func (s shape) dataOf(to access, has map[string][]byte) (map[string][]byte, error) {
	data, err := s.render(to)
	if err != nil || s.format == v1alpha1.FormatArgoCD {
		return data, err
	}

	if same, err := s.read(has); err == nil && same == to {
		for key := range data {
			data[key] = has[s.key]
		}
	}

	return data, nil
}

// kubeconfigLimits bound a kubeconfig with one context, whose certificates take some KiB. A kubeconfig in a Secret may
// come from anybody.
//
//nolint:gochecknoglobals // a constant
var kubeconfigLimits = foreign.Limits{Bytes: 256 << 10, Depth: 32, Nodes: 2000, Expanded: 256 << 10}

// loadKubeconfig decodes a kubeconfig within kubeconfigLimits.
func loadKubeconfig(raw []byte) (*clientcmdapi.Config, error) {
	// Other readers are soon done, so this waits without a deadline.
	if foreign.Check(context.Background(), raw, kubeconfigLimits) != nil {
		return nil, errKubeconfig
	}

	config, err := clientcmd.Load(raw)
	if err != nil {
		return nil, errKubeconfig
	}

	return config, nil
}

// readKubeconfig returns the server and the token of a kubeconfig, and ignores everything else.
func readKubeconfig(raw []byte) (access, error) {
	config, err := loadKubeconfig(raw)
	if err != nil {
		return access{}, err
	}

	current := config.Contexts[config.CurrentContext]
	if current == nil {
		return access{}, errKubeconfig
	}

	cluster, user := config.Clusters[current.Cluster], config.AuthInfos[current.AuthInfo]
	if cluster == nil || user == nil || user.Token == "" {
		return access{}, errKubeconfig
	}

	server, err := url.Parse(cluster.Server)
	if err != nil || server.Host == "" {
		return access{}, errKubeconfig
	}

	return access{server: cluster.Server, token: user.Token}, nil
}

// isPlain reports whether a kubeconfig has nothing but what render would write: one server, one bearer token, the same
// namespace. A kubeconfig with a program to run, a file to read, or TLS without verification is not plain.
func (s shape) isPlain(raw []byte) bool {
	config, err := loadKubeconfig(raw)
	if err != nil || len(config.Clusters) != 1 || len(config.AuthInfos) != 1 || len(config.Contexts) != 1 {
		return false
	}

	current := config.Contexts[config.CurrentContext]
	if current == nil || config.Clusters[current.Cluster] == nil || config.AuthInfos[current.AuthInfo] == nil {
		return false
	}

	cluster, user := config.Clusters[current.Cluster], config.AuthInfos[current.AuthInfo]
	plainCluster := &clientcmdapi.Cluster{Server: cluster.Server, CertificateAuthorityData: cluster.CertificateAuthorityData}
	plainUser := &clientcmdapi.AuthInfo{Token: user.Token}

	// Omni's own kubeconfigs name the default namespace, which is the same as none.
	if cmp.Or(current.Namespace, metav1.NamespaceDefault) != cmp.Or(s.namespace, metav1.NamespaceDefault) {
		return false
	}

	return apiequality.Semantic.DeepEqual(cluster, plainCluster) && apiequality.Semantic.DeepEqual(user, plainUser)
}

// render returns the data of a Secret. The same input gives the same bytes.
func (s shape) render(to access) (map[string][]byte, error) {
	if s.format == v1alpha1.FormatArgoCD {
		return s.renderArgo(to)
	}

	name := s.user + "@" + s.cluster

	written, err := clientcmd.Write(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{s.cluster: {Server: to.server, CertificateAuthorityData: s.ca}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{name: {Token: to.token}},
		Contexts:       map[string]*clientcmdapi.Context{name: {Cluster: s.cluster, AuthInfo: name, Namespace: s.namespace}},
		CurrentContext: name,
	})
	if err != nil {
		return nil, errKubeconfig
	}

	data := map[string][]byte{s.key: written}
	if s.key == v1alpha1.DefaultKubeconfigKey {
		data[fluxKey] = written
	}

	return data, nil
}

// argoClusterConfig is the JSON under "config" of an Argo CD cluster Secret.
type argoClusterConfig struct {
	BearerToken     string         `json:"bearerToken"`
	TLSClientConfig argoTLSOptions `json:"tlsClientConfig"`
}

type argoTLSOptions struct {
	Insecure bool   `json:"insecure"`
	CAData   []byte `json:"caData,omitempty"` // base64 in JSON, as Argo CD wants it
}

func (s shape) renderArgo(to access) (map[string][]byte, error) {
	server, err := url.Parse(to.server)
	if err != nil {
		return nil, errKubeconfig
	}

	// Omni's proxy has one URL for all clusters, and Argo CD identifies clusters by it. Clients drop the query.
	server.RawQuery = url.Values{"cluster": {s.cluster}}.Encode()

	config, err := json.Marshal(argoClusterConfig{BearerToken: to.token, TLSClientConfig: argoTLSOptions{CAData: s.ca}}) //nolint:gosec // a Secret's content
	if err != nil {
		return nil, errKubeconfig
	}

	return map[string][]byte{argoName: []byte(s.cluster), argoServer: []byte(server.String()), argoConfig: config}, nil
}

// read is the reverse of render.
func (s shape) read(data map[string][]byte) (access, error) {
	if s.format != v1alpha1.FormatArgoCD {
		return readKubeconfig(data[s.key])
	}

	var config argoClusterConfig
	if json.Unmarshal(data[argoConfig], &config) != nil || config.BearerToken == "" {
		return access{}, errKubeconfig
	}

	server, err := url.Parse(string(data[argoServer]))
	if err != nil || server.Host == "" {
		return access{}, errKubeconfig
	}

	server.RawQuery = ""

	return access{server: server.String(), token: config.BearerToken}, nil
}

// hash returns the sha256 of the kubeconfig: of the file itself, or for Argo CD of its three values.
func (s shape) hash(data map[string][]byte) string {
	if s.format != v1alpha1.FormatArgoCD {
		return hexSum(data[s.key])
	}

	return hexSum(fmt.Appendf(nil, "%q %q %q", data[argoName], data[argoServer], data[argoConfig]))
}

func hexSum(content []byte) string {
	sum := sha256.Sum256(content)

	return hex.EncodeToString(sum[:])
}

// ingredients has everything that a kubeconfig is made from. If any of it changes, a new one is needed.
type ingredients struct {
	User, ClusterName, ClusterID, Endpoint, Key, ContextNamespace string
	Groups                                                        []string
	TTL                                                           string
	Format                                                        v1alpha1.KubeconfigFormat
	CA                                                            []byte
}

// ttl returns how long a new token is valid.
func (i ingredients) ttl() time.Duration { return v1alpha1.Duration(i.TTL).OrDefault(0) }

// hash returns a hash of the ingredients. The order of the groups does not matter.
func (i ingredients) hash() string {
	i.Groups = slices.Sorted(slices.Values(i.Groups))

	encoded, err := json.Marshal(i)
	if err != nil {
		return "" // strings and bytes always encode
	}

	return hexSum(encoded)
}

// errToken intentionally has nothing of the token.
var errToken = errors.New("the kubeconfig holds no token whose content can be read")

// claims are the content of a token from Omni. The signature is not verified: the token came over the connection to
// Omni, or from a Secret with a correct hash, and Omni's proxy decides whether to accept it.
type claims struct {
	User        string   `json:"sub"`
	Groups      []string `json:"groups"`
	Cluster     string   `json:"cluster"`
	ClusterUUID string   `json:"cluster_uuid"`
	Expires     int64    `json:"exp"`
	Issued      int64    `json:"iat"`
}

// readToken parses a token. It refuses a token that does not expire.
func readToken(token string) (claims, error) {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return claims{}, errToken
	}

	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return claims{}, errToken
	}

	var found claims
	// The error could quote the content.
	if json.Unmarshal(payload, &found) != nil || found.Expires <= 0 {
		return claims{}, errToken
	}

	return found, nil
}

// expires returns when the token ends.
func (c claims) expires() time.Time { return time.Unix(c.Expires, 0).UTC() }

// issued returns when the token was issued; zero if it does not say.
func (c claims) issued() time.Time {
	if c.Issued <= 0 {
		return time.Time{}
	}

	return time.Unix(c.Issued, 0).UTC()
}
