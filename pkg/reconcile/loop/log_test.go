package loop

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// At -v=1 every phase that ran is a line, with the reason and without the message; at 0 none is.
func TestPhasesAreLogged(t *testing.T) {
	for verbosity, want := range map[int][]string{
		0: nil,
		1: {"First continue Found", "Second wait Error"},
	} {
		f := newFixture(t, connection(), phase("First", Continue("Found", "found it"), nil), phase("Second", Outcome{}, errors.New("boom")),
			phase("Third", Continue("Fine", "third"), nil))

		var lines []string

		log := funcr.NewJSON(func(line string) {
			if !strings.Contains(line, "Phase ended") {
				return
			}

			if strings.Contains(line, "boom") || !strings.Contains(line, `"took":"`) {
				t.Errorf("line %s", line)
			}

			lines = append(lines, fmt.Sprint(valueIn(line, "phase"), " ", valueIn(line, "outcome"), " ", valueIn(line, "reason")))
		}, funcr.Options{Verbosity: verbosity})

		r := New(f.kind, Settings{Client: f.client, Events: f.events, Timeout: time.Minute})
		request := reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "team", Name: "main"}}

		if _, err := r.Reconcile(logf.IntoContext(t.Context(), log), request); err == nil {
			t.Error("no error")
		}

		if diff := cmp.Diff(want, lines); diff != "" {
			t.Errorf("-v=%d: %s", verbosity, diff)
		}
	}
}

// A phase that postpones changes no condition, so its line has the message, too.
func TestAPostponedPhaseIsLoggedWithItsMessage(t *testing.T) {
	f := newFixture(t, connection(), phase("First", Postpone(time.Second, "NotYet", "the mirror is not filled"), nil))

	var messages []string

	log := funcr.NewJSON(func(line string) {
		if strings.Contains(line, "Phase ended") {
			messages = append(messages, valueIn(line, "message"))
		}
	}, funcr.Options{Verbosity: 1})

	r := New(f.kind, Settings{Client: f.client, Events: f.events, Timeout: time.Minute})
	request := reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "team", Name: "main"}}

	if _, err := r.Reconcile(logf.IntoContext(t.Context(), log), request); err != nil {
		t.Error(err)
	}

	if diff := cmp.Diff([]string{"the mirror is not filled"}, messages); diff != "" {
		t.Error(diff)
	}
}

// valueIn is a text value of a line of JSON.
func valueIn(line, key string) string {
	_, rest, _ := strings.Cut(line, fmt.Sprintf("%q:\"", key))
	value, _, _ := strings.Cut(rest, `"`)

	return value
}
