package apiserver

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
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
	return x509.VerifyOptions{Roots: a.pool}, a.pool != nil
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
	f.verify = f.proxy.headers.AuthenticateRequest
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
