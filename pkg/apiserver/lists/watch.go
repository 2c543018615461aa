package lists

import (
	"net/http"
	"sync"
	"time"

	genericapiserver "k8s.io/apiserver/pkg/server"
	utilflowcontrol "k8s.io/apiserver/pkg/util/flowcontrol"
)

// AnswerTimeout returns how long an answer may take that its client does not read: the timeout of requests and a quarter of it,
// so that the library answers first where it can.
func AnswerTimeout(config *genericapiserver.Config) time.Duration {
	return config.RequestTimeout + config.RequestTimeout/4
}

// beginning is the time in which a watch sends what was there before: all objects, or the changes since a version. Until the
// client has read that, the watch holds all of it in memory, also what has been changed or deleted since.
//
// It is the library's signal that the watch is initialized, which priority and fairness waits for.
type beginning struct {
	outer *http.Request // has the signal of priority and fairness
	over  func()        // called once the beginning is over

	mu     sync.Mutex
	answer *http.ResponseController // nil when the watch has ended: it must not be touched then
}

// begin returns a watch whose client has so much time to read its beginning, and calls over after that. end has to be called when
// the watch has ended; over is called by then in any case.
func begin(w http.ResponseWriter, r *http.Request, timeout time.Duration, over func()) (watch *http.Request, end func()) {
	b := &beginning{outer: r, over: sync.OnceFunc(over), answer: http.NewResponseController(w)}
	// A writer that knows no deadline is one of a test.
	_ = b.answer.SetWriteDeadline(time.Now().Add(timeout))

	return r.WithContext(utilflowcontrol.WithInitializationSignal(r.Context(), b)), b.end
}

// Signal is called when the client has read the beginning, but for a few events.
func (b *beginning) Signal() {
	utilflowcontrol.WatchInitialized(b.outer.Context())
	b.stop(false)
}

// Wait does nothing: who waits has the signal of priority and fairness.
func (b *beginning) Wait() {}

func (b *beginning) end() { b.stop(true) }

func (b *beginning) stop(ended bool) {
	b.over()

	b.mu.Lock()
	defer b.mu.Unlock()

	if b.answer == nil {
		return
	}

	_ = b.answer.SetWriteDeadline(time.Time{}) // a connection of HTTP/1 serves more requests

	if ended {
		b.answer = nil
	}
}
