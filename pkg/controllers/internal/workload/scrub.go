package workload

import (
	"encoding/base64"
	"net/url"
	"strings"
)

// shortestScrubbed is the shortest credential that is taken out of texts, in
// bytes: removing every "a" would leave no message, and hide nothing.
const shortestScrubbed = 4

// scrubber takes the credentials of a kubeconfig out of texts, in the forms in
// which they are sent: a server that answers with the header that it was sent
// must not put it into a condition.
func (a *access) scrubber() *strings.Replacer {
	secrets := []string{a.token, a.secret}
	if a.username != "" {
		secrets = append(secrets, base64.StdEncoding.EncodeToString([]byte(a.username+":"+a.secret)))
	}

	if a.proxy != nil && a.proxy.User != nil {
		password, _ := a.proxy.User.Password()
		secrets = append(secrets, password, base64.StdEncoding.EncodeToString([]byte(a.proxy.User.Username()+":"+password)))
	}

	var pairs []string

	for _, secret := range secrets {
		if len(secret) < shortestScrubbed {
			continue
		}

		pairs = append(pairs, secret, "[removed]")

		if escaped := url.QueryEscape(secret); escaped != secret {
			pairs = append(pairs, escaped, "[removed]")
		}
	}

	return strings.NewReplacer(pairs...)
}
