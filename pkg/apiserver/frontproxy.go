package apiserver

import (
	"crypto/x509"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/authenticatorfactory"
	"k8s.io/apiserver/pkg/authentication/group"
	"k8s.io/apiserver/pkg/authentication/request/headerrequest"
	x509request "k8s.io/apiserver/pkg/authentication/request/x509"
	"k8s.io/apiserver/pkg/authentication/user"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/healthz"
	"k8s.io/utils/clock"

	"omni.texashpc.com/omni-cluster-operator/pkg/apiserver/chain"
)

const (
	// verifiedFor is for how long a certificate of the front proxy that was verified is not verified again. An authority that
	// expires is noticed so much later; one that is replaced, at once.
	verifiedFor = 10 * time.Second
	// maxVerified is how many certificates are remembered. A replica of kube-apiserver has one or two.
	maxVerified = 256
)

// RememberFrontProxy makes the authentication of requests that came through the hub's kube-apiserver cheaper.
//
// The library verifies the signature of the front proxy's certificate with each request, which was a seventh of the processor
// time of a read of one object here. TLS has shown once for each connection that the client has the key. So a certificate that the
// library has accepted as the front proxy's is not verified again for some seconds, with the same authorities and the same names
// that are allowed, whichever intermediate certificates come with it. Everybody else is left to the library.
func RememberFrontProxy(authentication *genericapiserver.AuthenticationInfo) {
	if authentication.RequestHeaderConfig != nil {
		authentication.Authenticator = newFrontProxy(authentication.Authenticator, authentication.RequestHeaderConfig, clock.RealClock{})
	}
}

func newFrontProxy(all authenticator.Request, config *authenticatorfactory.RequestHeaderConfig, clock clock.PassiveClock) *frontProxy {
	headers := headerrequest.NewDynamic(config.UsernameHeaders, config.UIDHeaders, config.GroupHeaders, config.ExtraHeaderPrefixes)
	verifier := x509request.NewDynamicCAVerifier(config.CAContentProvider.VerifyOptions, headers, config.AllowedClientNames)

	return &frontProxy{
		all:         all,
		verifier:    group.NewAuthenticatedGroupAdder(verifier),
		headers:     group.NewAuthenticatedGroupAdder(headers),
		authorities: config.CAContentProvider.VerifyOptions,
		allowed:     config.AllowedClientNames.Value,
		verified:    cache.NewLRUExpireCacheWithClock(maxVerified, clock),
		clock:       clock,
	}
}

// frontProxy is the authenticator that RememberFrontProxy makes.
type frontProxy struct {
	all         authenticator.Request // every way to authenticate, as the library puts them together
	verifier    authenticator.Request // the first of them: verifies the certificate, then believes the headers
	headers     authenticator.Request // believes the headers
	authorities func() (x509.VerifyOptions, bool)
	allowed     func() []string
	verified    *cache.LRUExpireCache // verifiedWith by *x509.Certificate
	clock       clock.PassiveClock
}

// verifiedWith is what a certificate was verified with.
type verifiedWith struct {
	authorities *x509.CertPool
	allowed     []string
}

// AuthenticateRequest implements authenticator.Request.
func (f *frontProxy) AuthenticateRequest(request *http.Request) (*authenticator.Response, bool, error) {
	options, loaded := f.authorities()
	if !loaded || request.TLS == nil || len(request.TLS.PeerCertificates) == 0 {
		return f.all.AuthenticateRequest(request)
	}

	certificate, with := request.TLS.PeerCertificates[0], verifiedWith{options.Roots, f.allowed()}
	known := f.hasVerified(certificate, with)

	first := f.verifier
	if known {
		first = f.headers
	}

	response, ok, err := first.AuthenticateRequest(request)
	if err != nil || !ok {
		return f.all.AuthenticateRequest(request)
	}

	if !known {
		f.verified.Add(certificate, with, min(verifiedFor, certificate.NotAfter.Sub(f.clock.Now())))
	}

	return response, true, nil
}

func (f *frontProxy) hasVerified(certificate *x509.Certificate, with verifiedWith) bool {
	found, ok := f.verified.Get(certificate)
	if !ok {
		return false
	}

	before, ok := found.(verifiedWith)

	return ok && before.authorities == with.authorities && slices.Equal(before.allowed, with.allowed)
}

// errNoRequestHeaderCA is the error of /readyz, and of requests that come too early.
var errNoRequestHeaderCA = errors.New("the certificate authority of the front proxy " +
	"(requestheader-client-ca-file in kube-system/extension-apiserver-authentication) is not loaded yet")

// requireRequestHeaderCA keeps the server from answering before it can authenticate callers. The library loads the
// front proxy's certificate authority in the background, after it has begun to listen. Until then every request that
// kube-apiserver passes on would look anonymous and get a 403, which clients take as final.
func requireRequestHeaderCA(config *genericapiserver.Config) {
	requestHeader := config.Authentication.RequestHeaderConfig
	if requestHeader == nil {
		return
	}

	check := func(*http.Request) error {
		if _, loaded := requestHeader.CAContentProvider.VerifyOptions(); !loaded {
			return errNoRequestHeaderCA
		}

		return nil
	}

	config.AddReadyzChecks(healthz.NamedCheck("request-header-ca", check))

	chain.Outside(config, func(next http.Handler, _ *genericapiserver.Config) http.Handler { return unavailableUntil(check, next) })
}

// unavailableUntil answers 503 while the check fails, except on the health endpoints, which answer for themselves.
func unavailableUntil(check func(*http.Request) error, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := check(r); err != nil && !isHealthPath(r.URL.Path) {
			w.Header().Set("Retry-After", "1")
			http.Error(w, err.Error(), http.StatusServiceUnavailable)

			return
		}

		next.ServeHTTP(w, r)
	})
}

func isHealthPath(path string) bool {
	for _, health := range []string{"/healthz", "/livez", "/readyz"} {
		if path == health || strings.HasPrefix(path, health+"/") {
			return true
		}
	}

	return false
}

// RefuseAnonymous answers callers without credentials with 401, except on the health endpoints, which probes call
// without credentials. The library would let such callers in as system:anonymous and answer 403. A caller who sends
// X-Remote-User without the front proxy's certificate could not see from a 403 that the header was ignored.
func RefuseAnonymous(config *genericapiserver.AuthenticationInfo) {
	inner := config.Authenticator

	config.Authenticator = authenticator.RequestFunc(func(request *http.Request) (*authenticator.Response, bool, error) {
		response, ok, err := inner.AuthenticateRequest(request)
		if err != nil || !ok {
			return nil, false, err
		}

		// A request with a client certificate comes from the front proxy: whether the hub lets anonymous users in is
		// the hub's decision. AuthenticateRequest above has already refused certificates of unknown authorities.
		certified := request.TLS != nil && len(request.TLS.PeerCertificates) > 0

		if response.User.GetName() == user.Anonymous && !certified && !isHealthPath(request.URL.Path) {
			return nil, false, nil
		}

		return response, true, nil
	})
}
