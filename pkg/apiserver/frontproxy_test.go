package apiserver

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"math/big"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/authenticatorfactory"
	"k8s.io/apiserver/pkg/authentication/request/headerrequest"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	clocktesting "k8s.io/utils/clock/testing"
)

// authorities are those of the front proxy; nil are not loaded yet.
type authorities struct {
	dynamiccertificates.CAContentProvider

	pool *x509.CertPool
}

func (a *authorities) VerifyOptions() (x509.VerifyOptions, bool) {
	return x509.VerifyOptions{Roots: a.pool, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}, a.pool != nil
}

// proxyFixture counts how often a certificate is verified, and how often the library is asked who else it may be.
type proxyFixture struct {
	now         *clocktesting.FakePassiveClock
	authorities *authorities
	allowed     []string
	certificate *x509.Certificate
	verified    int
	all         int
	verify      authenticator.RequestFunc
	library     authenticator.Request // verifies as the library does, for certificates that are real
	proxy       *frontProxy
}

func newProxyFixture() *proxyFixture {
	f := &proxyFixture{
		now: clocktesting.NewFakePassiveClock(time.Now()), authorities: &authorities{pool: x509.NewCertPool()}, allowed: []string{"front-proxy-client"},
	}
	f.certificate = &x509.Certificate{NotAfter: f.now.Now().Add(time.Hour)}
	config := &authenticatorfactory.RequestHeaderConfig{
		UsernameHeaders: headerrequest.StaticStringSlice{"X-Remote-User"}, UIDHeaders: headerrequest.StaticStringSlice{"X-Remote-Uid"},
		GroupHeaders: headerrequest.StaticStringSlice{"X-Remote-Group"}, ExtraHeaderPrefixes: headerrequest.StaticStringSlice{"X-Remote-Extra-"},
		CAContentProvider: f.authorities, AllowedClientNames: headerrequest.StringSliceProviderFunc(func() []string { return f.allowed }),
	}
	f.proxy = newFrontProxy(authenticator.RequestFunc(func(*http.Request) (*authenticator.Response, bool, error) {
		f.all++

		return nil, false, nil
	}), config, f.now)
	f.library, f.verify = f.proxy.verifier, f.proxy.headers.AuthenticateRequest
	f.proxy.verifier = authenticator.RequestFunc(func(r *http.Request) (*authenticator.Response, bool, error) {
		f.verified++

		return f.verify(r)
	})

	return f
}

func (f *proxyFixture) request() *http.Request {
	return &http.Request{
		Header: http.Header{"X-Remote-User": {"alice"}, "X-Remote-Group": {"team"}, "X-Remote-Uid": {"1"}, "X-Remote-Extra-Scopes": {"all"}, "Accept": {"x"}},
		TLS:    &tls.ConnectionState{PeerCertificates: []*x509.Certificate{f.certificate}},
	}
}

func TestFrontProxyIsVerifiedOnce(t *testing.T) {
	f := newProxyFixture()

	for i := range 3 {
		request := f.request()

		response, ok, err := f.proxy.AuthenticateRequest(request)
		if err != nil || !ok {
			t.Fatalf("request %d: %v %v", i, ok, err)
		}

		want := &user.DefaultInfo{
			Name: "alice", UID: "1", Groups: []string{"team", user.AllAuthenticated}, Extra: map[string][]string{"scopes": {"all"}},
		}
		if diff := cmp.Diff(user.Info(want), response.User); diff != "" {
			t.Errorf("request %d: %s", i, diff)
		}

		if diff := cmp.Diff(http.Header{"Accept": {"x"}}, request.Header); diff != "" {
			t.Errorf("request %d: headers: %s", i, diff)
		}
	}

	if f.verified != 1 || f.all != 0 {
		t.Errorf("verified %d times; the library was asked %d times", f.verified, f.all)
	}
}

