package apiserver

import (
	"crypto/subtle"
	"fmt"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	x509request "k8s.io/apiserver/pkg/authentication/request/x509"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/klog/v2"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/apiserver/chain"
)

const (
	// maxDirectConnections is how many direct connections may be open that have sent a request. A probe or a scraper has one.
	maxDirectConnections = 64
	// maxNewConnections is how many may be open over which no request has come yet. They hold little, and nobody knows whose they are:
	// kube-apiserver opens hundreds at the same time when as many watches begin, and shows its certificate with the first request.
	maxNewConnections = 512
	// maxDirectRequests is how many requests a direct connection may have at the same time.
	maxDirectRequests = 8
	// maxDirectBody is how long a body over a direct connection may be, and that is for /debug, which kube-apiserver passes nothing on to.
	maxDirectBody = 1 << 10
	// maxDirectHeaders is how many headers a request over a direct connection may have, and maxDirectHeaderBytes how long they may be.
	maxDirectHeaders, maxDirectHeaderBytes = 100, 16 << 10
	// directBytes is how much a direct connection may send until all of its requests are answered. The first request of
	// kube-apiserver has to fit, with the handshake and a header for each group of a user.
	directBytes = 128 << 10
	// directWait is how long a direct connection that has sent so much may wait, before it is closed.
	directWait = 10 * time.Second
	// closedTold is how often the log says that connections were closed for others.
	closedTold = time.Minute
)

// boundDirectConnections bounds what direct connections hold: those whose clients have not shown the front proxy's certificate.
//
// The library reads bodies of HTTP/2, 25 MiB for each connection, while it still asks the hub about a token: 400 connections took 934
// MiB. Only kube-apiserver has to send bodies, and it shows its certificate in the handshake. So a request with a body over a direct
// connection is refused before anything is asked, the number of such connections and requests is bounded, and a connection is not read
// on while it has sent much that was not answered. Probes and scrapers send a few hundred bytes.
//
// The library makes the TLS configuration and the http.Server itself. What a client has shown is known here with its first request.
func boundDirectConnections(config *genericapiserver.Config) {
	headers := config.Authentication.RequestHeaderConfig
	if headers == nil || config.SecureServing == nil {
		return
	}

	accepted := authenticator.RequestFunc(func(*http.Request) (*authenticator.Response, bool, error) {
		return &authenticator.Response{}, true, nil
	})

	d := &directConnections{
		verifier: x509request.NewDynamicCAVerifier(headers.CAContentProvider.VerifyOptions, accepted, headers.AllowedClientNames),
		current: func() (verifiedWith, bool) {
			options, loaded := headers.CAContentProvider.VerifyOptions()

			return verifiedWith{options.Roots, headers.AllowedClientNames.Value()}, loaded
		},
	}
	if loopback := config.LoopbackClientConfig; loopback != nil && loopback.BearerToken != "" {
		d.loopback = "Bearer " + loopback.BearerToken
	}

	config.SecureServing.Listener = directListener{config.SecureServing.Listener, d}

	chain.Outside(config, d.wrap)
}

// directConnections are those that are open, in the order in which they came.
type directConnections struct {
	verifier authenticator.Request
	// current is what certificates are verified with; false if that is not loaded yet.
	current func() (verifiedWith, bool)
	// loopback is the Authorization of this process's own requests, which come over a connection without a certificate.
	loopback string

	mu     sync.Mutex
	open   []*connection
	closed int // for others, since the log said so
	told   time.Time
}

// wrap refuses what a direct connection may not send.
func (d *directConnections) wrap(next http.Handler, c *genericapiserver.Config) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		address, _ := r.Context().Value(http.LocalAddrContextKey).(connectionAddr)

		connection := address.connection
		if connection == nil || d.trusts(connection, r) {
			next.ServeHTTP(w, r)

			return
		}

		d.asks(connection)

		answered, allowed := connection.begin()
		defer answered()

		if err := refusal(r, allowed); err != nil {
			responsewriters.ErrorNegotiated(err, c.Serializer, v1alpha1.SchemeGroupVersion, w, r)

			return
		}

		next.ServeHTTP(w, r)
	})
}

