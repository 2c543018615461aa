package helm

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"

	"omni.texashpc.com/omni-cluster-operator/test/await"
)

// fault is what happens to writes of records that say one thing.
type fault struct {
	says    string // in the record's labels
	times   int    // how often it happens
	arrives bool   // the write takes effect, and the answer is lost
	code    int    // the answer; 0 breaks the connection
}

// faulty is a way to a cluster with a fault.
type faulty struct {
	next http.RoundTripper

	mu     sync.Mutex
	fault  fault
	writes int // of such records
}

// RoundTrip implements http.RoundTripper.
func (f *faulty) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.Method != http.MethodPut || !strings.Contains(request.URL.Path, "/secrets/") {
		return f.next.RoundTrip(request)
	}

	body, err := io.ReadAll(request.Body)
	if err != nil {
		return nil, err
	}

	request.Body = io.NopCloser(bytes.NewReader(body))

	hit, fault := f.hits(body)
	if !hit {
		return f.next.RoundTrip(request)
	}

	if fault.arrives {
		response, err := f.next.RoundTrip(request)
		if err != nil {
			return nil, err
		}

		_ = response.Body.Close()
	}

	if fault.code == 0 {
		return nil, io.ErrUnexpectedEOF
	}

	return &http.Response{StatusCode: fault.code, Body: io.NopCloser(strings.NewReader("no")), Request: request}, nil
}

func (f *faulty) hits(body []byte) (bool, fault) {
	f.mu.Lock()
	defer f.mu.Unlock()

	if f.fault.says == "" || !bytes.Contains(body, []byte(f.fault.says)) {
		return false, fault{}
	}

	f.writes++

	return f.writes <= f.fault.times, f.fault
}

// begin begins a fault, and counts anew.
func (f *faulty) begin(fault fault) {
	f.mu.Lock()
	defer f.mu.Unlock()

	f.fault, f.writes = fault, 0
}

// written returns how many records that say it were sent.
func (f *faulty) written() int {
	f.mu.Lock()
	defer f.mu.Unlock()

	return f.writes
}

// withFaults leads to the cluster of a release on a faulty way.
func (r *tried) withFaults() *faulty {
	f, target, config := &faulty{}, r.client.target, r.config()
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		f.next = next

		return f
	})

	target.Config = config
	r.client = New(target, logr.Discard(), time.Second)

	return f
}

const (
	saysDeployed = `"status":"deployed"`
	saysTested   = `"tested":"passed"`
)

// actions lead to an action, whose end is written into a record that says it.
var actions = map[string]struct {
	before func(r *tried)
	want   Action
	chart  string
	says   string
}{
	"install": {func(*tried) {}, ActionInstall, configMap("one"), saysDeployed},
	"upgrade": {func(r *tried) { r.want(ActionInstall, configMap("one")) }, ActionUpgrade, configMap("two"), saysDeployed},
	"rollback": {func(r *tried) {
		r.wanted.RollBack = true
		r.want(ActionInstall, configMap("one"))
		r.wantError(ActionUpgrade, configMap("two")+notValid, "Not-Valid")
	}, ActionRollback, configMap("two") + notValid, saysDeployed},
	"test": {func(r *tried) {
		r.wanted.Test = true
		r.want(ActionInstall, configMap("one")+hook("test", ""))
	}, ActionTest, configMap("one") + hook("test", ""), labelTested},
}

// Helm writes the result of an action once. What is lost on the way is sent again, and the action is told as it has ended.
func TestTheResultOfAnActionIsWrittenAgain(t *testing.T) {
	for name, fault := range map[string]fault{
		"the call is lost":   {times: 1},
		"the answer is lost": {times: 1, arrives: true},
		"503":                {times: 1, code: http.StatusServiceUnavailable},
		"429":                {times: 1, code: http.StatusTooManyRequests},
	} {
		for of, test := range actions {
			t.Run(of+", "+name, func(t *testing.T) {
				t.Parallel()

				r := newTried(t)
				way := r.withFaults()
				test.before(r)

				begun := fault
				begun.says = test.says
				way.begin(begun)
				r.want(test.want, test.chart)

				if got := way.written(); got != fault.times+1 {
					t.Errorf("it was written %d times", got)
				}

				observed, err := r.client.Observe(t.Context())
				if err != nil {
					t.Fatal(err)
				}

				if latest := observed.Latest(); latest.Status != StatusDeployed || test.want == ActionTest && latest.Tested != TestsPassed {
					t.Errorf("%+v", latest)
				}
			})
		}
	}
}

