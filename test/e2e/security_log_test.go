package e2e

import (
	"net/http"
	"os"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// The server's log at its most talkative has no token of a caller, and no content of an object that a webhook was asked
// about. Only an administrator may raise the verbosity of a running server.
func TestLogHasNoContentAtAnyVerbosity(t *testing.T) {
	const canary = "c4n4ry-0f-4-v3rb0s3-l0g"

	s := newSpace(t)
	token := s.tokenOf("robot")
	hook := newWebhook(t, func(*admissionv1.AdmissionRequest) (string, string) { return "", "" })
	s.applyCluster(hook.configuration("ValidatingWebhookConfiguration", "Fail"), "validatingwebhookconfiguration")

	object := subjects[1].object(t, "c")
	mergeSpec(t, object, `{"patches":[{"name":"p","inline":{"machine":{"env":{"TOKEN":"`+canary+`"}}}}]}`)

	if status, text := s.verbosity(clientOf(certificateOf(t, s.user("alice"))), "10"); status != http.StatusForbidden {
		t.Errorf("a user raises the verbosity: status %d: %s", status, text)
	}

	admin := must(rest.HTTPClientFor(stack.RESTConfig()))(t)
	if status, text := s.verbosity(admin, "10"); status != http.StatusOK {
		t.Fatalf("status %d: %s", status, text)
	}

	t.Cleanup(func() {
		if status, text := s.verbosity(admin, "0"); status != http.StatusOK {
			t.Errorf("status %d: %s", status, text)
		}
	})

	before := len(must(os.ReadFile(stack.OmniAPIServer.LogPath()))(t))

	s.wait("the webhook to be asked", func() error {
		_, err := subjects[1].admin(t, s.name).Create(t.Context(), object, metav1.CreateOptions{DryRun: dryRun})
		if len(hook.requests()) == 0 {
			return refusedWith(err, "by a webhook that was asked")
		}

		return err
	})

	bearer := http.Header{"Authorization": {"Bearer " + token}}
	if status, text := s.answer(clientOf(), stack.OmniAPIServer.URL()+s.path("omniclusters"), bearer); status != http.StatusForbidden {
		t.Errorf("the token: status %d: %s", status, text)
	}

	log := string(must(os.ReadFile(stack.OmniAPIServer.LogPath()))(t)[before:])

	// Bodies in protobuf are logged as a dump, which breaks what is in them into pieces.
	for name, secret := range map[string]string{"the token": token, "a part of the token": token[len(token)-12:], "the object": canary, "a dump": "00000010  "} {
		if i := strings.Index(log, secret); i >= 0 {
			t.Errorf("the log has %s: ...%s", name, log[max(0, i-300):i])
		}
	}

	for _, there := range []string{`"Request Body" body="<`, `"Response Body" body="<`} {
		if !strings.Contains(log, there) {
			t.Errorf("the log of %d bytes does not have %s", len(log), there)
		}
	}
}

// verbosity sets how much the server logs.
func (s *space) verbosity(client *http.Client, level string) (int, string) {
	s.t.Helper()

	request, err := http.NewRequest(http.MethodPut, stack.OmniAPIServer.URL()+"/debug/flags/v", strings.NewReader(level))
	if err != nil {
		s.t.Fatal(err)
	}

	answer, err := client.Do(request)
	if err != nil {
		s.t.Fatal(err)
	}
	defer answer.Body.Close()

	return answer.StatusCode, string(must(readSome(answer.Body))(s.t))
}
