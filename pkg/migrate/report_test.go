package migrate

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// A run ends without an error if no other run is needed. An object that is not Ready, and was not before, is in the report but
// does not count, unless this command has left something in it that only another run takes away.
func TestEndOfARun(t *testing.T) {
	export := `{clusterRef: {name: c}, targetSecretRef: {name: t}, serviceAccount: {user: u, groups: [g]}, ttl: 24h, deletionPolicy: Delete}`

	for name, test := range map[string]struct {
		kind, before, spec, wrote string // wrote are the fields of the spec that this command has written
		wasReady                  bool
		status                    string
		fails, told               string
	}{
		"ready":               {kind: "OmniKubeconfigExport", spec: export, wasReady: true, status: "True"},
		"ready now":           {kind: "OmniKubeconfigExport", spec: export, status: "True"},
		"not ready as before": {kind: "OmniKubeconfigExport", spec: export, status: "False", told: "1 objects are not Ready, and were not before"},
		"permitted and not ready": {
			kind: "OmniSecretSync", before: fmt.Sprintf(syncSpec, ""), spec: fmt.Sprintf(syncSpec, ", adopt: true"), wrote: `{"f:adopt":{}}`, status: "False",
			fails: "1 objects keep what this command gave them for the takeover", told: "1 objects are not Ready, and were not before",
		},
		"permitted by its user and not ready": {
			kind: "OmniSecretSync", spec: fmt.Sprintf(syncSpec, ", adopt: true"), status: "False", told: "1 objects are not Ready, and were not before",
		},
		"suspended": {kind: "OmniCluster", spec: cluster + ", suspend: true, changePolicy: Apply}", status: "False"},
	} {
		t.Run(name, func(t *testing.T) {
			if test.before == "" {
				test.before = test.spec
			}

			old, live := stored(t, test.kind, "", test.before), stored(t, test.kind, "", test.spec)
			for obj, status := range map[*unstructured.Unstructured]string{old: fmt.Sprintf("%t", test.wasReady), live: test.status} {
				obj.Object["status"] = map[string]any{"conditions": []any{
					map[string]any{"type": "Ready", "status": strings.ToUpper(status[:1]) + status[1:], "reason": "R", "message": "m", "observedGeneration": int64(3)},
				}}
			}

			if test.wrote != "" {
				live.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: fieldManager, FieldsV1: metav1.NewFieldsV1(`{"f:spec":` + test.wrote + `}`)}})
			}

			live.SetGeneration(3)

			m := migrationOn(fakeHub(live), old)

			err := m.verify(t.Context())
			if (err != nil) != (test.fails != "") || err != nil && !strings.Contains(err.Error(), test.fails) {
				t.Errorf("%v, want %q\n%+v", err, test.fails, m.report.Results)
			}

			var out bytes.Buffer
			if err := m.report.Print(&out); err != nil {
				t.Fatal(err)
			}

			if told := strings.Contains(out.String(), "were not before"); told != (test.told != "") || !strings.Contains(out.String(), test.told) {
				t.Errorf("the report is\n%s", out.String())
			}
		})
	}
}
