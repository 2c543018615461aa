package logging_test

import (
	"bytes"
	"flag"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"omni.texashpc.com/omni-cluster-operator/pkg/apiserver/logging"
)

// TestLogHasNoToken reads the log of a whole process at the highest verbosity, while the real client sends a token
// review.
func TestLogHasNoToken(t *testing.T) {
	const sent, answered = "a-t0ken-that-nobody-may-see", "an-answer-that-nobody-may-see"

	hub := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"apiVersion":"authentication.k8s.io/v1","kind":"TokenReview","status":{"error":"` + answered + `"}}`))
	}))
	t.Cleanup(hub.Close)

	review := func() string {
		var log bytes.Buffer

		state := klog.CaptureState()
		defer state.Restore()

		flags := flag.NewFlagSet("klog", flag.ContinueOnError)
		klog.InitFlags(flags)

		for name, value := range map[string]string{"v": "10", "logtostderr": "false", "one_output": "true", "stderrthreshold": "FATAL"} {
			if err := flags.Set(name, value); err != nil {
				t.Fatal(err)
			}
		}

		klog.SetOutput(&log)

		client, err := kubernetes.NewForConfig(&rest.Config{
			Host: hub.URL, BearerToken: "our-own-t0ken",
			ContentConfig: rest.ContentConfig{ContentType: "application/json"}, // protobuf is logged as a dump
		})
		if err != nil {
			t.Fatal(err)
		}

		if _, err := client.AuthenticationV1().TokenReviews().Create(t.Context(), &authenticationv1.TokenReview{
			Spec: authenticationv1.TokenReviewSpec{Token: sent},
		}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}

		klog.Flush()

		return log.String()
	}

	// Without the filter the library logs both bodies. If it did not, this test would prove nothing.
	if log := review(); !strings.Contains(log, sent) || !strings.Contains(log, answered) {
		t.Fatalf("the library does not log bodies any more: %s", log)
	}

	logging.OmitBodies()
	t.Cleanup(func() { klog.SetLogFilter(nil) })

	log := review()
	for _, secret := range []string{sent, answered, "our-own-t0ken"} {
		if strings.Contains(log, secret) {
			t.Errorf("%s is in the log:\n%s", secret, log)
		}
	}

	if !strings.Contains(log, "/apis/authentication.k8s.io/v1/tokenreviews") || strings.Count(log, "characters are not logged>") != 2 {
		t.Errorf("the rest is not in the log:\n%s", log)
	}
}
