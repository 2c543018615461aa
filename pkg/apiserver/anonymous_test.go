package apiserver

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/user"
	genericapiserver "k8s.io/apiserver/pkg/server"
)

func TestRefuseAnonymous(t *testing.T) {
	failure := errors.New("certificate has expired")

	tests := []struct {
		name, path, user string
		certificates     []*x509.Certificate
		err              error
		want             bool
	}{
		{"forged or no headers", "/apis/omni.texashpc.com/v1alpha1/omniclusters", "system:anonymous", nil, nil, false},
		{"discovery", "/apis", "system:anonymous", nil, nil, false},
		{"probe", "/readyz", "system:anonymous", nil, nil, true},
		{"one check of a probe", "/livez/etcd", "system:anonymous", nil, nil, true},
		{"user", "/apis", "alice", nil, nil, true},
		{"anonymous user of the hub", "/apis", "system:anonymous", []*x509.Certificate{{}}, nil, true},
		{"failure", "/readyz", "", nil, failure, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			config := &genericapiserver.AuthenticationInfo{Authenticator: authenticator.RequestFunc(
				func(*http.Request) (*authenticator.Response, bool, error) {
					return &authenticator.Response{User: &user.DefaultInfo{Name: test.user}}, test.err == nil, test.err
				})}
			RefuseAnonymous(config)

			request := httptest.NewRequest(http.MethodGet, test.path, nil)
			request.TLS = &tls.ConnectionState{PeerCertificates: test.certificates}

			response, ok, err := config.Authenticator.AuthenticateRequest(request)
			if ok != test.want || !errors.Is(err, test.err) {
				t.Fatalf("authenticated %t, %v, want %t, %v", ok, err, test.want, test.err)
			}

			if ok && response.User.GetName() != test.user {
				t.Errorf("user %s", response.User.GetName())
			}
		})
	}
}
