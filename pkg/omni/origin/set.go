package origin

import (
	"fmt"
	"strings"

	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
)

// Set is the endpoints that a key may be used with: scheme, host and port of each. The empty set allows none.
//
// A signature of Omni's API covers the method and some headers of a request, but neither its body nor the host. A
// server that receives a signed request can send it to the Omni that the key is for, with another body. So a key must
// not be used with an endpoint that another user chose.
type Set map[string]struct{}

// ParseSet reads endpoints that are separated by commas or white space, each as Parse takes it. Two are the same if
// scheme, host (in any case, IP addresses in any form) and port (explicit or default) are; http and grpc are one
// scheme. There are no wildcards. Empty entries are ignored. An error names the entry by its number.
func ParseSet(text string) (Set, error) {
	origins := Set{}

	for i, entry := range strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(", \t\r\n", r) }) {
		target, err := Parse(entry)
		if err != nil {
			return nil, fmt.Errorf("entry %d: %w", i+1, err)
		}

		if strings.Contains(target.Host, "*") {
			return nil, fmt.Errorf("entry %d: %w: there are no wildcards, write every endpoint out", i+1, omni.ErrEndpoint)
		}

		origins[target.String()] = struct{}{}
	}

	return origins, nil
}

// Allow reports whether the endpoint is one of the set; false for one that does not parse.
func (s Set) Allow(endpoint string) bool {
	target, err := Parse(endpoint)
	if err != nil {
		return false
	}

	_, found := s[target.String()]

	return found
}