// The cluster is away when the revision of before is written, which is not deployed any more, and comes back.
func TestARevisionThatIsReplacedIsWrittenAgain(t *testing.T) {
	for _, of := range []string{"upgrade", "rollback"} {
		t.Run(of, func(t *testing.T) {
			t.Parallel()

			r, test := newTried(t), actions[of]
			way := r.withFaults()
			test.before(r)
			way.begin(fault{says: `"status":"superseded"`, times: 1, code: http.StatusServiceUnavailable})
			r.want(test.want, test.chart)

			observed, err := r.client.Observe(t.Context())
			if err != nil {
				t.Fatal(err)
			}

			for i := range observed.Revisions {
				if before := observed.Revisions[i]; before.Number != observed.Latest().Number && before.Status == StatusDeployed {
					t.Errorf("revision %d is still deployed", before.Number)
				}
			}
		})
	}
}

// Helm writes itself how tests go and have ended, before their result is noted.
func TestWhatTestsNoteIsWrittenAgain(t *testing.T) {
	t.Parallel()

	r, test := newTried(t), actions["test"]
	way := r.withFaults()
	test.before(r)
	way.begin(fault{says: saysDeployed, times: 3, code: http.StatusServiceUnavailable})
	r.want(test.want, test.chart)

	observed, err := r.client.Observe(t.Context())
	if err != nil || observed.Latest().Tested != TestsPassed {
		t.Errorf("tested: %q, %v", observed.Latest().Tested, err)
	}
}

// A failure that is not written leaves a revision that is made again: it does not wait for the cluster.
func TestAFailureIsWrittenOnce(t *testing.T) {
	t.Parallel()

	r := newTried(t)
	way := r.withFaults()
	r.want(ActionInstall, configMap("one"))
	way.begin(fault{says: `"status":"failed"`, times: 1000, code: http.StatusServiceUnavailable})
	r.wantError(ActionUpgrade, configMap("two")+notValid, "Not-Valid")

	if got := way.written(); got != 1 {
		t.Errorf("it was written %d times", got)
	}
}

// A cluster that takes no writes of Secrets still deletes: an uninstall does not wait until it may note that it has begun.
func TestAnUninstallThatCannotNoteThatItHasBegun(t *testing.T) {
	for name, hooks := range map[string]string{"without hooks": "", "with a hook": hook("pre-delete", "hook-succeeded")} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			r := newTried(t)
			way := r.withFaults()
			r.want(ActionInstall, configMap("one")+hooks)
			way.begin(fault{says: `"status":"uninstalling"`, times: 1000, code: http.StatusInternalServerError})

			r.wanted.Absent = true
			r.want(ActionUninstall, configMap("one")+hooks)

			if left := r.paths(); len(left) > 0 {
				t.Errorf("left: %v", left)
			}
		})
	}
}

// An action whose result cannot be written has not succeeded. If the cluster is away, it did not fail either.
func TestTheResultOfAnActionCannotBeWritten(t *testing.T) {
	for name, limit := range map[string]struct {
		code, writes int // at most
		reason       Reason
	}{
		"away":      {http.StatusServiceUnavailable, 100, ReasonUnreachable},
		"too large": {http.StatusRequestEntityTooLarge, 1, ReasonFailed},
		"refused":   {http.StatusForbidden, 1, ReasonForbidden},
	} {
		for of, test := range actions {
			t.Run(of+", "+name, func(t *testing.T) {
				t.Parallel()

				r := newTried(t)
				way := r.withFaults()
				test.before(r)
				r.settings.Timeout = 2 * time.Second

				way.begin(fault{says: test.says, times: 1000, code: limit.code})

				got, err := r.step(test.chart)

				var failure *Error
				if got != test.want || !errors.As(err, &failure) || failure.Reason != limit.reason || failure.Still != nil {
					t.Fatalf("%s: %v, want %s to fail as %s", got, err, test.want, limit.reason)
				}

				if limit.reason == ReasonUnreachable && !strings.Contains(failure.Message, "Helm's record, Secret sh.helm.release.v1.demo.v") {
					t.Error(failure.Message)
				}

				if way.written() > limit.writes {
					t.Errorf("it took %d writes", way.written())
				}

				// It is done again; a rollback, as one more revision.
				way.begin(fault{})
				r.settings.Timeout = await.Limit

				again := test.want
				if again == ActionRollback {
					again = ActionUnlock
				}

				r.want(again, test.chart)
			})
		}
	}
}
