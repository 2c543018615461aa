package apiserver

import (
	"net/http"

	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/user"
	genericapiserver "k8s.io/apiserver/pkg/server"
)

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
