package helm

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"omni.texashpc.com/omni-cluster-operator/pkg/foreign/redact"
)

// minSecret is the shortest text that is kept out of messages; shorter ones
// would make every message unreadable, and are no secrets.
const minSecret = 4

// removed stands where a secret was.
const removed = "[removed]"

// collect adds the texts that a value holds.
func collect(texts []string, value any) []string {
	switch typed := value.(type) {
	case map[string]any:
		for _, member := range typed {
			texts = collect(texts, member)
		}
	case []any:
		for _, member := range typed {
			texts = collect(texts, member)
		}
	case string:
		texts = append(texts, typed)
	case int64, float64, json.Number:
		// A password that is written without quotes.
		texts = append(texts, fmt.Sprint(typed))
	}

	return texts
}

// variants are the ways in which texts may appear in messages: whole, by line,
// trimmed, quoted and as base64. Long ones come first, so that no part of one remains.
func variants(texts []string) []string {
	var all []string

	add := func(text string) {
		if len(text) >= minSecret {
			all = append(all, text)
		}
	}

	for _, text := range texts {
		add(text)
		add(strings.TrimSpace(text))

		for line := range strings.Lines(text) {
			add(strings.TrimSpace(line))
		}

		if len(text) >= minSecret {
			// Between quotes, as Go and JSON write what they refuse.
			quoted := strconv.Quote(text)
			add(quoted[1 : len(quoted)-1])

			if written, err := json.Marshal(text); err == nil {
				add(string(written[1 : len(written)-1]))
			}

			add(base64.StdEncoding.EncodeToString([]byte(text)))
		}
	}

	slices.SortFunc(all, longestFirst)

	return slices.Compact(all)
}

// withOlder also keeps older values out of texts, as far as they are not among
// the current ones that came from no Secret.
func (v Values) withOlder(config map[string]any) Values {
	plain := map[string]bool{}

	for _, text := range collect(nil, v.tree) {
		plain[text] = !slices.Contains(v.secrets, text)
	}

	older := slices.DeleteFunc(collect(nil, config), func(text string) bool { return plain[text] })
	all := append(variants(older), v.secrets...)
	slices.SortFunc(all, longestFirst)
	v.secrets = slices.Compact(all)

	return v
}

// longestFirst sorts texts so that no part of a long one remains when a short one
// was replaced.
func longestFirst(a, b string) int { return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(a, b)) }

// Redact makes a text of Helm or of a cluster fit for conditions and logs: one
// line, and nothing in it that came from a Secret.
func (v Values) Redact(text string) string {
	for _, secret := range v.secrets {
		text = strings.ReplaceAll(text, secret, removed)
	}

	return redact.Line(text)
}
