package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/client-go/dynamic"
)

// The shared API server writes an audit log, with the policy that is the default.

// auditEvents are the entries about the namespace so far.
func (s *space) auditEvents() []auditv1.Event {
	s.t.Helper()

	var events []auditv1.Event

	for line := range strings.Lines(string(must(os.ReadFile(auditPath))(s.t))) {
		if !strings.Contains(line, s.name) || !strings.HasSuffix(line, "\n") {
			continue
		}

		var event auditv1.Event
		if err := json.Unmarshal([]byte(line), &event); err != nil {
			s.t.Fatalf("%v: %s", err, line)
		}

		events = append(events, event)
	}

	return events
}

// Who did what to which object is in the audit log, the refused included; nothing that they wrote is.
func TestAuditHasNoContent(t *testing.T) {
	t.Parallel()

	const canary = "c4n4ry-0f-4n-4ud1t"

	s := newSpace(t)
	client := subjects[1].admin(t, s.name)

	object := subjects[1].object(t, "audited")
	object.SetAnnotations(map[string]string{"note": canary})
	mergeSpec(t, object, `{"patches":[{"name":"p","inline":{"machine":{"env":{"TOKEN":"`+canary+`"}}}}],"annotations":{"a":"`+canary+`"}}`)

	must(client.Create(t.Context(), object, metav1.CreateOptions{}))(t)
	must(client.Patch(t.Context(), "audited", types.MergePatchType, []byte(`{"spec":{"labels":{"l":"`+canary+`"}}}`), metav1.PatchOptions{}))(t)
	must(client.Apply(t.Context(), "audited", object, metav1.ApplyOptions{FieldManager: "other", Force: true}))(t)
	must(client.Patch(t.Context(), "audited", types.MergePatchType, probe, metav1.PatchOptions{}, "status"))(t)

	refusals := s.refusals(client, canary)
	s.wait("the entries of the refused", func() error { return missingRefusals(s.auditEvents(), refusals) })

	want := map[string]bool{"create": false, "patch": false, "patch status": false}

	for _, event := range s.auditEvents() {
		text := string(must(json.Marshal(event))(t))
		if strings.Contains(text, canary) {
			t.Errorf("the audit log has content: %s", text)
		}

		if event.Level != auditv1.LevelMetadata || event.RequestObject != nil || event.ResponseObject != nil {
			t.Errorf("level %s: %s", event.Level, text)
		}

		if event.User.Username == "hub-admin" && event.ObjectRef != nil && event.ObjectRef.Name == "audited" {
			want[strings.TrimSpace(event.Verb+" "+event.ObjectRef.Subresource)] = true
		}
	}

	for request, found := range want {
		if !found {
			t.Errorf("no entry of the %s", request)
		}
	}
}

// refusals sends objects that are refused because of what they contain, and returns the answers by field manager, which
// stands in the URI. A message names fields and keys, and must not quote values that may be secret.
func (s *space) refusals(client dynamic.ResourceInterface, canary string) map[string]metav1.Status {
	s.t.Helper()

	answers := map[string]metav1.Status{}

	for manager, tc := range map[string]struct{ spec, says string }{
		"no-object":         {`{"patches":[{"name":"p","inline":"` + canary + `"}]}`, "must be an object: write inline blocks"},
		"unknown-in-talos":  {`{"patches":[{"name":"p","inline":{"machine":{"nonsense":"` + canary + `"}}}]}`, "spec.patches[0].inline"},
		"wrong-in-talos":    {`{"patches":[{"name":"p","inline":{"machine":{"env":["` + canary + `"]}}}]}`, "spec.patches[0].inline"},
		"not-ours-to-patch": {`{"patches":[{"name":"p","inline":{"cluster":{"secret":"` + canary + `"}}}]}`, "spec.patches[0].inline"},
		"bad-manifest":      {`{"kubernetes":{"manifests":[{"name":"m","mode":"often","inline":[{"kind":"` + canary + `"}]}]}}`, "spec.kubernetes.manifests[0].mode"},
	} {
		bad := subjects[1].object(s.t, "refused")
		mergeSpec(s.t, bad, tc.spec)

		_, err := client.Create(s.t.Context(), bad, metav1.CreateOptions{DryRun: dryRun, FieldManager: manager})

		var refused apierrors.APIStatus
		if !errors.As(err, &refused) || !strings.Contains(err.Error(), tc.says) {
			s.t.Fatalf("%s: not refused with %q: %v", manager, tc.says, err)
		}

		answers[manager] = refused.Status()
	}

	return answers
}

// missingRefusals is an error if an answer is not among the events with its code and message.
func missingRefusals(events []auditv1.Event, answers map[string]metav1.Status) error {
	for manager, answer := range answers {
		if !slices.ContainsFunc(events, func(event auditv1.Event) bool {
			return strings.Contains(event.RequestURI, "fieldManager="+manager) && event.ResponseStatus != nil &&
				event.ResponseStatus.Code == answer.Code && event.ResponseStatus.Message == answer.Message
		}) {
			return fmt.Errorf("there is none of %s: %d %s", manager, answer.Code, answer.Message)
		}
	}

	return nil
}

// Whoever is refused is in the log, too: with a name, and through the hub with the impersonator's target.
func TestAuditHasTheRefused(t *testing.T) {
	t.Parallel()

	s := newSpace(t)

	if status := statusOf(t, anonymousClient(), stack.OmniAPIServer.URL()+s.path("omniclusters"), nil); status != 401 {
		t.Fatalf("status %d", status)
	}

	s.wait("the entry of the refused", func() error {
		for _, event := range s.auditEvents() {
			if event.ResponseStatus != nil && event.ResponseStatus.Code == 401 {
				return nil
			}
		}

		return fmt.Errorf("%d entries", len(s.auditEvents()))
	})
}
