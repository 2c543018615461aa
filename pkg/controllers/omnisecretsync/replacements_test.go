package omnisecretsync

import (
	"net/http"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// A copy of another type is deleted to be made again, and the creation does not arrive: the next run makes it, without a look at Omni,
// and does not say that somebody deleted it. Later it waits for Omni like each copy that is gone.
func TestACopyThatIsReplacedIsNotToldAsDeleted(t *testing.T) {
	for name, late := range map[string]bool{"at once": false, "later": true, "when a finalizer is off": false} {
		t.Run(name, func(t *testing.T) {
			m, now := newMover(t), time.Now()
			m.r.options.Now = func() time.Time { return now }
			owners, parent := m.withoutOmni()

			m.to("apps", "a")
			m.settle()
			m.all()

			m.sync.Status.LastSyncTime = &metav1.Time{Time: now.Add(-time.Hour)}
			m.store.secrets["apps/a"].Type = "other"

			if name == "when a finalizer is off" {
				m.store.secrets["apps/a"].Finalizers = []string{"their/finalizer"}
				m.run() // deletes it
				m.run() // finds it still there

				if m.store.secrets["apps/a"].DeletionTimestamp == nil {
					t.Fatal("it is not being deleted")
				}

				delete(m.store.secrets, "apps/a")
			}

			m.store.routeless = func(r *http.Request) bool {
				return r.Method == http.MethodPost && r.URL.Query().Get("dryRun") == "" && strings.HasSuffix(r.URL.Path, "/secrets")
			}

			if m.run(); m.store.names() != "" {
				t.Fatalf("the cluster has %q", m.store.names())
			}

			m.store.routeless = nil

			if late {
				now = now.Add(time.Hour)

				if outcome := m.run(); outcome.Reason() != v1alpha1.ReasonClusterNotInOmni {
					t.Errorf("%s: %s", outcome.Reason(), outcome.Message())
				}

				owners.Note(parent)
			}

			m.settle()

			if told := m.all(); m.store.names() != "apps/a" || !strings.Contains(told, "Replaced Secret apps/a") || strings.Contains(told, "deleted there") {
				t.Errorf("the cluster has %q; events:\n%s", m.store.names(), told)
			}

			// One that somebody deletes is told as that.
			delete(m.store.secrets, "apps/a")
			owners.Note(parent)
			m.settle()

			if told := m.all(); !strings.Contains(told, "deleted there") {
				t.Errorf("events:\n%s", told)
			}
		})
	}
}
