package session

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/cosi-project/runtime/api/v1alpha1"
	"github.com/cosi-project/runtime/pkg/state"
	cosiclient "github.com/cosi-project/runtime/pkg/state/protobuf/client"
	omniclient "github.com/siderolabs/omni/client/pkg/client"
	omnires "github.com/siderolabs/omni/client/pkg/omni/resources/omni"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"omni.texashpc.com/omni-cluster-operator/pkg/foreign/dialguard"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/bounds"
	"omni.texashpc.com/omni-cluster-operator/pkg/words"
)

// Limits of one connection. The library adds a gRPC keepalive ping every minute (20 s until the connection counts as
// dead); this cannot be changed.
const (
	// CheckTimeout bounds connecting, authenticating and the first read in Dial.
	CheckTimeout = 15 * time.Second
	// maxReconnectDelay is the longest pause between two attempts to connect. Omni restarts in seconds, and an attempt
	// costs it next to nothing.
	maxReconnectDelay = 3 * time.Second
	// connectTimeout bounds one attempt to connect, including the TLS handshake.
	connectTimeout = 10 * time.Second
)

// probeID is the ID of a cluster that cannot exist: Omni accepts it in reads, but no user may create it, because the
// system prefix is reserved.
const probeID = "omni.sidero.dev/no-such-cluster"

// RequestObserver is called for every finished call: with the full gRPC method ("/cosi.resource.State/Get"), the gRPC
// code's name ("OK", "NotFound") and the duration. A watch is reported when it ends. It must not block.
type RequestObserver func(method, code string, duration time.Duration)

// Config is the address of an Omni and the credentials for it.
type Config struct {
	// Endpoint is https://host[:port] (443 if absent), or http:// or grpc://
	// for plaintext (80 if absent).
	Endpoint string
	// Key is the parsed service account key.
	Key Key
	// CABundle is PEM: the connection trusts only these certificates. Empty: the system's roots.
	CABundle []byte
	// InsecureSkipTLSVerify accepts any certificate.
	InsecureSkipTLSVerify bool
	// Guard decides which addresses may be dialled. Nil: any, for endpoints that come from the command line. A proxy is not
	// checked.
	Guard *dialguard.Guard
	// Proxy replaces http.ProxyFromEnvironment, which chooses the proxy for the endpoint.
	Proxy func(*http.Request) (*url.URL, error)
	// Observer is called for every call; may be nil.
	Observer RequestObserver
	// Limits bounds the rate of calls; the zero value means the defaults.
	Limits bounds.Limits
	// Throttled is called with the time that a call waited for the rate limiter, even if the call was not sent; may be
	// nil, must not block.
	Throttled func(waited time.Duration)
	// LivenessChanged is called when the Omni fell silent, is back, or succeeds again after several failures: waiting callers may
	// retry. May be nil, must not block.
	LivenessChanged func()
	// Refused is called when Omni refused the key in a call that was not of Check, at most once in keyRefusalInterval: a
	// Check then shows whether the key has become invalid. May be nil, must not block.
	Refused func()
}

// Client is one authenticated connection to one Omni. It is safe for concurrent use. gRPC reconnects by itself; a
// Client never needs a redial unless its Config changes.
type Client struct {
	library  *omniclient.Client
	state    state.State
	config   Config
	liveness *liveness
	refusals *keyRefusals
	end      context.CancelFunc // of the liveness
}

// Dial connects, authenticates and reads once. A nil error means that the address, the certificate, the key and the
// role to read are valid.
//
// Errors: ErrEndpoint, ErrCABundle, ErrKeyExpired, ErrKeyNotYetValid, or those of Check.
func Dial(ctx context.Context, config Config) (*Client, error) {
	client, err := newClient(config)
	if err != nil {
		return nil, err
	}

	if err = client.Check(ctx); err != nil {
		return nil, errors.Join(err, client.Close())
	}

	return client, nil
}

