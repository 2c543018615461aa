package apiserver

import (
	"bytes"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apiserver/pkg/registry/rest"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/healthz"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"
)

// newLog makes a logger and what collects its text. klog's own logger is left alone: the servers of other tests may
// still write to it.
func newLog() (*logged, klog.Logger) {
	said := &logged{}

	return said, textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(said)))
}

// logged is a log that several goroutines write and read.
type logged struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write implements io.Writer.
func (l *logged) Write(text []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()

	return l.text.Write(text)
}

// String is what was logged since the last Reset.
func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()

	return l.text.String()
}

// Reset forgets what was logged.
func (l *logged) Reset() {
	l.mu.Lock()
	defer l.mu.Unlock()

	l.text.Reset()
}

func TestTellReadiness(t *testing.T) {
	said, logger := newLog()

	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		// failing are the intervals in which the check fails, each from and until.
		failing := [][2]time.Duration{{0, 4 * time.Second}, {20 * time.Second, 100 * time.Second}}
		config := &genericapiserver.Config{ReadyzChecks: []healthz.HealthChecker{
			healthz.NamedGroupedCheck("disk", "storage", func(*http.Request) error {
				for _, span := range failing {
					if since := time.Since(begin); since >= span[0] && since < span[1] {
						return errors.New("error getting data from etcd")
					}
				}

				return nil
			}),
			healthz.NamedCheck("ping", func(*http.Request) error { return nil }),
		}}
		tellReadiness(logger, config)

		for time.Since(begin) < 2*time.Minute {
			for i, check := range config.ReadyzChecks {
				if err := check.Check(nil); err != nil && i == 1 {
					t.Error(err)
				}
			}

			time.Sleep(2 * time.Second)
		}

		if got := config.ReadyzChecks[0].(healthz.GroupedHealthChecker).GroupName(); got != "storage" || config.ReadyzChecks[0].Name() != "disk" {
			t.Errorf("%s of group %s", config.ReadyzChecks[0].Name(), got)
		}

		if got := config.ReadyzChecks[1].(healthz.GroupedHealthChecker).GroupName(); got != "ping" {
			t.Errorf("ping is of group %s", got)
		}
	})

	// At 20s, again a minute later, and the end at 100s. The start tells nothing.
	if got := strings.Count(said.String(), "Not ready"); got != 2 || strings.Count(said.String(), "error getting data from etcd") != 2 {
		t.Errorf("told %d times:\n%s", got, said)
	}

	if got := strings.Count(said.String(), `"Ready again" check="disk" after="1m20s"`); got != 1 {
		t.Errorf("told %d times that it passes:\n%s", got, said)
	}
}

// A start that does not come to its end says why.
func TestTellWhyTheStartIsNotReady(t *testing.T) {
	said, logger := newLog()

	synctest.Test(t, func(t *testing.T) {
		config := &genericapiserver.Config{ReadyzChecks: []healthz.HealthChecker{
			healthz.NamedCheck("request-header-ca", func(*http.Request) error { return errNoRequestHeaderCA }),
		}}
		tellReadiness(logger, config)

		for range 8 {
			if err := config.ReadyzChecks[0].Check(nil); !errors.Is(err, errNoRequestHeaderCA) {
				t.Error(err)
			}

			time.Sleep(2 * time.Second)
		}
	})

	if got := strings.Count(said.String(), "is not loaded yet"); got != 1 {
		t.Errorf("told %d times:\n%s", got, said)
	}
}

// While one of three members of an etcd hangs, every third check fails: that does not make the server not ready. A
// storage that fails without interruption does, and so does one that never worked.
func TestReadyWhileAMemberHangs(t *testing.T) {
	said, logger := newLog()

	for _, tc := range []struct {
		name  string
		fails func(look int) bool
		want  []int // the looks, two seconds apart, at which the server is not ready
	}{
		{"every third", func(look int) bool { return look%3 == 1 }, nil},
		{"twice, each time for four seconds", func(look int) bool { return look == 2 || look == 3 || look == 5 || look == 6 }, nil},
		{"from the third on", func(look int) bool { return look >= 2 }, []int{5, 6, 7, 8, 9}},
		{"from the start, until the fifth", func(look int) bool { return look < 4 }, []int{0, 1, 2, 3}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				look := 0
				config := &genericapiserver.Config{ReadyzChecks: []healthz.HealthChecker{
					healthz.NamedCheck("etcd", func(*http.Request) error {
						if tc.fails(look) {
							return errors.New("context deadline exceeded")
						}

						return nil
					}),
				}}
				tellReadiness(logger, config)

				var got []int

				for ; look < 10; look++ {
					if err := config.ReadyzChecks[0].Check(nil); err != nil {
						got = append(got, look)
					}

					time.Sleep(2 * time.Second)
				}

				if diff := cmp.Diff(tc.want, got); diff != "" {
					t.Errorf("not ready at (-want +got)\n%s", diff)
				}
			})
		})
	}

	// Only the uninterrupted failure is logged.
	if got := strings.Count(said.String(), "Not ready"); got != 1 {
		t.Errorf("told %d times:\n%s", got, said)
	}
}

// cachedKind is the storage of a kind, as far as readiness goes.
type cachedKind struct {
	rest.Storage

	err error
}

func (k *cachedKind) ReadinessCheck() error { return k.err }

// All caches have to be filled once. A cache that is filled again later does not make the server not ready.
func TestWatchCachesAreForTheStart(t *testing.T) {
	first, second := &cachedKind{}, &cachedKind{err: errors.New("not yet")}
	check := watchCaches(map[string]rest.Storage{"first": first, "second": second})

	if err := check(nil); err == nil || err.Error() != "the watch cache of second is not ready: not yet" {
		t.Errorf("while one fills: %v", err)
	}

	second.err = nil
	if err := check(nil); err != nil {
		t.Errorf("filled: %v", err)
	}

	first.err = errors.New("again")
	if err := check(nil); err != nil {
		t.Errorf("filled again: %v", err)
	}
}
