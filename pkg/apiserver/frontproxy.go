package apiserver

import (
	"crypto/x509"
	"net/http"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/authenticatorfactory"
	"k8s.io/apiserver/pkg/authentication/group"
	"k8s.io/apiserver/pkg/authentication/request/headerrequest"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/utils/clock"
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
// library has accepted is not verified again for some seconds, with the same authorities and the same names that are allowed.
func RememberFrontProxy(authentication *genericapiserver.AuthenticationInfo) {
	config := authentication.RequestHeaderConfig
	if config == nil {
		return
	}

	authentication.Authenticator = newFrontProxy(authentication.Authenticator, config, clock.RealClock{})
}

func newFrontProxy(library authenticator.Request, config *authenticatorfactory.RequestHeaderConfig, clock clock.PassiveClock) *frontProxy {
	return &frontProxy{
		library: library,
		headers: group.NewAuthenticatedGroupAdder(headerrequest.NewDynamic(
			config.UsernameHeaders, config.UIDHeaders, config.GroupHeaders, config.ExtraHeaderPrefixes,
		)),
		authorities: config.CAContentProvider.VerifyOptions,
		userHeaders: config.UsernameHeaders.Value,
		allowed:     config.AllowedClientNames.Value,
		verified:    cache.NewLRUExpireCacheWithClock(maxVerified, clock),
		clock:       clock,
	}
}

// frontProxy is the authenticator that RememberFrontProxy makes.
type frontProxy struct {
	library     authenticator.Request // verifies certificates, and asks all other authenticators
	headers     authenticator.Request // believes the headers
	authorities func() (x509.VerifyOptions, bool)
	userHeaders func() []string
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
	if !loaded || request.TLS == nil || len(request.TLS.PeerCertificates) == 0 || !namesUser(request, f.userHeaders()) {
		return f.library.AuthenticateRequest(request)
	}

	certificate, with := request.TLS.PeerCertificates[0], verifiedWith{options.Roots, f.allowed()}
	if f.hasVerified(certificate, with) {
		return f.headers.AuthenticateRequest(request)
	}

	response, ok, err := f.library.AuthenticateRequest(request)
	if err == nil && ok && !namesUser(request, f.userHeaders()) {
		f.verified.Add(certificate, with, min(verifiedFor, certificate.NotAfter.Sub(f.clock.Now())))
	}

	return response, ok, err
}

func (f *frontProxy) hasVerified(certificate *x509.Certificate, with verifiedWith) bool {
	found, ok := f.verified.Get(certificate)
	if !ok {
		return false
	}

	before, ok := found.(verifiedWith)

	return ok && before.authorities == with.authorities && slices.Equal(before.allowed, with.allowed)
}

// namesUser reports whether a request has a header with the name of a user. The library removes these headers from a request
// if, and only if, it accepts them.
func namesUser(request *http.Request, headers []string) bool {
	return slices.ContainsFunc(headers, func(header string) bool { return request.Header.Get(header) != "" })
}
