package session

import (
	"strings"
	"testing"
	"time"

	"omni.texashpc.com/omni-cluster-operator/test/foreigntest"
)

// FuzzServiceAccountKey checks that any content of a Secret is parsed with a bounded amount of memory, and that no
// error shows any of it.
func FuzzServiceAccountKey(f *testing.F) {
	f.Add("")
	f.Add("OMNI_ENDPOINT=x\nOMNI_SERVICE_ACCOUNT_KEY=y")
	f.Add("eyJuYW1lIjoiYSIsInBncF9rZXkiOiJiIn0=")
	f.Add(testKeyText(f))

	f.Fuzz(func(t *testing.T, text string) {
		foreigntest.WantAllocated(t, 16<<20, func() {
			key, err := ParseServiceAccountKey([]byte(text))
			if (err == nil) == key.IsZero() {
				t.Errorf("key %v, error %v", key.IsZero(), err)
			}

			if err != nil && len(text) >= 24 && strings.Contains(err.Error(), text[:24]) {
				t.Errorf("the error shows what was read: %v", err)
			}
		})
	})
}

func testKeyText(f *testing.F) string {
	f.Helper()

	return encodeKey(f, "operator", newEntity(f, time.Now().Add(-time.Hour), 86400, 86400))
}
