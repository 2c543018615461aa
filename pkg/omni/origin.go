package omni

import (
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
)

// Origin is what an endpoint names: scheme, host and port.
type Origin struct {
	// Host is a name or an IP address, without brackets.
	Host string
	// Port is a number from 1 to 65535, explicit or the scheme's default.
	Port string
	// TLS is false for http and grpc.
	TLS bool
}

// ParseOrigin accepts https://, http:// and grpc:// with a host and at most a "/" path. Its errors wrap omni.ErrEndpoint and do
// not repeat the input, which may hold user info.
func ParseOrigin(raw string) (Origin, error) {
	parsed, err := url.Parse(raw)
	if err != nil {
		return Origin{}, fmt.Errorf("%w: it does not parse", ErrEndpoint)
	}

	port := map[string]string{"https": "443", "http": "80", "grpc": "80"}[parsed.Scheme]

	switch {
	case port == "":
		return Origin{}, fmt.Errorf("%w: unknown scheme", ErrEndpoint)
	case parsed.Hostname() == "":
		return Origin{}, fmt.Errorf("%w: no host", ErrEndpoint)
	case parsed.User != nil, parsed.RawQuery != "", parsed.Fragment != "", parsed.Path != "" && parsed.Path != "/":
		return Origin{}, fmt.Errorf("%w: only scheme, host and port are allowed", ErrEndpoint)
	}

	if parsed.Port() != "" {
		number, err := strconv.ParseUint(parsed.Port(), 10, 16)
		if err != nil || number == 0 {
			return Origin{}, fmt.Errorf("%w: bad port", ErrEndpoint)
		}

		port = parsed.Port()
	}

	return Origin{Host: parsed.Hostname(), Port: port, TLS: parsed.Scheme == "https"}, nil
}

// Address returns host and port as a dialler takes them.
func (o Origin) Address() string { return net.JoinHostPort(o.Host, o.Port) }

// SameOrigin reports whether two endpoints have the same scheme, host and port, however they are written. An endpoint
// that does not parse only equals itself.
func SameOrigin(a, b string) bool {
	if a == b {
		return true
	}

	first, err := ParseOrigin(a)
	if err != nil {
		return false
	}

	second, err := ParseOrigin(b)

	return err == nil && first.String() == second.String()
}

// Plaintext reports whether the endpoint is used without TLS; false for one that does not parse.
func Plaintext(endpoint string) bool {
	target, err := ParseOrigin(endpoint)

	return err == nil && !target.TLS
}

// String returns the canonical form, which is the same for the same origin.
func (o Origin) String() string {
	scheme, host, port := "http", strings.ToLower(o.Host), o.Port
	if o.TLS {
		scheme = "https"
	}

	if address, err := netip.ParseAddr(host); err == nil {
		host = address.Unmap().String()
	}

	if number, err := strconv.ParseUint(port, 10, 16); err == nil {
		port = strconv.FormatUint(number, 10)
	}

	return scheme + "://" + net.JoinHostPort(host, port)
}
