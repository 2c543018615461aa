package e2ecertmanager

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	aggregator "k8s.io/kube-aggregator/pkg/client/clientset_generated/clientset"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/generated/clientset/versioned"
)

const (
	readEvery    = 50 * time.Millisecond
	writeEvery   = 250 * time.Millisecond
	connectEvery = 100 * time.Millisecond
	// answerWithin bounds a request: the machine may be busy, and only an error is one.
	answerWithin = time.Minute
	// writesOf is the annotation that counts the writes.
	writesOf = "example.com/writes"
)

// load is the loop of requests through kube-apiserver, and of new connections to omni-apiserver that trust what the
// APIService trusts.
type load struct {
	client  versioned.Interface
	trusts  aggregator.Interface
	address string

	cancel context.CancelFunc
	wait   sync.WaitGroup

	mu     sync.Mutex
	counts counts
	errors []string // one of each kind
	served *x509.Certificate
	refuse error // of the latest connection
	acked  int   // the latest write that was acknowledged
}

// counts are of requests and connections.
type counts struct{ requests, failed, connections, refused int }

func (c counts) minus(other counts) counts {
	return counts{c.requests - other.requests, c.failed - other.failed, c.connections - other.connections, c.refused - other.refused}
}

func (l *load) start(ctx context.Context) {
	ctx, l.cancel = context.WithCancel(ctx)

	// Whoever stops in the middle of a request is no failure.
	loop := func(every time.Duration, once func(context.Context)) {
		l.wait.Go(func() {
			for ctx.Err() == nil {
				once(context.WithoutCancel(ctx))

				select {
				case <-ctx.Done():
				case <-time.After(every):
				}
			}
		})
	}

	loop(readEvery, l.read)
	loop(writeEvery, l.write)
	loop(connectEvery, l.connect)
}

func (l *load) stop() {
	l.cancel()
	l.wait.Wait()
}

func (l *load) read(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()

	_, err := l.client.OmniV1alpha1().OmniConnections(namespace).Get(ctx, connection, metav1.GetOptions{})
	l.count(err)
}

func (l *load) write(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()

	next := l.written() + 1
	patch := fmt.Appendf(nil, `{"metadata": {"annotations": {%q: "%d"}}}`, writesOf, next)

	_, err := l.client.OmniV1alpha1().OmniConnections(namespace).Patch(ctx, connection, types.MergePatchType, patch, metav1.PatchOptions{})
	l.count(err)

	if err == nil {
		l.mu.Lock()
		defer l.mu.Unlock()

		l.acked = next
	}
}

func (l *load) written() int {
	l.mu.Lock()
	defer l.mu.Unlock()

	return l.acked
}

func (l *load) count(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()

	l.counts.requests++

	if err != nil {
		l.counts.failed++
		l.note(err)
	}
}

// note keeps one error of each kind; the lock is held.
func (l *load) note(err error) {
	if text := err.Error(); len(l.errors) < 10 {
		for _, known := range l.errors {
			if known == text {
				return
			}
		}

		l.errors = append(l.errors, text)
	}
}

// connect does what kube-apiserver does when it makes a new connection.
func (l *load) connect(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()

	trusted, err := l.caBundle(ctx)
	if err != nil {
		l.count(err) // kube-apiserver itself: nothing here takes it away

		return
	}

	leaf, err := handshake(ctx, l.address)
	if err != nil {
		if ctx.Err() == nil {
			l.connected(nil, fmt.Errorf("connect: %w", err))
		}

		return
	}

	err = verify(leaf, trusted)
	if err != nil {
		// Trusted may be older than what is served: it counts if nothing that is trusted now fits.
		if now, again := l.caBundle(ctx); again == nil && string(now) != string(trusted) {
			err = verify(leaf, now)
		}
	}

	l.connected(leaf, err)
}

func (l *load) connected(leaf *x509.Certificate, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()

	l.served, l.refuse = leaf, err
	l.counts.connections++

	if err != nil {
		l.counts.refused++
		l.note(err)
	}
}

// caBundle is what kube-apiserver trusts.
func (l *load) caBundle(ctx context.Context) ([]byte, error) {
	service, err := l.trusts.ApiregistrationV1().APIServices().Get(ctx, registration, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}

	return service.Spec.CABundle, nil
}

// handshake returns the certificate that is served at an address, whoever signed it.
func handshake(ctx context.Context, address string) (*x509.Certificate, error) {
	dialer := &tls.Dialer{NetDialer: &net.Dialer{Timeout: answerWithin}, Config: &tls.Config{InsecureSkipVerify: true}}

	connection, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	defer connection.Close()

	served := connection.(*tls.Conn).ConnectionState().PeerCertificates
	if len(served) == 0 {
		return nil, errors.New("no certificate is served")
	}

	return served[0], nil
}

// verify accepts what kube-apiserver accepts.
func verify(leaf *x509.Certificate, trusted []byte) error {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(trusted)

	_, err := leaf.Verify(x509.VerifyOptions{Roots: roots, DNSName: "omni-apiserver." + namespace + ".svc"})

	return err
}

// now returns what was counted so far.
func (l *load) now() counts {
	l.mu.Lock()
	defer l.mu.Unlock()

	return l.counts
}

// takeErrors returns what was noted since the last time.
func (l *load) takeErrors() []string {
	l.mu.Lock()
	defer l.mu.Unlock()

	taken := l.errors
	l.errors = nil

	return taken
}

// latest is the certificate that the latest new connection saw, and why it was refused.
func (l *load) latest() (*x509.Certificate, error) {
	l.mu.Lock()
	defer l.mu.Unlock()

	return l.served, l.refuse
}

// load is of one object, whose connection to an Omni has no key: it is stored and looked at, and no more.
const connection = "load"

func loadObject() *v1alpha1.OmniConnection {
	return &v1alpha1.OmniConnection{
		ObjectMeta: metav1.ObjectMeta{Name: connection, Namespace: namespace},
		Spec: v1alpha1.OmniConnectionSpec{
			Endpoint: "https://omni.example.com",
			Auth:     v1alpha1.OmniConnectionAuth{ServiceAccountSecretRef: v1alpha1.SecretKeyReference{Name: "absent"}},
		},
	}
}
