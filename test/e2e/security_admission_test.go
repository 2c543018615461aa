package e2e

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Webhooks and policies of the hub apply to our kinds as to its own. Kyverno, Gatekeeper and the like are
// webhooks of this form.

// webhook is an admission webhook in this process.
type webhook struct {
	server *httptest.Server
	ca     string // base64 of PEM, as a configuration has it

	mu   sync.Mutex
	seen []*admissionv1.AdmissionRequest
}

// readSome reads a body of an ordinary size.
func readSome(body io.Reader) ([]byte, error) { return io.ReadAll(io.LimitReader(body, 4<<20)) }

// newWebhook listens on loopback with a certificate of its own. answer decides about a request: a message
// refuses it, a JSON patch changes it.
func newWebhook(t *testing.T, answer func(*admissionv1.AdmissionRequest) (message, patch string)) *webhook {
	t.Helper()

	w := &webhook{}
	w.server = httptest.NewUnstartedServer(http.HandlerFunc(func(out http.ResponseWriter, in *http.Request) {
		var review admissionv1.AdmissionReview

		body, err := readSome(in.Body)
		if err == nil {
			err = json.Unmarshal(body, &review)
		}

		if err != nil || review.Request == nil {
			http.Error(out, "no review", http.StatusBadRequest)

			return
		}

		w.mu.Lock()
		w.seen = append(w.seen, review.Request)
		w.mu.Unlock()

		message, patch := answer(review.Request)
		review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: message == ""}

		if message != "" {
			review.Response.Result = &metav1.Status{Message: message}
		} else if patch != "" {
			kind := admissionv1.PatchTypeJSONPatch
			review.Response.Patch, review.Response.PatchType = []byte(patch), &kind
		}

		review.Request = nil
		if err := json.NewEncoder(out).Encode(review); err != nil {
			t.Error(err)
		}
	}))

	certificate := selfSigned(t)
	w.server.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}}
	w.ca = base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate.Certificate[0]}))
	w.server.StartTLS()
	t.Cleanup(w.server.Close)

	return w
}

// selfSigned is a certificate for loopback that is its own authority.
func selfSigned(t *testing.T) tls.Certificate {
	t.Helper()

	key := must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der := must(x509.CreateCertificate(rand.Reader, template, template, key.Public(), key))(t)

	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// requests are what the webhook was asked, as "VERB resource/subresource".
func (w *webhook) requests() []string {
	w.mu.Lock()
	defer w.mu.Unlock()

	var asked []string

	for _, r := range w.seen {
		resource := r.Resource.Resource
		if r.SubResource != "" {
			resource += "/" + r.SubResource
		}

		asked = append(asked, string(r.Operation)+" "+resource)
	}

	return asked
}

// find returns the last request of that form.
func (w *webhook) find(asked string) *admissionv1.AdmissionRequest {
	index := -1

	for i, request := range w.requests() {
		if request == asked {
			index = i
		}
	}

	if index < 0 {
		return nil
	}

	w.mu.Lock()
	defer w.mu.Unlock()

	return w.seen[index]
}

// configuration is a webhook configuration of the space, for all our resources and subresources.
func (w *webhook) configuration(kind, failurePolicy string) string {
	return fmt.Sprintf(`apiVersion: admissionregistration.k8s.io/v1
kind: %s
metadata: {name: SPACE}
webhooks:
- name: test.example.com
  admissionReviewVersions: [v1]
  sideEffects: None
  timeoutSeconds: 10
  failurePolicy: %s
  clientConfig: {url: %q, caBundle: %s}
  namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: SPACE}}
  matchConditions: [{name: not-the-controller, expression: "!request.userInfo.username.startsWith('system:')"}]
  rules: [{apiGroups: [omni.texashpc.com], apiVersions: ["*"], operations: ["*"], resources: ["*/*"]}]`,
		kind, failurePolicy, w.server.URL, w.ca)
}

func TestValidatingWebhookSeesEveryKind(t *testing.T) {
	t.Parallel()

	s := newSpace(t)
	hook := newWebhook(t, func(r *admissionv1.AdmissionRequest) (string, string) {
		switch {
		case r.Operation == admissionv1.Create && r.Name == "forbidden":
			return "not this name", ""
		case r.Operation == admissionv1.Delete && strings.Contains(string(r.OldObject.Raw), `"name":"precious"`):
			return "too precious", ""
		case r.SubResource == "scale" && strings.Contains(string(r.Object.Raw), `"replicas":9`):
			return "too many machines", ""
		}

		return "", ""
	})
	s.applyCluster(hook.configuration("ValidatingWebhookConfiguration", "Fail"), "validatingwebhookconfiguration")

	s.wait("the webhook to be asked", func() error {
		_, err := subjects[0].admin(t, s.name).Create(t.Context(), subjects[0].object(t, "forbidden"), metav1.CreateOptions{DryRun: dryRun})

		return refusedWith(err, "not this name")
	})

	for _, k := range subjects {
		t.Run(k.kind, func(t *testing.T) { s.checkWebhook(t, k, hook) })
	}
}

func (s *space) checkWebhook(t *testing.T, k subject, hook *webhook) {
	t.Helper()

	client := k.admin(t, s.name)
	_, err := client.Create(t.Context(), k.object(t, "forbidden"), metav1.CreateOptions{})
	expectRefusal(t, err, "not this name")

	must(client.Create(t.Context(), k.object(t, "precious"), metav1.CreateOptions{}))(t)
	must(client.Patch(t.Context(), "precious", types.MergePatchType, []byte(mergeOf(k.path, k.value)), metav1.PatchOptions{}))(t)
	must(client.Patch(t.Context(), "precious", types.MergePatchType, probe, metav1.PatchOptions{}, "status"))(t)

	if k.scales() {
		_, err = client.Patch(t.Context(), "precious", types.MergePatchType, []byte(`{"spec":{"replicas":9}}`), metav1.PatchOptions{}, "scale")
		expectRefusal(t, err, "too many machines")
		must(client.Patch(t.Context(), "precious", types.MergePatchType, []byte(`{"spec":{"replicas":5}}`), metav1.PatchOptions{}, "scale"))(t)
	}

	expectRefusal(t, client.Delete(t.Context(), "precious", metav1.DeleteOptions{}), "too precious")
	expectRefusal(t, client.DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}), "too precious")

	want := []string{"CREATE " + k.resource, "UPDATE " + k.resource, "UPDATE " + k.resource + "/status", "DELETE " + k.resource}
	if k.scales() {
		want = append(want, "UPDATE "+k.resource+"/scale")
	}

	for _, asked := range want {
		request := hook.find(asked)
		if request == nil {
			t.Errorf("the webhook was not asked about %s", asked)

			continue
		}

		created, deleted := request.Operation == admissionv1.Create, request.Operation == admissionv1.Delete
		if request.UserInfo.Username != "hub-admin" || request.Namespace != s.name ||
			deleted != (len(request.Object.Raw) == 0) || created != (len(request.OldObject.Raw) == 0) {
			t.Errorf("%s: user %s, namespace %s, object %d bytes, old object %d bytes",
				asked, request.UserInfo.Username, request.Namespace, len(request.Object.Raw), len(request.OldObject.Raw))
		}
	}
}

