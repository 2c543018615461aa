package app

import (
	"crypto/sha256"
	"encoding/hex"
	"net/netip"
	"regexp"
	"strings"
)

// redactor replaces hostnames and addresses by short hashes: the same one has the same hash, so that a reader can still
// follow it.
type redactor struct{ salt string }

var (
	// hostName finds names with a dot that end in letters, and ipAddress what may be an IP address.
	hostName  = regexp.MustCompile(`\b[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?(\.[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?)*\.[A-Za-z]{2,}\b`)
	ipAddress = regexp.MustCompile(`[0-9A-Fa-f:.]{3,}[0-9A-Fa-f]`)
)

// ourNames are names with dots that say nothing of a user's network.
var ourNames = []string{"texashpc.com", "sidero.dev", "k8s.io", "kubernetes.io", "svc.cluster.local"} //nolint:gochecknoglobals // a table

func (r redactor) text(text string) string {
	text = hostName.ReplaceAllStringFunc(text, func(name string) string {
		for _, ours := range ourNames {
			if name == ours || strings.HasSuffix(name, "."+ours) {
				return name
			}
		}

		return "host-" + r.hash(name)
	})

	return ipAddress.ReplaceAllStringFunc(text, func(address string) string {
		if _, err := netip.ParseAddr(address); err != nil {
			return address
		}

		return "address-" + r.hash(address)
	})
}

func (r redactor) hash(text string) string {
	sum := sha256.Sum256([]byte(r.salt + text))

	return hex.EncodeToString(sum[:4])
}

// value redacts every text in a value.
func (r redactor) value(value any) any {
	switch v := value.(type) {
	case string:
		return r.text(v)
	case map[string]any:
		for key, below := range v {
			v[key] = r.value(below)
		}
	case []any:
		for i := range v {
			v[i] = r.value(v[i])
		}
	}

	return value
}
