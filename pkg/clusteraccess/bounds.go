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

// The limits of an answer, by kind of request; see package answer. Memory is the estimated size of the answer after the
// clients have decoded it.
//
//nolint:gochecknoglobals // constants
var (
	// probeLimits are for the version and for one namespace, whose annotations alone may have 256 KiB.
	probeLimits = answer.Limits{Bytes: 512 << 10, Memory: 8 << 20, Small: 8 << 20}
	// objectLimits are for one object. A Kubernetes API stores up to 1.5 MiB.
	objectLimits = answer.Limits{Bytes: 8 << 20, Memory: 32 << 20, Small: 4 << 20}
	// listLimits are for lists and discovery. A thousand Pods have some 10 MiB, and take some 80 MiB.
	listLimits = answer.Limits{Bytes: 32 << 20, Memory: 96 << 20, Small: 4 << 20}
	// eventLimits are for each event of a watch. Many watches are open at the same time.
	eventLimits = answer.Limits{Bytes: 8 << 20, Memory: 32 << 20, Small: 512 << 10, Stream: true}
	// logLimits are for the log of a container, which is text.
	logLimits = answer.Limits{Bytes: 8 << 20, Small: 4 << 20}
)

// probing marks the context of a probe.
type probing struct{}

// asProbe marks requests of a probe: their answers are small and must not be compressed.
func asProbe(ctx context.Context) context.Context { return context.WithValue(ctx, probing{}, true) }

func isProbe(request *http.Request) bool { return request.Context().Value(probing{}) != nil }

// limitsOf returns the limits of an answer.
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

// resourcePath returns the part of a path that names a resource: ["secrets", "name"] of
// /api/v1/namespaces/ns/secrets/name, whatever prefix a gateway needs. Empty if the path is not that of a resource.
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

// bound applies the limits to an answer.
func (s *sameHost) bound(request *http.Request, response *http.Response) error {
	if err := answer.CheckProtocol(response); err != nil {
		return err
	}

	if err := checkForm(request, response); err != nil {
		_ = response.Body.Close()

		return err
	}

	response.Body = &boundedBody{
		Reader: answer.NewReader(request.Context(), response.Body, limitsOf(request), s),
		probe:  isProbe(request),
	}

	return nil
}

// askingForJSON returns a request whose answer can be bounded: some clients, such as those of metadata, prefer
// protobuf.
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

// errForm is the error for an answer in a format that cannot be bounded.
var errForm = errors.New("the workload cluster answers in a form that was not asked for")

// checkForm refuses answers that the clients would decode although they are not JSON, and compressed answers to a
// probe: net/http only decompresses if it requested the compression itself.
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

// tooLargeError is the error for an answer that exceeds a limit.
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

// boundedBody returns tooLargeError when an answer exceeds its limit.
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
