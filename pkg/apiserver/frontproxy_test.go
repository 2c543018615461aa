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

// proxyFixture has a library that counts what it is asked, and accepts the headers of every request.
type proxyFixture struct {
	now         *clocktesting.FakePassiveClock
	authorities *authorities
	allowed     []string
	certificate *x509.Certificate
	asked       int
	library     func(*http.Request) (*authenticator.Response, bool, error)
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
	accept := headerrequest.NewDynamic(config.UsernameHeaders, config.UIDHeaders, config.GroupHeaders, config.ExtraHeaderPrefixes)
	f.library = accept.AuthenticateRequest
	f.proxy = newFrontProxy(authenticator.RequestFunc(func(r *http.Request) (*authenticator.Response, bool, error) {
		f.asked++

		return f.library(r)
	}), config, f.now)

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

		want := &user.DefaultInfo{Name: "alice", UID: "1", Groups: []string{"team"}, Extra: map[string][]string{"scopes": {"all"}}}
		if i > 0 { // the fixture's library leaves it out
			want.Groups = append(want.Groups, user.AllAuthenticated)
		}

		if diff := cmp.Diff(user.Info(want), response.User); diff != "" {
			t.Errorf("request %d: %s", i, diff)
		}

		if diff := cmp.Diff(http.Header{"Accept": {"x"}}, request.Header); diff != "" {
			t.Errorf("request %d: headers: %s", i, diff)
		}
	}

	if f.asked != 1 {
		t.Errorf("the library was asked %d times", f.asked)
	}
}

// Everything that may change the answer has the library asked again.
func TestFrontProxyIsVerifiedAgain(t *testing.T) {
	for name, change := range map[string]func(f *proxyFixture, next *http.Request){
		"after ten seconds":           func(f *proxyFixture, _ *http.Request) { f.now.SetTime(f.now.Now().Add(verifiedFor + time.Millisecond)) },
		"other authorities":           func(f *proxyFixture, _ *http.Request) { f.authorities.pool = x509.NewCertPool() },
		"no authorities":              func(f *proxyFixture, _ *http.Request) { f.authorities.pool = nil },
		"other names":                 func(f *proxyFixture, _ *http.Request) { f.allowed = []string{"another"} },
		"another certificate":         func(_ *proxyFixture, next *http.Request) { next.TLS.PeerCertificates[0] = &x509.Certificate{} },
		"no certificate":              func(_ *proxyFixture, next *http.Request) { next.TLS.PeerCertificates = nil },
		"no TLS":                      func(_ *proxyFixture, next *http.Request) { next.TLS = nil },
		"no user in the headers":      func(_ *proxyFixture, next *http.Request) { next.Header.Del("X-Remote-User") },
		"an empty user in the header": func(_ *proxyFixture, next *http.Request) { next.Header.Set("X-Remote-User", "") },
	} {
		t.Run(name, func(t *testing.T) {
			f := newProxyFixture()

			if _, ok, err := f.proxy.AuthenticateRequest(f.request()); !ok || err != nil {
				t.Fatal(ok, err)
			}

			next := f.request()
			change(f, next)

			f.library = func(*http.Request) (*authenticator.Response, bool, error) { return nil, false, nil }
			if _, ok, err := f.proxy.AuthenticateRequest(next); ok || err != nil || f.asked != 2 {
				t.Errorf("authenticated %v, %v; the library was asked %d times", ok, err, f.asked)
			}
		})
	}
}

// What the library has not accepted as the front proxy's is never remembered.
func TestFrontProxyThatIsNone(t *testing.T) {
	another := &authenticator.Response{User: &user.DefaultInfo{Name: "bob"}}

	for name, library := range map[string]func(*http.Request) (*authenticator.Response, bool, error){
		"refused": func(*http.Request) (*authenticator.Response, bool, error) {
			return nil, false, errors.New("unknown authority")
		},
		"no opinion":                  func(*http.Request) (*authenticator.Response, bool, error) { return nil, false, nil },
		"by a certificate of its own": func(*http.Request) (*authenticator.Response, bool, error) { return another, true, nil },
		"accepted with the headers, refused": func(r *http.Request) (*authenticator.Response, bool, error) {
			r.Header = nil
			return another, false, nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newProxyFixture()
			f.library = library

			for range 2 {
				if response, ok, _ := f.proxy.AuthenticateRequest(f.request()); ok && response.User.GetName() != "bob" {
					t.Errorf("%s is believed", response.User.GetName())
				}
			}

			if f.asked != 2 {
				t.Errorf("the library was asked %d times", f.asked)
			}
		})
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

	if f.asked != 2 {
		t.Errorf("the library was asked %d times", f.asked)
	}
}