func newClient(config Config) (*Client, error) {
	if config.Key.IsZero() {
		return nil, omni.ErrKeyEmpty
	}

	switch now := time.Now(); {
	case config.Key.Expired(now):
		return nil, omni.ErrKeyExpired
	case config.Key.NotYetValid(now):
		return nil, fmt.Errorf("%w: it is valid from %s, and here it is %s", omni.ErrKeyNotYetValid, words.Time(config.Key.BeginsAt()), words.Time(now))
	}

	target, err := omni.ParseOrigin(config.Endpoint)
	if err != nil {
		return nil, err
	}

	if err := checkAddress(target, config.Guard); err != nil {
		return nil, err
	}

	proxy, err := proxyOf(config.Proxy, target)
	if err != nil {
		return nil, err
	}

	var roots *x509.CertPool

	if len(config.CABundle) > 0 {
		roots = x509.NewCertPool()
		if !roots.AppendCertsFromPEM(config.CABundle) {
			return nil, omni.ErrCABundle
		}
	}

	omni.RegisterTypes()

	life, end := context.WithCancel(context.Background())
	client := &Client{config: config, liveness: newLiveness(life, config.LivenessChanged), refusals: newKeyRefusals(config.Refused), end: end}

	library, err := omniclient.New(libraryURL(target, roots != nil),
		omniclient.WithServiceAccount(config.Key.material()),
		omniclient.WithInsecureSkipTLSVerify(config.InsecureSkipTLSVerify),
		omniclient.WithGrpcOpts(client.dialOptions(target, roots, proxy)...),
	)
	if err != nil {
		end()

		return nil, fmt.Errorf("set up the Omni client: %w", err)
	}

	// The library's own adapter hides a lost watch for up to 15 minutes by retrying it; the mirror has to detect it at
	// once.
	adapter := cosiclient.NewAdapter(v1alpha1.NewStateClient(library.Omni()), cosiclient.WithDisableWatchRetry())

	client.library, client.state = library, state.WrapCore(adapter)
	client.liveness.start(func(ctx context.Context) error { return client.read(context.WithValue(ctx, probing{}, true)) })

	return client, nil
}

func (c *Client) dialOptions(target omni.Origin, roots *x509.CertPool, proxy *url.URL) []grpc.DialOption {
	calls := newCallRules(c.config, c.liveness)
	calls.refusals = c.refusals

	options := []grpc.DialOption{
		grpc.WithChainUnaryInterceptor(calls.unary),
		grpc.WithChainStreamInterceptor(calls.stream),
		grpc.WithMaxHeaderListSize(maxHeaders),
		grpc.WithStaticStreamWindowSize(bounds.StreamWindow),
		grpc.WithStaticConnWindowSize(connectionWindow),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: time.Second, Multiplier: 1.6, Jitter: 0.2, MaxDelay: maxReconnectDelay},
			MinConnectTimeout: connectTimeout,
		}),
	}

	dial := tcpDialer(c.config.Guard)
	if proxy != nil {
		dial, options = proxyDialer(proxy), append(options, unresolved(target))
	}

	if target.TLS && roots != nil {
		dial = tlsDialer(target, roots, dial)
	}

	connections := &network{dial: dial}
	c.liveness.closeConnections = connections.closeConnections

	return append(options, grpc.WithContextDialer(connections.connect))
}

// Check authenticates and reads one resource that does not exist. Classify sorts the error: Unreachable, TLS,
// Unauthenticated, KeyExpired, KeyInvalid, Denied (the role may not even read), Refused (the Omni's licence is not
// accepted) or Transient.
func (c *Client) Check(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithValue(ctx, checking{}, true), CheckTimeout)
	defer cancel()

	return c.read(ctx)
}

// Refusals returns how many calls, except those of Check, Omni refused because it does not accept the key.
func (c *Client) Refusals() uint64 {
	if c == nil {
		return 0
	}

	return c.refusals.count()
}

// read reads the resource that does not exist.
func (c *Client) read(ctx context.Context) error {
	_, err := c.state.Get(ctx, omnires.NewCluster(probeID).Metadata())
	if err == nil || state.IsNotFoundError(err) {
		return nil
	}

	return fmt.Errorf("read from Omni: %w", err)
}

// State returns Omni's resource API. Calls have deadlines and are rate limited; watches end with their context.
func (c *Client) State() state.State { return c.state }

// Endpoint returns the endpoint as configured.
func (c *Client) Endpoint() string { return c.config.Endpoint }

// ServiceAccount returns the name of the service account in use.
func (c *Client) ServiceAccount() string { return c.config.Key.Name() }

