package e2e

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// What a webhook is told about each operation on a set that can be scaled, field by field: policies of others are
// written against it.
func TestWebhookSeesTheObjectsOfEachSubresource(t *testing.T) {
	t.Parallel()

	s := newSpace(t)
	k := subjects[3] // OmniWorkers
	hook := newWebhook(t, func(*admissionv1.AdmissionRequest) (string, string) { return "", "" })
	s.applyCluster(hook.configuration("ValidatingWebhookConfiguration", "Fail"), "validatingwebhookconfiguration")

	client := k.admin(t, s.name)
	s.wait("the webhook to be asked", func() error {
		_, err := client.Create(t.Context(), k.object(t, "first"), metav1.CreateOptions{DryRun: dryRun})
		if err == nil && hook.find("CREATE omniworkers") == nil {
			err = fmt.Errorf("asked about %q", hook.requests())
		}

		return err
	})

	must(client.Create(t.Context(), k.object(t, "w"), metav1.CreateOptions{}))(t)
	must(client.Patch(t.Context(), "w", types.MergePatchType, []byte(`{"spec":{"machineClass":{"size":3}}}`), metav1.PatchOptions{}))(t)
	must(client.Patch(t.Context(), "w", types.MergePatchType, []byte(`{"spec":{"replicas":5}}`), metav1.PatchOptions{}, "scale"))(t)
	must(client.Patch(t.Context(), "w", types.MergePatchType, probe, metav1.PatchOptions{}, "status"))(t)

	if err := client.Delete(t.Context(), "w", metav1.DeleteOptions{DryRun: dryRun}); err != nil {
		t.Fatal(err)
	}

	const group = "omni.texashpc.com/v1alpha1, Kind=OmniWorkers"

	for _, tc := range []struct {
		asked, kind string
		before, now string // the size in the old object and in the new one, where they have it
		dry         bool
		options     string
	}{
		{"CREATE omniworkers", group, "", "spec.machineClass.size=1", false, "CreateOptions"},
		{"UPDATE omniworkers", group, "spec.machineClass.size=1", "spec.machineClass.size=3", false, "UpdateOptions"},
		{"UPDATE omniworkers/scale", "autoscaling/v1, Kind=Scale", "spec.replicas=3", "spec.replicas=5", false, "UpdateOptions"},
		{"UPDATE omniworkers/status", group, "spec.machineClass.size=5", "spec.machineClass.size=5", false, "UpdateOptions"},
		{"DELETE omniworkers", group, "spec.machineClass.size=5", "", true, "DeleteOptions"},
	} {
		request := hook.find(tc.asked)
		if request == nil {
			t.Errorf("not asked about %s: %q", tc.asked, hook.requests())

			continue
		}

		kind := fmt.Sprintf("%s/%s, Kind=%s", request.Kind.Group, request.Kind.Version, request.Kind.Kind)
		dry := request.DryRun != nil && *request.DryRun

		if kind != tc.kind || request.Name != "w" || request.Namespace != s.name || dry != tc.dry || !strings.Contains(string(request.Options.Raw), tc.options) {
			t.Errorf("%s: kind %s of %s/%s, dry run %t, options %s", tc.asked, kind, request.Namespace, request.Name, dry, request.Options.Raw)
		}

		checkReviewed(t, tc.asked+": old object", request.OldObject.Raw, tc.before)
		checkReviewed(t, tc.asked+": object", request.Object.Raw, tc.now)
	}

	// The condition that only the status request has.
	status := hook.find("UPDATE omniworkers/status")
	if !strings.Contains(string(status.Object.Raw), `"Probe"`) || strings.Contains(string(status.OldObject.Raw), `"Probe"`) {
		t.Errorf("status: %s from %s", status.Object.Raw, status.OldObject.Raw)
	}
}

// checkReviewed looks for "path=value" in an object; empty means that there is no object.
func checkReviewed(t *testing.T, what string, raw []byte, want string) {
	t.Helper()

	if want == "" {
		if len(raw) > 0 && string(raw) != "null" {
			t.Errorf("%s is %s, want none", what, raw)
		}

		return
	}

	var object map[string]any
	if err := json.Unmarshal(raw, &object); err != nil {
		t.Errorf("%s: %v: %s", what, err, raw)

		return
	}

	path, value, _ := strings.Cut(want, "=")

	got, _, err := unstructured.NestedFieldNoCopy(object, strings.Split(path, ".")...)
	if err != nil || fmt.Sprint(got) != value {
		t.Errorf("%s: %s is %v, want %s: %s", what, path, got, value, raw)
	}
}

// A webhook that takes the request and never answers costs a write its time limit, and then counts as one that
// cannot be reached.
func TestWebhookThatHangs(t *testing.T) {
	t.Parallel()

	s := newSpace(t)
	k := subjects[0]
	released := make(chan struct{})
	hook := newWebhook(t, func(*admissionv1.AdmissionRequest) (string, string) {
		<-released

		return "", ""
	})

	t.Cleanup(func() { close(released) })

	configure := func(policy string) string {
		return strings.Replace(hook.configuration("ValidatingWebhookConfiguration", policy), "timeoutSeconds: 10", "timeoutSeconds: 1", 1)
	}

	s.applyCluster(configure("Fail"), "validatingwebhookconfiguration")

	create := func() (time.Duration, error) {
		begin := time.Now()
		_, err := k.admin(t, s.name).Create(t.Context(), k.object(t, "new"), metav1.CreateOptions{DryRun: dryRun})

		return time.Since(begin), err
	}

	// Without its limit of 1 s a write would wait for 10 s.
	const most = 5 * time.Second

	refusal := func(err error) error { return refusedWith(err, `failed calling webhook "test.example.com"`) }
	timed := func() time.Duration {
		var took time.Duration

		s.wait("the webhook to be asked", func() error {
			var err error
			took, err = create()

			return refusal(err)
		})

		return took
	}

	if took := fastest(most, timed); took < time.Second || took > most {
		t.Errorf("refused after %s, want its time limit of 1s", took)
	}

	s.apply(strings.ReplaceAll(configure("Ignore"), "SPACE", s.name))

	refusal = func(err error) error { return err }
	if took := fastest(most, timed); took < time.Second || took > most {
		t.Errorf("ignored after %s, want its time limit of 1s", took)
	}
}