// refusal is why a request over a direct connection goes no further; nil if it does.
func refusal(r *http.Request, allowed bool) error {
	short := r.ContentLength >= 0 && r.ContentLength <= maxDirectBody && strings.HasPrefix(r.URL.Path, "/debug/")
	if r.ContentLength != 0 && !short {
		return apierrors.NewUnauthorized("omni-apiserver takes bodies from kube-apiserver only, which shows a certificate of the front proxy: " +
			"send this to the cluster's own address")
	}

	if !allowed {
		return apierrors.NewTooManyRequests(fmt.Sprintf("a connection past kube-apiserver may have %d requests at the same time: try again", maxDirectRequests), 1)
	}

	count, bytes := 0, len(r.RequestURI)
	for name, values := range r.Header {
		count += len(values)
		for _, value := range values {
			bytes += len(name) + len(value)
		}
	}

	if count > maxDirectHeaders || bytes > maxDirectHeaderBytes {
		return apierrors.NewRequestEntityTooLargeError(
			fmt.Sprintf("a request past kube-apiserver may have %d headers of %d bytes in all", maxDirectHeaders, maxDirectHeaderBytes))
	}

	return nil
}

// trusts reports whether the client of a connection is the front proxy, or this process. A certificate is verified again when the
// authorities or the names that are allowed have changed.
func (d *directConnections) trusts(connection *connection, r *http.Request) bool {
	if connection.own(d.loopback != "" && subtle.ConstantTimeCompare([]byte(r.Header.Get("Authorization")), []byte(d.loopback)) == 1) {
		d.remove(connection)

		return true
	}

	with, loaded := d.current()
	if !loaded || r.TLS == nil || len(r.TLS.PeerCertificates) == 0 {
		return false
	}

	if connection.verified(with) {
		return true
	}

	_, verified, err := d.verifier.AuthenticateRequest(r)
	if err != nil || !verified {
		if connection.distrust() {
			d.add(connection)
		}

		return false
	}

	connection.trust(with)
	d.remove(connection)

	return true
}

// add counts a direct connection.
func (d *directConnections) add(added *connection) {
	d.mu.Lock()

	if added.isClosed() { // meanwhile; nobody would remove it
		d.mu.Unlock()

		return
	}

	d.open = append(d.open, added)
	asked := added.asked
	d.mu.Unlock()

	d.closeExcess(asked)
}

// asks remembers that a direct connection has sent a request.
func (d *directConnections) asks(connection *connection) {
	d.mu.Lock()
	before := connection.asked
	connection.asked = true
	d.mu.Unlock()

	if !before {
		d.closeExcess(true)
	}
}

// closeExcess closes the oldest connection of the address that has most, if there are too many that have sent a request, or
// too many that have not: one attacker does not keep others away, and kube-apiserver needs a moment only.
func (d *directConnections) closeExcess(asked bool) {
	limit := maxNewConnections
	if asked {
		limit = maxDirectConnections
	}

	d.mu.Lock()

	var alike []*connection

	for _, each := range d.open {
		if each.asked == asked {
			alike = append(alike, each)
		}
	}

	var excess *connection
	if len(alike) > limit {
		excess = oldestOfMost(alike)
		d.closed++
	}

	tell, closed := excess != nil && time.Since(d.told) > closedTold, d.closed
	if tell {
		d.told, d.closed = time.Now(), 0
	}
	d.mu.Unlock()

	if tell {
		klog.Background().Info("Closed connections whose clients have not shown a certificate of the front proxy, because there are too many",
			"address", excess.source, "closed", closed, "max", limit)
	}

	if excess != nil {
		_ = excess.Close() // its client has gone, or goes now
	}
}

// oldestOfMost returns the oldest connection of the address that has most. Between equals, the older one.
func oldestOfMost(open []*connection) *connection {
	count := map[string]int{}
	for _, each := range open {
		count[each.source]++
	}

	most := open[0]
	for _, each := range open {
		if count[each.source] > count[most.source] {
			most = each
		}
	}

	return most
}

// remove no longer counts a connection.
func (d *directConnections) remove(removed *connection) {
	d.mu.Lock()
	defer d.mu.Unlock()

	if i := slices.Index(d.open, removed); i >= 0 {
		d.open = slices.Delete(d.open, i, i+1)
	}
}

// directListener counts the connections that it accepts.
type directListener struct {
	net.Listener

	connections *directConnections
}

// Accept implements net.Listener.
func (l directListener) Accept() (net.Conn, error) {
	accepted, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}

	source, _, err := net.SplitHostPort(accepted.RemoteAddr().String())
	if err != nil {
		source = accepted.RemoteAddr().String()
	}

	c := &connection{Conn: accepted, all: l.connections, source: source, changed: make(chan struct{})}
	l.connections.add(c)

	return c, nil
}

