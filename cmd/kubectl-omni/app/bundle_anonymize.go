package app

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"net/netip"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// anonymizer replaces hostnames and addresses by short hashes: the same one has the same hash, so that a reader can still
// follow it.
type anonymizer struct {
	salt string
	// names finds the hostnames without a dot that are known; nil if there are none.
	names *regexp.Regexp
}

// hostFields are the fields, and the label, whose values are hostnames, in objects, events and Pods.
var hostFields = []string{"hostname", "nodeName", "host", corev1.LabelHostname} //nolint:gochecknoglobals // a table

// hostNames are hostnames that need no dot.
type hostNames map[string]bool

// gather finds the hostnames that a value calls so, and those of nodes in texts of Omni.
func (h hostNames) gather(value any) {
	switch v := value.(type) {
	case string:
		h.gatherText(v)
	case map[string]any:
		for key, below := range v {
			if slices.Contains(hostFields, key) || key == "values" && v["key"] == corev1.LabelHostname {
				h.add(below)
			}

			h.gather(below)
		}
	case []any:
		for _, below := range v {
			h.gather(below)
		}
	}
}

// add takes a name, or a list of them.
func (h hostNames) add(value any) {
	switch v := value.(type) {
	case string:
		h[v] = true
	case []any:
		for _, below := range v {
			h.add(below)
		}
	}
}

var (
	// nodeUpdated finds the node in what Omni writes of the step of an upgrade: "node-1: updating kubelet to v1.36.1".
	nodeUpdated = regexp.MustCompile(`\b([a-z0-9][a-z0-9.-]*): updating kube(?:let|-[a-z])`)
	// nodesAwaited finds the list in what Omni writes of nodes that it waits for, nodeAwaited a node in it: "static pods
	// ["node-1/kube-apiserver"] are not ready", "nodes ["node-1" "node-2"] are not ready".
	nodesAwaited = regexp.MustCompile(`\b(?:nodes|static pods) \[([^\]]*)`)
	nodeAwaited  = regexp.MustCompile(`"([a-z0-9][a-z0-9.-]*)`)
)

func (h hostNames) gatherText(text string) {
	for _, found := range nodeUpdated.FindAllStringSubmatch(text, -1) {
		h[found[1]] = true
	}

	for _, list := range nodesAwaited.FindAllStringSubmatch(text, -1) {
		for _, found := range nodeAwaited.FindAllStringSubmatch(list[1], -1) {
			h[found[1]] = true
		}
	}
}

// learn remembers hostnames. A word of our own names says nothing of a user's network.
func (a *anonymizer) learn(hosts hostNames) {
	quoted := make([]string, 0, len(hosts))

	for name := range hosts {
		if name != "" && !slices.ContainsFunc(ourNames, func(ours string) bool { return slices.Contains(strings.Split(ours, "."), name) }) {
			quoted = append(quoted, regexp.QuoteMeta(name))
		}
	}

	if len(quoted) > 0 {
		// The longest first: of node-1 and node-10, the second is not the first with a 0.
		slices.SortFunc(quoted, func(one, other string) int { return cmp.Or(len(other)-len(one), strings.Compare(one, other)) })
		a.names = regexp.MustCompile(`\b(` + strings.Join(quoted, "|") + `)\b`)
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
var ourNames = []string{"omni.texashpc.com", "texashpc.com", "sidero.dev", "k8s.io", "kubernetes.io", "svc.cluster.local"} //nolint:gochecknoglobals // a table

func (a anonymizer) text(text string) string {
	if a.names != nil {
		text = a.names.ReplaceAllStringFunc(text, func(name string) string { return "host-" + a.hash(name) })
	}

	text = hostName.ReplaceAllStringFunc(text, func(name string) string {
		for _, ours := range ourNames {
			if name == ours || strings.HasSuffix(name, "."+ours) {
				return name
			}
		}

		return "host-" + a.hash(name)
	})

	return ipv6.ReplaceAllStringFunc(ipv4.ReplaceAllStringFunc(text, a.address), a.address)
}

// address hashes a text if it is an address, with a colon of the sentence behind it or without. "::" is everybody's.
func (a anonymizer) address(text string) string {
	address := text
	if strings.HasSuffix(text, ":") && !strings.HasSuffix(text, "::") {
		address = strings.TrimSuffix(text, ":")
	}

	if _, err := netip.ParseAddr(address); err != nil || address == "::" {
		return text
	}

	return "address-" + a.hash(address) + text[len(address):]
}

func (a anonymizer) hash(text string) string {
	sum := sha256.Sum256([]byte(a.salt + text))

	return hex.EncodeToString(sum[:4])
}

// document makes every text anonymous in a document; keys are texts, too: those of labels may have a domain.
func (a anonymizer) document(document map[string]any) map[string]any {
	changed := make(map[string]any, len(document))
	for key, below := range document {
		changed[a.text(key)] = a.value(below)
	}

	return changed
}

// value makes every text anonymous in a value.
func (a anonymizer) value(value any) any {
	switch v := value.(type) {
	case string:
		return a.text(v)
	case map[string]any:
		return a.document(v)
	case []any:
		for i := range v {
			v[i] = a.value(v[i])
		}
	}

	return value
}