// Close ends every call and watch. It may be called more than once.
func (c *Client) Close() error {
	c.end()

	err := c.library.Close()
	if status.Code(err) == codes.Canceled { // closed before
		return nil
	}

	return err
}

// libraryURL returns the URL for the library's New. New has no option for a custom CA and sets its transport
// credentials after ours: with a custom CA, we pass a plaintext URL and do TLS in the dialer.
func libraryURL(target omni.Origin, ownRoots bool) string {
	if target.TLS && !ownRoots {
		return "https://" + target.Address()
	}

	return "grpc://" + target.Address()
}

// tlsDialer connects with TLS and the given roots. gRPC resolves the name before it calls the dialer, so the server
// name is set here.
func tlsDialer(target omni.Origin, roots *x509.CertPool, dial dialFunc) dialFunc {
	config := &tls.Config{
		RootCAs:    roots,
		ServerName: target.Host,
		NextProtos: []string{"h2"},
		MinVersion: tls.VersionTLS12,
	}

	return func(ctx context.Context, address string) (net.Conn, error) {
		ctx, cancel := context.WithTimeout(ctx, connectTimeout)
		defer cancel()

		connection, err := dial(ctx, address)
		if err != nil {
			return nil, err
		}

		secured := tls.Client(connection, config)
		if err := secured.HandshakeContext(ctx); err != nil {
			_ = connection.Close() // its error differs each time

			return nil, err
		}

		return secured, nil
	}
}

// noGRPC begins what gRPC says of an answer that is not one of gRPC. The HTTP status is behind it.
const noGRPC = "unexpected HTTP status code received from server: "

// notOfOmni returns the error of an answer that something before Omni gave, such as a gateway without a route. gRPC takes HTTP 401,
// 403 and 404 for answers of Omni to the call, and adds the page, which may differ each time.
func notOfOmni(err error) error {
	said, found := strings.CutPrefix(status.Convert(err).Message(), noGRPC)
	if !found {
		return err
	}

	answer, _, _ := strings.Cut(said, ";")

	return status.Errorf(codes.Unavailable, "what answers at the endpoint, such as a gateway before Omni, is not Omni's API: HTTP %s", answer)
}

// dialFunc opens one network connection.
type dialFunc func(ctx context.Context, address string) (net.Conn, error)

// network keeps the last network connections of a client, so that the client can close them: gRPC has no way to abandon
// one that only looks healthy.
type network struct {
	dial dialFunc

	mu   sync.Mutex
	open []net.Conn // the last few; closing a closed one does no harm
}

// keptConnections is how many connections network keeps. gRPC has one, or two while it replaces one.
const keptConnections = 4

func (n *network) connect(ctx context.Context, address string) (net.Conn, error) {
	connection, err := n.dial(ctx, address)
	if err != nil {
		return nil, err
	}

	n.mu.Lock()
	defer n.mu.Unlock()

	n.open = append(n.open, connection)
	if len(n.open) > keptConnections {
		n.open = slices.Clone(n.open[1:])
	}

	return connection, nil
}

// closeConnections closes the open connections; gRPC connects again by itself.
func (n *network) closeConnections() {
	n.mu.Lock()
	open := n.open
	n.open = nil
	n.mu.Unlock()

	for _, connection := range open {
		// Closing TLS may block on a write to a dead connection.
		_ = connection.SetDeadline(time.Now())

		go func() { _ = connection.Close() }()
	}
}

// dialer returns a dialer that connects where the guard allows it; without a guard, anywhere.
func dialer(guard *dialguard.Guard) *net.Dialer {
	if guard == nil {
		return &net.Dialer{Timeout: connectTimeout, KeepAlive: 30 * time.Second}
	}

	return guard.Dialer(connectTimeout)
}

func tcpDialer(guard *dialguard.Guard) dialFunc {
	return func(ctx context.Context, address string) (net.Conn, error) {
		return dialer(guard).DialContext(ctx, "tcp", address)
	}
}

// checkAddress refuses an endpoint whose host is an address that the guard refuses. Names are checked when they are
// dialled; behind a proxy of the environment, the proxy decides about names.
func checkAddress(target omni.Origin, guard *dialguard.Guard) error {
	if guard == nil {
		return nil
	}

	if err := guard.CheckHost(target.Host); err != nil {
		return fmt.Errorf("the endpoint %w", err)
	}

	return nil
}
