package session

import (
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"

	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
)

// Origins are the endpoints that a key may be used with: scheme, host and port of each. The empty set allows none.
//
// A signature of Omni's API covers the method and some headers of a request, but neither its body nor the host. A
// server that receives a signed request can send it to the Omni that the key is for, with another body. So a key must
// not be used with an endpoint that another user chose.
type Origins map[string]struct{}

// ParseOrigins reads endpoints that are separated by commas or white space; see Config.Endpoint. Two are the same if
// scheme, host (in any case, IP addresses in any form) and port (explicit or default) are; http and grpc are one
// scheme. There are no wildcards. Empty entries are ignored. An error names the entry by its number.
func ParseOrigins(text string) (Origins, error) {
	origins := Origins{}

	for i, entry := range strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(", \t\r\n", r) }) {
		target, err := parseEndpoint(entry)
		if err != nil {
			return nil, fmt.Errorf("entry %d: %w", i+1, err)
		}

		if strings.Contains(target.host, "*") {
			return nil, fmt.Errorf("entry %d: %w: there are no wildcards, write every endpoint out", i+1, omni.ErrEndpoint)
		}

		origins[target.origin()] = struct{}{}
	}

	return origins, nil
}

// Allow reports whether the endpoint is one of the set; false for one that does not parse.
func (o Origins) Allow(endpoint string) bool {
	target, err := parseEndpoint(endpoint)
	if err != nil {
		return false
	}

	_, found := o[target.origin()]

	return found
}

// SameEndpoint reports whether two endpoints have the same scheme, host and port, however they are written. An endpoint
// that does not parse only equals itself.
func SameEndpoint(a, b string) bool {
	if a == b {
		return true
	}

	first, err := parseEndpoint(a)
	if err != nil {
		return false
	}

	second, err := parseEndpoint(b)

	return err == nil && first.origin() == second.origin()
}

// Plaintext reports whether the endpoint is used without TLS; false for one that does not parse.
func Plaintext(endpoint string) bool {
	target, err := parseEndpoint(endpoint)

	return err == nil && !target.tls
}

// origin returns the canonical form of the endpoint.
func (e endpoint) origin() string {
	scheme, host, port := "http", strings.ToLower(e.host), e.port
	if e.tls {
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
