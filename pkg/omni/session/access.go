package session

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"omni.texashpc.com/omni-cluster-operator/pkg/foreign"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
)

// Access is how users reach the clusters of an Omni. Nothing in it is secret.
type Access struct {
	// KubernetesProxyURL is the server in every kubeconfig of this Omni.
	KubernetesProxyURL string
	// OIDCIssuerURL is the identity provider where users log in.
	OIDCIssuerURL string
	// Account is the name of the Omni account: the contexts of its kubeconfigs begin with it.
	Account string
}

// errAccess is the error for an unexpected kubeconfig for users.
var errAccess = errors.New("the kubeconfig for people is not as expected")

// accessCluster is the cluster whose kubeconfig Access requests. Omni issues a kubeconfig for users whether the cluster
// exists or not; authorization happens on use.
const accessCluster = "access"

// accessTerm is how long Access returns a success from memory: an Omni that restarts with another proxy or login keeps its
// sessions. One call in an hour is nothing beside the checks of a connection, which has one every five minutes, and such a
// move takes longer to be known to people.
const accessTerm = time.Hour

// accessPause is how long Access returns a failure from memory: nothing is urgent about it, and Omni need not be called
// in every reconcile.
const accessPause = 10 * time.Minute

// accessAnswer is the stored result of a request for Access.
type accessAnswer struct {
	access Access
	err    error
	until  time.Time
}

// maxURL is the longest accepted URL, in bytes.
const maxURL = 2048

// accessLimits bound the decoded kubeconfig. Omni's has some 30 values in 1 KiB.
//
//nolint:gochecknoglobals // a constant
var accessLimits = foreign.Limits{Bytes: 64 << 10, Depth: 16, Nodes: 1000, Expanded: 128 << 10}

// accountName matches valid account names: the name becomes part of names in kubeconfigs.
var accountName = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._-]{0,251}[A-Za-z0-9])?$`)

// Access returns how users reach Omni's clusters. The session keeps a success for accessTerm and a failure for accessPause, also
// that Omni did not answer within the caller's time; but not that of a caller that was stopped or had no time when it came, which
// says nothing of Omni. The call is bounded by CallTimeout and needs the role Reader.
//
// Errors: those of the call, see Classify; or errAccess, which names the unexpected part of the answer.
func (s *Session) Access(ctx context.Context) (Access, error) {
	if s.client == nil {
		return Access{}, omni.ErrClosed
	}

	if known := s.access.Load(); known != nil && time.Now().Before(known.until) {
		return known.access, known.err
	}

	if err := ctx.Err(); err != nil {
		return Access{}, fmt.Errorf("ask for a kubeconfig for people: %w", err)
	}

	access, err := s.askForAccess(ctx)

	switch {
	case err == nil:
		s.access.Store(&accessAnswer{access: access, until: time.Now().Add(accessTerm)})
	case !errors.Is(ctx.Err(), context.Canceled):
		s.access.Store(&accessAnswer{err: err, until: time.Now().Add(accessPause)})
	}

	return access, err
}

func (s *Session) askForAccess(ctx context.Context) (Access, error) {
	ctx, cancel := context.WithTimeout(ctx, omni.CallTimeout)
	defer cancel()

	kubeconfig, err := s.client.library.Management().WithCluster(accessCluster).Kubeconfig(ctx)
	if err != nil {
		return Access{}, fmt.Errorf("ask for a kubeconfig for people: %w", err)
	}

	return readAccess(ctx, kubeconfig)
}

// readAccess reads from a kubeconfig for users the values that are the same for all clusters. It ignores everything
// else.
func readAccess(ctx context.Context, kubeconfig []byte) (Access, error) {
	if err := foreign.Check(ctx, kubeconfig, accessLimits); err != nil {
		return Access{}, fmt.Errorf("%w: it %w", errAccess, err)
	}

	config, err := clientcmd.Load(kubeconfig)
	if err != nil {
		return Access{}, fmt.Errorf("%w: it cannot be read", errAccess)
	}

	access := Access{}
	name := config.CurrentContext

	if current := config.Contexts[name]; current != nil {
		if cluster := config.Clusters[current.Cluster]; cluster != nil {
			access.KubernetesProxyURL = cluster.Server
		}

		access.OIDCIssuerURL = issuerOf(config.AuthInfos[current.AuthInfo])
	}

	account, found := strings.CutSuffix(name, "-"+accessCluster)
	if !found || !accountName.MatchString(account) {
		return Access{}, fmt.Errorf("%w: its context does not name the account", errAccess)
	}

	access.Account = account

	for field, text := range map[string]string{"server": access.KubernetesProxyURL, "issuer": access.OIDCIssuerURL} {
		if !isWebURL(text) {
			return Access{}, fmt.Errorf("%w: its %s is no http or https URL", errAccess, field)
		}
	}

	return access, nil
}

// issuerOf returns the identity provider in a user's exec arguments; empty if there is none.
func issuerOf(user *clientcmdapi.AuthInfo) string {
	if user == nil || user.Exec == nil {
		return ""
	}

	for _, arg := range user.Exec.Args {
		if issuer, found := strings.CutPrefix(arg, "--oidc-issuer-url="); found {
			return issuer
		}
	}

	return ""
}

// isWebURL reports whether a text is an http or https URL without credentials.
func isWebURL(text string) bool {
	parsed, err := url.Parse(text)

	return err == nil && len(text) <= maxURL && parsed.Host != "" && parsed.User == nil && (parsed.Scheme == "https" || parsed.Scheme == "http")
}
