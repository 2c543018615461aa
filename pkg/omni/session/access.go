package session

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"omni.texashpc.com/omni-cluster-operator/pkg/foreign"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/bounds"
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

// callRules applies a deadline and the rate limit to every call of one connection, measures it, and reports its
// outcome to the liveness check.
type callRules struct {
	limiter   *rate.Limiter
	observer  RequestObserver
	throttled func(time.Duration)
	liveness  *liveness
	refusals  *keyRefusals
}

func newCallRules(config Config, liveness *liveness) *callRules {
	limits := config.Limits.WithDefaults()
	r := &callRules{
		limiter: rate.NewLimiter(rate.Limit(limits.QPS), limits.Burst), observer: config.Observer, throttled: config.Throttled, liveness: liveness,
		refusals: newKeyRefusals(nil),
	}

	if r.observer == nil {
		r.observer = func(string, string, time.Duration) {}
	}

	if r.throttled == nil {
		r.throttled = func(time.Duration) {}
	}

	return r
}

// probing marks a call of the liveness probe itself, which bypasses the rate limit and the liveness check.
type probing struct{}

func (r *callRules) observe(ctx context.Context, method string, started time.Time, err error) {
	r.refusals.note(ctx, err)
	r.observer(method, knownCode(err).String(), time.Since(started))
}

// knownCode returns the gRPC code of an error. An Omni may send any number as its code: those without a meaning are one,
// because each code that is observed is kept.
func knownCode(err error) codes.Code {
	code := status.Code(err)
	if code > codes.Unauthenticated {
		return codes.Unknown
	}

	return code
}

func (r *callRules) unary(
	ctx context.Context, method string, request, reply any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, options ...grpc.CallOption,
) error {
	ctx, cancel := context.WithTimeout(ctx, omni.CallTimeout)
	defer cancel()

	end := func(err error) error { return err }

	if ctx.Value(probing{}) == nil {
		if err := r.waitForRate(ctx); err != nil {
			return err
		}

		var err error
		if ctx, end, err = r.liveness.begin(ctx); err != nil {
			return err
		}
	}

	started, guard := time.Now(), guardOf(method)
	err := guard.explain(invoke(ctx, method, request, reply, conn, guard.options(options)...))
	r.observe(ctx, method, started, err)

	return end(err)
}

func (r *callRules) stream(
	ctx context.Context, description *grpc.StreamDesc, conn *grpc.ClientConn, method string, open grpc.Streamer, options ...grpc.CallOption,
) (grpc.ClientStream, error) {
	ctx, cancel := streamContext(ctx, method)

	if err := r.waitForRate(ctx); err != nil {
		defer cancel()

		return nil, err
	}

	answered, stopExpecting, err := r.liveness.expect()
	if err != nil {
		defer cancel()

		return nil, err
	}

	measured := &measuredStream{answered: answered, guard: guardOf(method)}
	started := time.Now()

	if watch := bounds.WatchOf(ctx); watch != nil {
		measured.guard = guardOfWatch(watch)
	}

	stream, err := open(ctx, description, conn, method, measured.guard.options(options)...)
	if err != nil {
		cancel()
		stopExpecting()
		r.observe(ctx, method, started, err)

		return nil, err
	}

	var once sync.Once

	measured.ClientStream = stream
	measured.ended = func(err error) {
		once.Do(func() {
			r.observe(ctx, method, started, err)
			stopExpecting()
			cancel()
		})
	}

	return measured, nil
}

// waitForRate waits for the rate limiter, but only for a short time: a caller that would wait longer gets an error and
// retries later, so that it holds no worker.
func (r *callRules) waitForRate(ctx context.Context) error {
	asked := time.Now()

	waiting, stop := context.WithTimeout(ctx, bounds.MaxThrottle)
	defer stop()

	err := r.limiter.Wait(waiting)

	// A shorter time is the overhead of the limiter.
	if waited := time.Since(asked); waited > time.Millisecond {
		r.throttled(waited)
	}

	switch {
	case err == nil:
		return nil
	case errors.Is(ctx.Err(), context.Canceled):
		return status.Error(codes.Canceled, "canceled before it was sent")
	default:
		return status.Error(codes.ResourceExhausted, "not sent: too many calls to this Omni at once for the rate limit (--omni-qps, --omni-burst); it is tried again")
	}
}

// streamContext gives a List the deadline of a call; a Watch lives as long as its caller's context.
func streamContext(ctx context.Context, method string) (context.Context, context.CancelFunc) {
	if strings.HasSuffix(method, "/Watch") {
		return context.WithCancel(ctx)
	}

	return context.WithTimeout(ctx, omni.CallTimeout)
}

// measuredStream detects the end of a stream: the moment when its last message was received.
type measuredStream struct {
	grpc.ClientStream

	guard    *guard
	answered func()
	ended    func(error)
}

// RecvMsg implements grpc.ClientStream.
func (s *measuredStream) RecvMsg(message any) error {
	_ = s.guard.watch.Handle(0) // the message before has been handled; a watch that has ended gets no other

	err := s.guard.explain(s.ClientStream.RecvMsg(message))

	switch {
	case err == nil:
		s.answered()
	case errors.Is(err, io.EOF):
		s.ended(nil)
	default:
		s.ended(err)
	}

	return err
}