// connection is one that was accepted, below TLS. It is direct until its client has shown who it is.
type connection struct {
	net.Conn

	all    *directConnections
	source string // the client's address
	asked  bool   // a request has come over it, which did not show the front proxy's certificate; all.mu guards it

	mu       sync.Mutex
	isOwn    bool          // of this process
	isProxy  bool          // of the front proxy
	with     verifiedWith  // by which authorities it was verified
	requests int           // over a direct connection that are not answered
	received int           // bytes since there was no such request
	deadline time.Time     // of Read
	closed   bool          // by this side
	changed  chan struct{} // closed when one of these changes
}

// connectionAddr is the local address of a connection. net/http puts it into the context of each request.
type connectionAddr struct {
	net.Addr

	connection *connection
}

// LocalAddr implements net.Conn.
func (c *connection) LocalAddr() net.Addr { return connectionAddr{c.Conn.LocalAddr(), c} }

// Read implements net.Conn.
func (c *connection) Read(into []byte) (int, error) {
	room, err := c.room(len(into))
	if err != nil {
		return 0, err
	}

	read, err := c.Conn.Read(into[:room])

	c.mu.Lock()
	defer c.mu.Unlock()

	if !c.isProxy && !c.isOwn {
		c.received += read
	}

	return read, err
}

// room waits until the connection may be read on, and returns how much of it.
func (c *connection) room(wanted int) (int, error) {
	var waiting <-chan time.Time // most never wait

	for {
		c.mu.Lock()
		room, changed, ended := directBytes-c.received, c.changed, c.closed || !c.deadline.IsZero() && time.Now().After(c.deadline)

		if c.isOwn || c.isProxy {
			room = wanted
		}
		c.mu.Unlock()

		if room > 0 || ended {
			return min(max(room, 1), wanted), nil // a connection that has ended says so itself
		}

		if waiting == nil {
			waiting = time.After(directWait)
		}

		select {
		case <-changed:
		case <-waiting:
			return 0, fmt.Errorf("%d bytes were sent past kube-apiserver that no answer followed: %w", directBytes, os.ErrDeadlineExceeded)
		}
	}
}

// change changes what reading waits for.
func (c *connection) change(change func()) {
	c.mu.Lock()
	defer c.mu.Unlock()

	change()
	close(c.changed)
	c.changed = make(chan struct{})
}

// SetReadDeadline implements net.Conn. net/http ends a read with one that has passed.
func (c *connection) SetReadDeadline(deadline time.Time) error {
	c.change(func() { c.deadline = deadline })

	return c.Conn.SetReadDeadline(deadline)
}

// SetDeadline implements net.Conn.
func (c *connection) SetDeadline(deadline time.Time) error {
	c.change(func() { c.deadline = deadline })

	return c.Conn.SetDeadline(deadline)
}

// Close implements net.Conn.
func (c *connection) Close() error {
	c.change(func() { c.closed = true })
	c.all.remove(c)

	return c.Conn.Close()
}

func (c *connection) isClosed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()

	return c.closed
}

// begin counts a request over a direct connection, and reports whether it is allowed. Its answer lets the connection be read on.
func (c *connection) begin() (answered func(), allowed bool) {
	c.mu.Lock()
	defer c.mu.Unlock()

	c.requests++

	return func() {
		c.change(func() {
			if c.requests--; c.requests == 0 {
				c.received = 0
			}
		})
	}, c.requests <= maxDirectRequests
}

// own reports whether the connection is this process's own, and remembers it.
func (c *connection) own(shown bool) bool {
	if shown {
		c.change(func() { c.isOwn = true })
	}

	c.mu.Lock()
	defer c.mu.Unlock()

	return c.isOwn
}

// verified reports whether the front proxy's certificate was verified with these authorities.
func (c *connection) verified(with verifiedWith) bool {
	c.mu.Lock()
	defer c.mu.Unlock()

	return c.isProxy && c.with.authorities == with.authorities && slices.Equal(c.with.allowed, with.allowed)
}

// trust remembers that the certificate was verified.
func (c *connection) trust(with verifiedWith) {
	c.change(func() { c.isProxy, c.with, c.received = true, with, 0 })
}

// distrust reports whether the connection had been trusted, and is open.
func (c *connection) distrust() (before bool) {
	c.change(func() { before, c.isProxy = c.isProxy && !c.closed, false })

	return before
}
