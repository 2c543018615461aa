package validation

import (
	"encoding/json"
	"testing"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/rollout"
)

// FuzzOmniRolloutPolicy: validation never panics, and what it lets through can be used.
func FuzzOmniRolloutPolicy(f *testing.F) {
	for _, text := range []string{
		`{}`, `{"stages":[]}`, `{"clusterSelector":{},"stages":[{"name":"all"}]}`,
		`{"clusterSelector":{"matchExpressions":[{"key":"a","operator":"In"}]},"stages":[{"name":"a","clusterSelector":{}},{"name":"b","promotion":"Manual"}]}`,
		`{"clusterSelector":{},"stages":[{"name":"all","maxConcurrent":"10%","minQualified":0,"soakTime":"1h",` +
			`"windows":[{"days":["Sat"],"start":"02:00","duration":"4h","timeZone":"Europe/Berlin"}]}]}`,
		`{"clusterSelector":{},"stages":[{"name":"all","windows":[{"days":["Mon",""],"start":"24:00","duration":"-4h","timeZone":"a/../b"}]}]}`,
		`{"clusterSelector":{},"changes":["Manifests"],"arrivalTime":"9999999h","stages":[{"name":"all"}],"maxFailed":-1,` +
			`"freezes":[{"name":"f","from":"0001-01-01T00:00:00Z","until":"9999-12-31T23:59:59Z"}]}`,
	} {
		f.Add([]byte(text), "canary", "2026-11-28T06:00:00Z")
	}

	f.Fuzz(func(t *testing.T, text []byte, stage, until string) {
		policy := &v1alpha1.OmniRolloutPolicy{ObjectMeta: meta("production")}
		if json.Unmarshal(text, &policy.Spec) != nil {
			return
		}

		policy.Annotations = map[string]string{v1alpha1.AnnotationPromotePrefix + stage: until}
		for _, text := range WarningsForOmniRolloutPolicy(policy) {
			if len(text) > maxWarning {
				t.Errorf("a warning of %d bytes", len(text))
			}
		}

		if len(ValidateOmniRolloutPolicy(policy)) > 0 {
			return
		}

		if _, err := rollout.New(policy); err != nil {
			t.Errorf("%s is let through, and cannot be used: %v", text, err)
		}
	})
}
