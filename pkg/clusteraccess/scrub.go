package clusteraccess

import (
	"bytes"
	"fmt"
	"io"
	"net/http"

	"omni.texashpc.com/omni-cluster-operator/pkg/foreign/redact"
)

// secrets returns the credentials of a kubeconfig, in the forms in which they are sent: if a server echoes a header,
// the credentials must not get into a condition.
func (a *settings) secrets() *redact.Secrets {
	secrets := redact.Of(a.token, a.secret, string(a.key))
	if a.username != "" {
		secrets.Add(a.username + ":" + a.secret)
	}

	if a.proxy != nil && a.proxy.User != nil {
		password, _ := a.proxy.User.Password()
		secrets.Add(password, a.proxy.User.Username()+":"+password)
	}

	return secrets
}

// maxRefusal is how much of an error answer is read, in bytes.
const maxRefusal = 256 << 10

// scrubRefusal removes the credentials from an error answer. Clients show its beginning, and Helm stores it; if a
// client cut it off first, a part of a credential would not be recognised any more.
func scrubRefusal(response *http.Response, secrets *redact.Secrets) error {
	if response.StatusCode < http.StatusBadRequest {
		return nil
	}

	text, err := io.ReadAll(io.LimitReader(response.Body, maxRefusal))
	_ = response.Body.Close()

	if err != nil {
		return fmt.Errorf("read the answer, which is an error (%d): %w", response.StatusCode, err)
	}

	scrubbed := []byte(secrets.Remove(string(text)))
	response.Body, response.ContentLength = io.NopCloser(bytes.NewReader(scrubbed)), int64(len(scrubbed))

	return nil
}
