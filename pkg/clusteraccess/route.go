package clusteraccess

import (
	"fmt"
	"net"
	"net/http"
	"net/url"

	"omni.texashpc.com/omni-cluster-operator/pkg/foreign/dialguard"
)

// route is how connections to a cluster are made.
type route struct {
	proxy  func(*http.Request) (*url.URL, error)
	dialer *net.Dialer
}

// route finds the way to the server; the connections are used for no other. The guard decides about every address that
// the kubeconfig chose: the server's, or that of its proxy-url. The proxy of the environment is the operator's choice
// and may have any address. A proxy decides itself where it connects to; only a server that is given as an address can
// be checked here. Errors: ErrUnsafe; ErrInvalid if the server is no URL.
func (a *settings) route(environment func(*http.Request) (*url.URL, error), guard dialguard.Guard) (route, error) {
	server, err := url.Parse(a.server)
	if err != nil {
		return route{}, fmt.Errorf("%w: cluster.server is no URL", ErrInvalid)
	}

	if err := guard.CheckHost(server.Hostname()); err != nil {
		return route{}, fmt.Errorf("%w: cluster.server %w", ErrUnsafe, err)
	}

	if a.proxy != nil {
		if err := guard.CheckHost(a.proxy.Hostname()); err != nil {
			return route{}, fmt.Errorf("%w: cluster.proxy-url %w", ErrUnsafe, err)
		}

		return route{proxy: http.ProxyURL(a.proxy), dialer: guard.Dialer(dialTimeout)}, nil
	}

	// An error of the environment becomes the error of every request.
	proxy, err := environment(&http.Request{URL: server})
	way := route{
		proxy:  func(*http.Request) (*url.URL, error) { return proxy, err },
		dialer: guard.Dialer(dialTimeout),
	}

	if proxy != nil {
		way.dialer = &net.Dialer{Timeout: dialTimeout}
	}

	return way, nil
}