// Everything that may change the answer has the certificate verified again, or is left to the library.
func TestFrontProxyIsVerifiedAgain(t *testing.T) {
	for name, test := range map[string]struct {
		change   func(f *proxyFixture, next *http.Request)
		verified int
	}{
		"after ten seconds": {func(f *proxyFixture, _ *http.Request) { f.now.SetTime(f.now.Now().Add(verifiedFor + time.Millisecond)) }, 2},
		"other authorities": {func(f *proxyFixture, _ *http.Request) { f.authorities.pool = x509.NewCertPool() }, 2},
		"other names":       {func(f *proxyFixture, _ *http.Request) { f.allowed = []string{"another"} }, 2},
		"another certificate": {func(f *proxyFixture, next *http.Request) {
			next.TLS.PeerCertificates[0] = &x509.Certificate{NotAfter: f.certificate.NotAfter}
		}, 2},
		"no authorities":              {func(f *proxyFixture, _ *http.Request) { f.authorities.pool = nil }, 1},
		"no certificate":              {func(_ *proxyFixture, next *http.Request) { next.TLS.PeerCertificates = nil }, 1},
		"no TLS":                      {func(_ *proxyFixture, next *http.Request) { next.TLS = nil }, 1},
		"no user in the headers":      {func(_ *proxyFixture, next *http.Request) { next.Header.Del("X-Remote-User") }, 1},
		"an empty user in the header": {func(_ *proxyFixture, next *http.Request) { next.Header.Set("X-Remote-User", "") }, 1},
	} {
		t.Run(name, func(t *testing.T) {
			f := newProxyFixture()

			if _, ok, err := f.proxy.AuthenticateRequest(f.request()); !ok || err != nil {
				t.Fatal(ok, err)
			}

			next := f.request()
			test.change(f, next)

			f.verify = func(*http.Request) (*authenticator.Response, bool, error) {
				return nil, false, errors.New("unknown authority")
			}

			if _, ok, err := f.proxy.AuthenticateRequest(next); ok || err != nil || f.verified != test.verified || f.all != 1 {
				t.Errorf("authenticated %v, %v; verified %d times, want %d; the library was asked %d times", ok, err, f.verified, test.verified, f.all)
			}
		})
	}
}

// A certificate that was not verified is never remembered, whatever else the library believes of its requests.
func TestFrontProxyThatIsNone(t *testing.T) {
	f := newProxyFixture()
	f.verify = func(*http.Request) (*authenticator.Response, bool, error) {
		return nil, false, errors.New("unknown authority")
	}
	f.proxy.all = authenticator.RequestFunc(func(r *http.Request) (*authenticator.Response, bool, error) {
		f.all++
		r.Header.Del("X-Remote-User")

		return &authenticator.Response{User: &user.DefaultInfo{Name: "bob"}}, true, nil // by a token
	})

	for range 2 {
		if response, ok, err := f.proxy.AuthenticateRequest(f.request()); err != nil || !ok || response.User.GetName() != "bob" {
			t.Errorf("%v, %v, %v", response, ok, err)
		}
	}

	if f.verified != 2 || f.all != 2 {
		t.Errorf("verified %d times; the library was asked %d times", f.verified, f.all)
	}
}

// A certificate that ends within the ten seconds is verified again when it has.
func TestFrontProxyWhoseCertificateEnds(t *testing.T) {
	f := newProxyFixture()
	f.certificate.NotAfter = f.now.Now().Add(time.Second)

	for range 2 {
		if _, ok, err := f.proxy.AuthenticateRequest(f.request()); !ok || err != nil {
			t.Fatal(ok, err)
		}

		f.now.SetTime(f.now.Now().Add(1100 * time.Millisecond))
	}

	if f.verified != 2 {
		t.Errorf("verified %d times", f.verified)
	}
}

// With certificates that are real and the library's own verifier: whom it refuses is refused, also beside one that is remembered.
func TestFrontProxyWithCertificates(t *testing.T) {
	f := newProxyFixture()
	f.verify = f.library.AuthenticateRequest

	authority, key := signed(t, "front-proxy-ca", nil, nil)
	f.authorities.pool.AddCert(authority)

	proxy, _ := signed(t, "front-proxy-client", authority, key)
	another, _ := signed(t, "kubelet", authority, key)
	forged, _ := signed(t, "front-proxy-client", nil, nil)

	believed := func(certificate *x509.Certificate) bool {
		f.certificate = certificate
		_, ok, _ := f.proxy.AuthenticateRequest(f.request())

		return ok
	}

	for round := range 3 {
		if !believed(proxy) || believed(another) || believed(forged) {
			t.Errorf("round %d: the front proxy is believed %t, one with another name %t, one of no authority %t",
				round, believed(proxy), believed(another), believed(forged))
		}
	}

	if f.verified != 1+2*3 {
		t.Errorf("verified %d times, want the front proxy's once, and the others each time", f.verified)
	}

	f.authorities.pool = x509.NewCertPool()

	if believed(proxy) {
		t.Error("the front proxy of an authority that was replaced is believed")
	}
}

// signed makes a certificate for clients: of the authority, or one that signs itself.
func signed(t *testing.T, name string, authority *x509.Certificate, by *ecdsa.PrivateKey) (*x509.Certificate, *ecdsa.PrivateKey) {
	t.Helper()

	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}

	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Minute), NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}, BasicConstraintsValid: true, IsCA: authority == nil,
	}
	if authority == nil {
		authority, by = template, key
	}

	der, err := x509.CreateCertificate(rand.Reader, template, authority, key.Public(), by)
	if err != nil {
		t.Fatal(err)
	}

	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}

	return certificate, key
}
