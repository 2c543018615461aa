package workload

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// shortestScrubbed is the shortest credential that is taken out of texts, in
// bytes: removing every "a" would leave no message, and hide nothing.
const shortestScrubbed = 4

// scrubber takes the credentials of a kubeconfig out of texts, in the forms in
// which they are sent and shown: a server that answers with the header that it was
// sent must not put it into a condition.
func (a *access) scrubber() *strings.Replacer {
	secrets := []string{a.token, a.secret}
	if a.username != "" {
		secrets = append(secrets, base64.StdEncoding.EncodeToString([]byte(a.username+":"+a.secret)))
	}

	if a.proxy != nil && a.proxy.User != nil {
		password, _ := a.proxy.User.Password()
		secrets = append(secrets, password, base64.StdEncoding.EncodeToString([]byte(a.proxy.User.Username()+":"+password)))
	}

	var forms []string

	for _, secret := range secrets {
		if len(secret) >= shortestScrubbed {
			forms = append(forms, secret, url.QueryEscape(secret), quoted(secret), inJSON(secret))
		}
	}

	// The longest first, so that no part of one remains.
	slices.SortFunc(forms, func(a, b string) int { return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(a, b)) })

	var pairs []string
	for _, form := range slices.Compact(forms) {
		pairs = append(pairs, form, "[removed]")
	}

	return strings.NewReplacer(pairs...)
}

// quoted is a text between quotes, as client-go shows what a gateway said.
func quoted(text string) string {
	between := strconv.Quote(text)

	return between[1 : len(between)-1]
}

// inJSON is a text between quotes in JSON.
func inJSON(text string) string {
	written, err := json.Marshal(text)
	if err != nil {
		return text // a string can always be written
	}

	return string(written[1 : len(written)-1])
}

// maxRefusal is how much of an answer that is an error is read, in bytes.
const maxRefusal = 1 << 20

// scrubRefusal takes the credentials out of an answer that is an error. Clients show
// the beginning of it, and Helm writes it down; where it is cut off, a part of a
// credential would not be recognised any more.
func scrubRefusal(response *http.Response, scrub *strings.Replacer) error {
	if response.StatusCode < http.StatusBadRequest {
		return nil
	}

	text, err := io.ReadAll(io.LimitReader(response.Body, maxRefusal))
	_ = response.Body.Close()

	if err != nil {
		return fmt.Errorf("read the answer, which is an error (%d): %w", response.StatusCode, err)
	}

	scrubbed := []byte(scrub.Replace(string(text)))
	response.Body, response.ContentLength = io.NopCloser(bytes.NewReader(scrubbed)), int64(len(scrubbed))

	return nil
}