func refusedWith(err error, message string) error {
	if err == nil || !strings.Contains(err.Error(), message) {
		return fmt.Errorf("not refused with %q: %w", message, err)
	}

	return nil
}

func expectRefusal(t *testing.T, err error, message string) {
	t.Helper()

	if err := refusedWith(err, message); err != nil {
		t.Error(err)
	}
}

// A mutating webhook's change is stored, and it is asked about dry runs as such.
func TestMutatingWebhookChangesEveryKind(t *testing.T) {
	t.Parallel()

	s := newSpace(t)
	hook := newWebhook(t, func(r *admissionv1.AdmissionRequest) (string, string) {
		if r.Operation != admissionv1.Create {
			return "", ""
		}

		return "", `[{"op":"add","path":"/metadata/labels","value":{"mutated":"yes"}}]`
	})
	s.applyCluster(hook.configuration("MutatingWebhookConfiguration", "Fail"), "mutatingwebhookconfiguration")
	s.waitLabel("mutated")

	for _, k := range subjects {
		created := must(k.admin(t, s.name).Create(t.Context(), k.object(t, "x"), metav1.CreateOptions{}))(t)
		if created.GetLabels()["mutated"] != "yes" || created.GetGeneration() != 1 {
			t.Errorf("%s: %v", k.kind, created.Object["metadata"])
		}
	}

	if first := hook.find("CREATE " + subjects[1].resource); first == nil || first.DryRun == nil || *first.DryRun {
		t.Errorf("request %+v", first)
	}
}

// waitLabel waits until something adds the label to new objects.
func (s *space) waitLabel(key string) {
	s.t.Helper()
	s.wait("the label "+key+" on new objects", func() error {
		tried, err := subjects[0].admin(s.t, s.name).Create(s.t.Context(), subjects[0].object(s.t, "tried"), metav1.CreateOptions{DryRun: dryRun})
		if err == nil && tried.GetLabels()[key] == "" {
			err = fmt.Errorf("labels %v", tried.GetLabels())
		}

		return err
	})
}

