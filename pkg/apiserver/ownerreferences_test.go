package apiserver_test

import (
	"net/http"
	"strings"
	"testing"

	"k8s.io/component-base/metrics/legacyregistry"
)

// TestBadOwnerReference: an owner reference with an empty field is the client's mistake, not the server's. For each
// of its own rules that generated validation does not have, the library counts a mismatch and logs it as an error of
// the server.
func TestBadOwnerReference(t *testing.T) {
	s := startServer(t)
	before := mismatches(t)

	for _, reference := range []string{
		`{}`, `{"apiVersion":"","kind":"A","name":"a","uid":"u"}`, `{"apiVersion":"v1","kind":"","name":"a","uid":"u"}`,
		`{"apiVersion":"v1","kind":"A","name":"","uid":"u"}`, `{"apiVersion":"v1","kind":"A","name":"a","uid":""}`,
	} {
		owned := strings.Replace(clusterJSON("owned"), `{"name":"owned"}`, `{"name":"owned","ownerReferences":[`+reference+`]}`, 1)

		answer := s.mustCall(t, http.StatusUnprocessableEntity, http.MethodPost, clusters, "application/json", owned)
		if message, _ := answer["message"].(string); !strings.Contains(message, "metadata.ownerReferences") {
			t.Errorf("%s: message %q", reference, message)
		}
	}

	if after := mismatches(t); after != before {
		t.Errorf("%v more mismatches of declarative validation", after-before)
	}
}

// mismatches is how often the library has missed declarative validation.
func mismatches(t *testing.T) float64 {
	t.Helper()

	families, err := legacyregistry.DefaultGatherer.Gather()
	if err != nil {
		t.Fatal(err)
	}

	var sum float64

	for _, family := range families {
		if strings.HasSuffix(family.GetName(), "declarative_validation_mismatch_total") {
			for _, metric := range family.GetMetric() {
				sum += metric.GetCounter().GetValue()
			}
		}
	}

	return sum
}
