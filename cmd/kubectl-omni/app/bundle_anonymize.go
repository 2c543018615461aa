package app

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"net/netip"
	"regexp"
	"slices"
	"strings"
)

// anonymizer replaces hostnames and addresses by short hashes: the same one has the same hash, so that a reader can still
// follow it.
type anonymizer struct {
	salt string
	// names finds the hostnames without a dot that the bundle itself names as such; nil if there are none.
	names *regexp.Regexp
}

// hostFields are the fields whose values are hostnames, in objects, events and Pods.
var hostFields = []string{"hostname", "nodeName", "host"} //nolint:gochecknoglobals // a table

// learn remembers the hostnames that documents name.
func (r *anonymizer) learn(documents []map[string]any) {
	found := map[string]bool{}

	for _, document := range documents {
		collectHosts(document, found)
	}

	quoted := make([]string, 0, len(found))
	for name := range found {
		quoted = append(quoted, regexp.QuoteMeta(name))
	}

	if len(quoted) > 0 {
		// The longest first: of node-1 and node-10, the second is not the first with a 0.
		slices.SortFunc(quoted, func(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(a, b)) })
		r.names = regexp.MustCompile(`\b(` + strings.Join(quoted, "|") + `)\b`)
	}
}

func collectHosts(value any, found map[string]bool) {
	switch v := value.(type) {
	case map[string]any:
		for key, below := range v {
			if name, is := below.(string); is && name != "" && slices.Contains(hostFields, key) {
				found[name] = true
			}

			collectHosts(below, found)
		}
	case []any:
		for _, below := range v {
			collectHosts(below, found)
		}
	}
}

var (
	// hostName finds names with a dot that end in letters. ipv4 and ipv6 find what may be an address, without the port
	// or the prefix length beside it.
	hostName = regexp.MustCompile(`\b[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?(\.[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?)*\.[A-Za-z]{2,}\b`)
	ipv4     = regexp.MustCompile(`\b[0-9]{1,3}(\.[0-9]{1,3}){3}\b`)
	ipv6     = regexp.MustCompile(`[0-9A-Fa-f]*(:[0-9A-Fa-f]*){2,}`)
)

// ourNames are names with dots that say nothing of a user's network.
var ourNames = []string{"texashpc.com", "sidero.dev", "k8s.io", "kubernetes.io", "svc.cluster.local"} //nolint:gochecknoglobals // a table

func (r anonymizer) text(text string) string {
	if r.names != nil {
		text = r.names.ReplaceAllStringFunc(text, func(name string) string { return "host-" + r.hash(name) })
	}

	text = hostName.ReplaceAllStringFunc(text, func(name string) string {
		for _, ours := range ourNames {
			if name == ours || strings.HasSuffix(name, "."+ours) {
				return name
			}
		}

		return "host-" + r.hash(name)
	})

	return ipv6.ReplaceAllStringFunc(ipv4.ReplaceAllStringFunc(text, r.address), r.address)
}

// address redacts a text if it is an address, with a colon of the sentence behind it or without. "::" is everybody's.
func (r anonymizer) address(text string) string {
	address := text
	if strings.HasSuffix(text, ":") && !strings.HasSuffix(text, "::") {
		address = strings.TrimSuffix(text, ":")
	}

	if _, err := netip.ParseAddr(address); err != nil || address == "::" {
		return text
	}

	return "address-" + r.hash(address) + text[len(address):]
}

func (r anonymizer) hash(text string) string {
	sum := sha256.Sum256([]byte(r.salt + text))

	return hex.EncodeToString(sum[:4])
}

// value redacts every text in a value.
func (r anonymizer) value(value any) any {
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