// A webhook that does not answer stops every write that it would be asked about, if it says so, and
// deletions too.
func TestDeadWebhook(t *testing.T) {
	t.Parallel()

	s := newSpace(t)
	k := subjects[0]
	must(k.admin(t, s.name).Create(t.Context(), k.object(t, "old"), metav1.CreateOptions{}))(t)

	hook := newWebhook(t, func(*admissionv1.AdmissionRequest) (string, string) { return "", "" })
	hook.server.Close()
	s.applyCluster(hook.configuration("ValidatingWebhookConfiguration", "Fail"), "validatingwebhookconfiguration")

	create := func() error {
		_, err := k.admin(t, s.name).Create(t.Context(), k.object(t, "new"), metav1.CreateOptions{DryRun: dryRun})

		return err
	}
	s.wait("the webhook to be asked", func() error { return refusedWith(create(), `failed calling webhook "test.example.com"`) })
	expectRefusal(t, k.admin(t, s.name).Delete(t.Context(), "old", metav1.DeleteOptions{}), `failed calling webhook "test.example.com"`)

	s.apply(strings.ReplaceAll(hook.configuration("ValidatingWebhookConfiguration", "Ignore"), "SPACE", s.name))
	s.wait("the webhook to be ignored", create)
}

// The hub's policies in CEL, validating and mutating: on every verb, deletions and subresources included.
func TestPoliciesApplyToEveryKind(t *testing.T) {
	t.Parallel()

	s := newSpace(t)
	s.applyCluster(celPolicies, "validatingadmissionpolicy", "validatingadmissionpolicybinding", "mutatingadmissionpolicy", "mutatingadmissionpolicybinding")
	s.waitLabel("policy")
	s.wait("the validating policy", func() error {
		_, err := subjects[0].admin(t, s.name).Create(t.Context(), subjects[0].object(t, "forbidden"), metav1.CreateOptions{DryRun: dryRun})

		return refusedWith(err, "not this name")
	})

	for _, k := range subjects {
		client := k.admin(t, s.name)
		_, err := client.Create(t.Context(), k.object(t, "forbidden"), metav1.CreateOptions{})
		expectRefusal(t, err, "not this name")

		created := must(client.Create(t.Context(), k.object(t, "precious"), metav1.CreateOptions{}))(t)
		if created.GetLabels()["policy"] != "applied" {
			t.Errorf("%s: labels %v", k.kind, created.GetLabels())
		}

		_, err = client.Patch(t.Context(), "precious", types.MergePatchType, []byte(`{"metadata":{"labels":{"policy":"removed"}}}`), metav1.PatchOptions{})
		expectRefusal(t, err, "keep the label")

		_, err = client.Patch(t.Context(), "precious", types.MergePatchType, probe, metav1.PatchOptions{}, "status")
		expectRefusal(t, err, "no probes")
		expectRefusal(t, client.Delete(t.Context(), "precious", metav1.DeleteOptions{}), "too precious")

		if k.scales() {
			_, err = client.Patch(t.Context(), "precious", types.MergePatchType, []byte(`{"spec":{"replicas":60}}`), metav1.PatchOptions{}, "scale")
			expectRefusal(t, err, "too many machines")
		}
	}
}

var probe = []byte(`{"status":{"conditions":[{"type":"Probe","status":"True","reason":"R","message":"","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`)

// celPolicies leave the programs of Kubernetes and our own alone: they have to be able to clean up.
const celPolicies = `apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: SPACE}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [omni.texashpc.com], apiVersions: ["*"], operations: ["*"], resources: ["*", "*/status", "*/scale"]}]}
  matchConditions: [{name: not-the-controller, expression: "!request.userInfo.username.startsWith('system:')"}]
  validations:
  - {expression: "request.operation != 'CREATE' || object.metadata.name != 'forbidden'", message: not this name}
  - {expression: "request.operation != 'DELETE' || oldObject.metadata.name != 'precious'", message: too precious}
  - {expression: "request.operation != 'UPDATE' || request.?subResource.orValue('') != '' || object.metadata.labels['policy'] == 'applied'", message: keep the label}
  - {expression: "request.?subResource.orValue('') != 'status' || !object.status.conditions.exists(c, c.type == 'Probe')", message: no probes}
  - {expression: "request.?subResource.orValue('') != 'scale' || object.spec.replicas < 50", message: too many machines}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: SPACE}
spec: {policyName: SPACE, validationActions: [Deny], matchResources: {namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: SPACE}}}}
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicy
metadata: {name: SPACE}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [omni.texashpc.com], apiVersions: ["*"], operations: [CREATE], resources: ["*"]}]}
  failurePolicy: Fail
  reinvocationPolicy: Never
  mutations: [{patchType: ApplyConfiguration, applyConfiguration: {expression: "Object{metadata: Object.metadata{labels: {'policy': 'applied'}}}"}}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicyBinding
metadata: {name: SPACE}
spec: {policyName: SPACE, matchResources: {namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: SPACE}}}}`
