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
	x509request "k8s.io/apiserver/pkg/authentication/request/x509"
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
