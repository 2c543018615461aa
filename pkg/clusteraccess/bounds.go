package clusteraccess

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"slices"
	"strings"

	"omni.texashpc.com/omni-cluster-operator/pkg/foreign/answer"
)

// The limits of an answer, by what is asked for; see package answer. Memory is what it
// becomes in the clients, as it is estimated.
//
//nolint:gochecknoglobals // constants
var (
	// probeLimits are for the version and for one namespace, whose annotations alone may
	// have 256 KiB.
	probeLimits = answer.Limits{Bytes: 512 << 10, Memory: 8 << 20, Small: 8 << 20}
	// objectLimits are for one object. A Kubernetes API stores up to 1.5 MiB.
	objectLimits = answer.Limits{Bytes: 8 << 20, Memory: 32 << 20, Small: 4 << 20}
	// listLimits are for lists, and for what an API says of itself. A thousand Pods have
	// some 10 MiB, and take some 80 MiB.
	listLimits = answer.Limits{Bytes: 32 << 20, Memory: 96 << 20, Small: 4 << 20}
	// eventLimits are for each event of a watch. Many watches are open at the same time.
	eventLimits = answer.Limits{Bytes: 8 << 20, Memory: 32 << 20, Small: 512 << 10, Stream: true}
	// logLimits are for the log of a container, which is text.
	logLimits = answer.Limits{Bytes: 8 << 20, Small: 4 << 20}
)

// clusterBytes is what large answers of one kubeconfig may take of the budget of the
// process, in bytes: half of it, so that one cluster never has all.
const clusterBytes = 32 << 20

// probing marks the context of a probe.
type probing struct{}

// asProbe makes requests that are answered with little, and without compression.
func asProbe(ctx context.Context) context.Context { return context.WithValue(ctx, probing{}, true) }

func isProbe(request *http.Request) bool { return request.Context().Value(probing{}) != nil }

// limitsOf says what an answer may be.
func limitsOf(request *http.Request) answer.Limits {
	rest := resourcePath(request.URL.Path)

	switch {
	case isProbe(request):
		return probeLimits
	case request.URL.Query().Get("watch") != "":
		return eventLimits
	case len(rest) == 3 && rest[0] == "pods" && rest[2] == "log":
		return logLimits
	case request.Method != http.MethodGet, len(rest) > 1:
		return objectLimits
	default:
		return listLimits
	}
}

// resourcePath is what of a path names a resource: ["secrets", "name"] of
// /api/v1/namespaces/ns/secrets/name, whatever a gateway wants before it. Empty if it is
// no path of a resource.
func resourcePath(path string) []string {
	var rest []string

	if _, core, found := strings.Cut(path, "/api/v1/"); found {
		rest = strings.Split(core, "/")
	} else if _, group, found := strings.Cut(path, "/apis/"); found {
		if rest = strings.Split(group, "/"); len(rest) > 2 {
			rest = rest[2:]
		} else {
			rest = nil
		}
	}

	if len(rest) > 2 && rest[0] == "namespaces" {
		rest = rest[2:]
	}

	return rest
}

// bound puts the limits on an answer.
func (s *sameHost) bound(request *http.Request, response *http.Response) error {
	if response.StatusCode == http.StatusSwitchingProtocols {
		return nil
	}

	if err := checkForm(request, response); err != nil {
		_ = response.Body.Close()

		return err
	}

	response.Body = &boundedBody{
		Reader: answer.NewReader(request.Context(), response.Body, limitsOf(request), s.budget, answer.Process),
		probe:  isProbe(request),
	}

	return nil
}

// askingForJSON is a request whose answer can be bounded: some clients, such as those of metadata, prefer protobuf.
func askingForJSON(request *http.Request) *http.Request {
	accepted := request.Header.Get("Accept")
	if !strings.Contains(accepted, "protobuf") && !strings.Contains(accepted, "cbor") {
		return request
	}

	offers := slices.DeleteFunc(strings.Split(accepted, ","), func(offer string) bool { return !strings.Contains(offer, "json") })
	asked := request.Clone(request.Context())
	asked.Header.Set("Accept", cmp.Or(strings.Join(offers, ","), "application/json"))

	return asked
}

// errForm is an answer in a form that cannot be bounded.
var errForm = errors.New("the workload cluster answers in a form that was not asked for")

// checkForm refuses what the clients would decode although it is no JSON, and a probe
// that is compressed: net/http inflates only what it has asked for itself.
func checkForm(request *http.Request, response *http.Response) error {
	if isProbe(request) && response.Header.Get("Content-Encoding") != "" {
		return fmt.Errorf("%w: compressed", errForm)
	}

	form, _, _ := mime.ParseMediaType(response.Header.Get("Content-Type"))
	for _, other := range []string{"protobuf", "yaml", "cbor"} {
		if strings.Contains(form, other) {
			return fmt.Errorf("%w: %s", errForm, other)
		}
	}

	return nil
}

// tooLargeError is an answer that exceeds a limit.
type tooLargeError struct {
	cause *answer.LimitError
	probe bool
}

// Error implements error.
func (e *tooLargeError) Error() string {
	if e.probe {
		return "what is at the kubeconfig's server " + e.cause.Error() + " when it is asked for its version and its namespace kube-system, which no Kubernetes does"
	}

	return "the workload cluster " + e.cause.Error() + ", which is refused"
}

// Unwrap returns the limit.
func (e *tooLargeError) Unwrap() error { return e.cause }

// boundedBody says whose answer is too large.
type boundedBody struct {
	*answer.Reader

	probe bool
}

// Read implements io.Reader.
func (b *boundedBody) Read(buffer []byte) (int, error) {
	n, err := b.Reader.Read(buffer)

	var limit *answer.LimitError
	if errors.As(err, &limit) {
		err = &tooLargeError{cause: limit, probe: b.probe}
	}

	return n, err // io.EOF must stay io.EOF
}
