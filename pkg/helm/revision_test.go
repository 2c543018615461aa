package helm

import (
	"reflect"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"omni.texashpc.com/omni-cluster-operator/pkg/foreign/foreigntest"
)

// labelsOf are the labels of a record of ours.
func labelsOf(changes ...string) map[string]string {
	labels := map[string]string{
		"owner": "helm", "name": "demo", "version": "3", "status": "deployed", "modifiedAt": "1767355200",
		labelRevision: "3", labelOwner: "uid", labelHub: "hub-1", labelGeneration: "7", labelProcess: "this", labelContent: "content",
		labelAttempt: "attempt", labelChartVersion: "1.0.0", labelTested: "Passed",
	}

	for i := 0; i < len(changes); i += 2 {
		labels[changes[i]] = changes[i+1]
	}

	return labels
}

// A server may send labels that no API server accepts. What is read of them gets into statuses.
func TestHostileLabels(t *testing.T) {
	long := strings.Repeat("x", 1<<20)

	for name := range labelsOf(labelInterrupted, "true") {
		for what, value := range map[string]string{"long": long, "two lines": "a\nb"} {
			record := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Labels: labelsOf(name, value)}}

			// What is kept of a label, or looked at, is no larger than a label may be.
			foreigntest.WantAllocated(t, 64<<10, func() {
				got, _ := parseRevision(record)

				for field, fields := 0, reflect.ValueOf(got); field < fields.NumField(); field++ {
					if text := fields.Field(field); text.Kind() == reflect.String && (text.Len() > validation.LabelValueMaxLength || strings.Contains(text.String(), "\n")) {
						t.Errorf("%s in label %s: %s has %d bytes", what, name, fields.Type().Field(field).Name, text.Len())
					}
				}
			})
		}
	}

	got, ok := parseRevision(&metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Labels: labelsOf()}})
	if !ok || got.Number != 3 || got.ChartVersion != "1.0.0" || got.Owner != "uid" {
		t.Errorf("a record of ours: %+v, %t", got, ok)
	}
}
