package apiserver

import (
	"net/http"

	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/user"
	genericapiserver "k8s.io/apiserver/pkg/server"
)

// RefuseAnonymous answers callers without credentials with 401, except on the health endpoints, which
// probes ask without any. The library would let them in as system:anonymous and answer 403: that hides
// from somebody who sends X-Remote-User without the front proxy's certificate that nobody believed it.
func RefuseAnonymous(config *genericapiserver.AuthenticationInfo) {
	inner := config.Authenticator

	config.Authenticator = authenticator.RequestFunc(func(request *http.Request) (*authenticator.Response, bool, error) {
		response, ok, err := inner.AuthenticateRequest(request)
		if err != nil || !ok {
			return nil, false, err
		}

		// With a certificate it is the front proxy that says so: whether the hub lets anonymous users in is
		// the hub's decision. A certificate that nobody issued was an error before this line.
		certified := request.TLS != nil && len(request.TLS.PeerCertificates) > 0

		if response.User.GetName() == user.Anonymous && !certified && !isHealthPath(request.URL.Path) {
			return nil, false, nil
		}

		return response, true, nil
	})
}
