package omni

import (
	"fmt"
	"strings"
)

// Origins is the endpoints that a key may be used with: scheme, host and port of each. The empty set allows none.
//
// A signature of Omni's API covers the method and some headers of a request, but neither its body nor the host. A
// server that receives a signed request can send it to the Omni that the key is for, with another body. So a key must
// not be used with an endpoint that another user chose.
type Origins map[string]struct{}

// ParseOrigins reads endpoints that are separated by commas or white space, each as Parse takes it. Two are the same if
// scheme, host (in any case, IP addresses in any form) and port (explicit or default) are; http and grpc are one
// scheme. There are no wildcards. Empty entries are ignored. An error names the entry by its number.
func ParseOrigins(text string) (Origins, error) {
	origins := Origins{}

	for i, entry := range strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(", \t\r\n", r) }) {
		target, err := ParseOrigin(entry)
		if err != nil {
			return nil, fmt.Errorf("entry %d: %w", i+1, err)
		}

		if strings.Contains(target.Host, "*") {
			return nil, fmt.Errorf("entry %d: %w: there are no wildcards, write every endpoint out", i+1, ErrEndpoint)
		}

		origins[target.String()] = struct{}{}
	}

	return origins, nil
}

// Allow reports whether the endpoint is one of the set; false for one that does not parse.
func (s Origins) Allow(endpoint string) bool {
	target, err := ParseOrigin(endpoint)
	if err != nil {
		return false
	}

	_, found := s[target.String()]

	return found
}
