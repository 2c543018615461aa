package helm

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"helm.sh/helm/v4/pkg/release/common"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"omni.texashpc.com/omni-cluster-operator/test/foreigntest"
)

// addFailed writes records of revisions that failed, and returns what is observed of them.
func (f *fakeCluster) addFailed(t *testing.T, count int, manifest func(version int) string, config func(version int) map[string]any) Observed {
	t.Helper()

	var observed Observed

	for version := count; version > 0; version-- {
		f.add(t, applied(version, common.StatusFailed, manifest(version), config(version)))
		observed.Revisions = append(observed.Revisions, Revision{Number: version, Status: StatusFailed, Created: time.Unix(int64(version), 0)})
	}

	return observed
}

// largeValues are values of one revision that no other has, of some MiB. They become short when they are compressed.
func largeValues(mebibytes int) func(version int) map[string]any {
	return func(version int) map[string]any {
		text := fmt.Sprintf("of revision %2d. ", version)

		return map[string]any{"large": strings.Repeat(text, mebibytes<<20/len(text))}
	}
}

func oneObject(int) string { return object("a") }

// Somebody writes many records of revisions that failed. They are short and become large, and each is within its bounds: what an
// action keeps of all of them is bounded, too.
func TestManyFailedRevisions(t *testing.T) {
	foreigntest.Sequential(t)

	manyObjects := func(version int) string {
		var text strings.Builder
		for i := range 6_000 {
			text.WriteString("---\n" + object(fmt.Sprintf("a-%d-%d", version, i)))
		}

		return text.String()
	}
	few := func(int) map[string]any { return nil }

	for name, test := range map[string]struct {
		count    int
		manifest func(int) string
		config   func(int) map[string]any
		actions  []Action
	}{
		"values":  {20, oneObject, largeValues(8), []Action{ActionInstall, ActionUninstall}},
		"objects": {10, manyObjects, few, []Action{ActionUpgrade}},
	} {
		// Nothing is changed, so all actions find the same records.
		cluster := newFakeCluster(t)
		observed := cluster.addFailed(t, test.count, test.manifest, test.config)

		for _, action := range test.actions {
			t.Run(name+" "+string(action), func(t *testing.T) {
				var written atomic.Int32

				cluster.before = func(request *http.Request) {
					if request.Method != http.MethodGet {
						written.Add(1)
					}
				}

				c := New(Target{Config: cluster.config(), Name: "demo", Namespace: "apps"}, logr.Discard(), time.Second)

				var err error

				foreigntest.WantPeak(t, 128<<20, func() {
					err = c.Run(t.Context(), Request{Decision: Decision{Action: action}, Settings: Settings{Timeout: time.Minute}, Observed: &observed})
				})

				var failure *Error
				if !errors.As(err, &failure) || failure.Reason != ReasonRecord || !strings.Contains(failure.Message, "Helm's records of revisions") || written.Load() > 0 {
					t.Errorf("%v, and it wrote %d times", err, written.Load())
				}

				wantNothingHeld(t)
			})
		}
	}
}

// What an action keeps of revisions that failed counts while it is at work, however small the newest record is.
func TestWhatIsKeptOfFailedRevisionsCounts(t *testing.T) {
	foreigntest.Sequential(t)

	var held atomic.Int64

	cluster := newFakeCluster(t)
	cluster.configMaps = func(to http.ResponseWriter, _ *http.Request) {
		bytes, _ := heldMemory.Load()
		held.Store(bytes)
		refuse(to, apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "a", errors.New("not now")))
	}

	observed := cluster.addFailed(t, 4, oneObject, func(version int) map[string]any {
		if version == 4 {
			return nil
		}

		return largeValues(4)(version)
	})
	c := New(Target{Config: cluster.config(), Name: "demo", Namespace: "apps"}, logr.Discard(), time.Second)

	err := c.Run(t.Context(), Request{Decision: Decision{Action: ActionUninstall}, Settings: Settings{Timeout: time.Minute}, Observed: &observed})
	if err == nil || !strings.Contains(err.Error(), "not now") {
		t.Errorf("got %v", err)
	}

	if held.Load() < 12*mib-mib/2 {
		t.Errorf("%d MiB count", held.Load()/mib)
	}

	wantNothingHeld(t)
}

// The same values in each of them are kept once.
func TestFailedRevisionsWithTheSameValues(t *testing.T) {
	foreigntest.Sequential(t)

	cluster := newFakeCluster(t)
	observed := cluster.addFailed(t, 12, oneObject, func(int) map[string]any { return largeValues(3)(1) })
	c := New(Target{Config: cluster.config(), Name: "demo", Namespace: "apps"}, logr.Discard(), time.Second)

	err := c.Run(t.Context(), Request{Decision: Decision{Action: ActionUninstall}, Settings: Settings{Timeout: time.Minute}, Observed: &observed})
	if err != nil {
		t.Errorf("got %v", err)
	}

	wantNothingHeld(t)
}
