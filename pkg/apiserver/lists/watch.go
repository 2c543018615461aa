package lists

import (
	"bufio"
	"context"
	"net"
	"net/http"
	"sync"
	"time"

	"k8s.io/apiserver/pkg/endpoints/responsewriter"
	genericapiserver "k8s.io/apiserver/pkg/server"
	utilflowcontrol "k8s.io/apiserver/pkg/util/flowcontrol"
)

// AnswerTimeout returns how long an answer may take that its client does not read: the timeout of requests and a quarter of it,
// so that the library answers first where it can.
func AnswerTimeout(config *genericapiserver.Config) time.Duration {
	return config.RequestTimeout + config.RequestTimeout/4
}

// watchWriter is the answer to a watch. A write that its client does not read for the timeout ends the watch: until the client has
// read what a watch begins with, that is held in memory, also what has been changed or deleted since.
//
// It is the library's signal that the watch is initialized, which priority and fairness waits for, too. over is called once the
// client has read the beginning.
type watchWriter struct {
	http.ResponseWriter

	timeout time.Duration
	outer   context.Context //nolint:containedctx // has the signal of priority and fairness
	over    func()
	idle    *time.Timer // calls over for a watch that began with nothing, and for a WebSocket, which has no Flush

	mu          sync.Mutex
	set         time.Time // when the deadline was set; zero if there is none
	initialized bool
}

// watching returns an answer and a request for a watch. end has to be called when the watch has ended; over is called by then in
// any case.
func watching(w http.ResponseWriter, r *http.Request, timeout time.Duration, over func()) (answer http.ResponseWriter, watch *http.Request, end func()) {
	ww := &watchWriter{ResponseWriter: w, timeout: timeout, outer: r.Context(), over: sync.OnceFunc(over)}

	return responsewriter.WrapForHTTP1Or2(ww), r.WithContext(utilflowcontrol.WithInitializationSignal(r.Context(), ww)), ww.end
}

// Unwrap is for http.ResponseController.
func (w *watchWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *watchWriter) Write(text []byte) (int, error) {
	w.setDeadline()

	return w.ResponseWriter.Write(text)
}

// Flush sends what was written. Between events there is no deadline: with HTTP/2 it would end the watch.
func (w *watchWriter) Flush() {
	w.setDeadline()

	if http.NewResponseController(w.ResponseWriter).Flush() != nil {
		return // the next write fails, too
	}

	w.mu.Lock()
	defer w.mu.Unlock()

	_ = http.NewResponseController(w.ResponseWriter).SetWriteDeadline(time.Time{})
	w.set = time.Time{}

	if w.initialized {
		w.over()
	}
}

// setDeadline sets the deadline, unless that was done a moment ago.
func (w *watchWriter) setDeadline() {
	w.mu.Lock()
	defer w.mu.Unlock()

	if now := time.Now(); now.Sub(w.set) > w.timeout/8 {
		// A writer that knows no deadline is one of a test.
		_ = http.NewResponseController(w.ResponseWriter).SetWriteDeadline(now.Add(w.timeout))
		w.set = now
	}
}

// Hijack is for WebSockets.
func (w *watchWriter) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	connection, buffers, err := http.NewResponseController(w.ResponseWriter).Hijack()
	if err != nil {
		return nil, nil, err
	}

	bounded := &watchConn{Conn: connection, timeout: w.timeout}
	buffers.Writer.Reset(bounded)

	return bounded, buffers, nil
}

// Signal is called when the last event of the beginning is about to be written.
func (w *watchWriter) Signal() {
	utilflowcontrol.WatchInitialized(w.outer)

	w.mu.Lock()
	defer w.mu.Unlock()

	w.initialized = true
	w.idle = time.AfterFunc(Timeout, w.overIfIdle)
}

// Wait does nothing: who waits has the signal of priority and fairness.
func (w *watchWriter) Wait() {}

func (w *watchWriter) overIfIdle() {
	w.mu.Lock()
	defer w.mu.Unlock()

	if w.set.IsZero() {
		w.over()
	}
}

func (w *watchWriter) end() {
	w.mu.Lock()
	defer w.mu.Unlock()

	if w.idle != nil {
		w.idle.Stop()
	}

	_ = http.NewResponseController(w.ResponseWriter).SetWriteDeadline(time.Time{}) // a connection of HTTP/1 serves more requests
	w.over()
}

// watchConn is the connection of a WebSocket.
type watchConn struct {
	net.Conn

	timeout time.Duration
}

func (c *watchConn) Write(text []byte) (int, error) {
	if err := c.SetWriteDeadline(time.Now().Add(c.timeout)); err != nil {
		return 0, err
	}

	return c.Conn.Write(text)
}
