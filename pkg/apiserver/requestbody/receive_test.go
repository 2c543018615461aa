package requestbody

import (
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"omni.texashpc.com/omni-cluster-operator/test/foreigntest"
)

// stalled is a body that stops before its end, until it is released.
type stalled struct {
	left    int
	arrived func()
	release <-chan struct{}
}

func (s *stalled) Read(into []byte) (int, error) {
	if s.left == 0 {
		s.arrived()
		<-s.release

		return 0, io.ErrUnexpectedEOF
	}

	n := min(s.left, len(into))
	s.left -= n

	return n, nil
}

// TestSlowBodiesAreCharged: bodies that are announced, or come without a length, and do not end hold no more than bodies may that
// arrive, one user half of that. Small ones do not wait for them.
func TestSlowBodiesAreCharged(t *testing.T) {
	const each, users = 1<<20 - 1, 3

	times := foreigntest.AtOnce(200)

	for name, length := range map[string]int64{"announced": each + 1, "without a length": -1} {
		foreigntest.WantPeak(t, 2*Arriving, func() {
			handler := handlerFor(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })
			handler.wait = 100 * time.Millisecond

			release := make(chan struct{})

			var sending, settled sync.WaitGroup

			for user := range users {
				for range times {
					settled.Add(1)

					settle := sync.OnceFunc(settled.Done)
					request := requestOf(t.Context(), fmt.Sprint(user), &stalled{each, settle, release})
					request.ContentLength = length

					sending.Go(func() {
						handler.ServeHTTP(httptest.NewRecorder(), request)
						settle()
					})
				}
			}

			settled.Wait() // each has stopped, or was refused

			answer := httptest.NewRecorder()
			handler.ServeHTTP(answer, requestOf(t.Context(), "0", strings.NewReader(`{"a":1}`)))

			if answer.Code != http.StatusOK {
				t.Errorf("%s: a small one beside them: status %d", name, answer.Code)
			}

			close(release)
			sending.Wait()

			if giveBack, err := handler.arriving.Take(t.Context(), Arriving); err != nil {
				t.Errorf("%s: something was not given back", name)
			} else {
				giveBack()
			}
		})
	}
}

// TestOneUserHoldsHalf: however many large bodies one user sends, that of another user is next.
func TestOneUserHoldsHalf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		served := make(chan string, 32)
		handler := handlerFor(func(w http.ResponseWriter, r *http.Request) {
			served <- r.Header.Get("Name")

			time.Sleep(5 * time.Second) // the work

			w.WriteHeader(http.StatusOK)
		})

		// 43,000 values take more than a third of the budget.
		large := "[" + strings.Repeat("0,", 43_000) + strings.Repeat(" ", 200<<10) + "0]"

		send := func(name string) int {
			request, answer := requestOf(t.Context(), name, strings.NewReader(large)), httptest.NewRecorder()
			request.Header.Set("Name", name)
			handler.ServeHTTP(answer, request)

			return answer.Code
		}

		for range 24 {
			go send("a")
		}

		synctest.Wait()

		if begun := len(served); begun != 1 {
			t.Errorf("%d of one user's bodies are worked on", begun)
		}

		if status := send("b"); status != http.StatusOK || len(served) > 3 {
			t.Errorf("the other tenant's: status %d, after %d", status, len(served))
		}

		time.Sleep(5 * time.Minute)
		synctest.Wait()
	})
}

// TestSlowSendersAreCut: over HTTP/1 and HTTP/2, a body that does not arrive is answered, and the handler is done. One that arrived
// may take its time afterwards.
func TestSlowSendersAreCut(t *testing.T) {
	handler := handlerFor(func(w http.ResponseWriter, r *http.Request) {
		time.Sleep(400 * time.Millisecond) // longer than bodies have

		if err := r.Context().Err(); err != nil {
			t.Errorf("the request ended: %v", err)
		}

		w.WriteHeader(http.StatusCreated)
	})
	handler.grace = 200 * time.Millisecond

	server := httptest.NewUnstartedServer(withDeadline(handler))
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)

	for _, version := range []string{"http/1.1", "h2"} {
		config := server.Client().Transport.(*http.Transport).TLSClientConfig.Clone()
		config.NextProtos = []string{version}
		client := &http.Client{Transport: &http.Transport{TLSClientConfig: config, ForceAttemptHTTP2: version == "h2", TLSNextProto: nextProtocols(version)}}

		reader, writer := io.Pipe()

		go func() { _, _ = io.WriteString(writer, `{"a":`) }()

		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL, reader)
		if err != nil {
			t.Fatal(err)
		}

		request.ContentLength = 100
		request.Header.Set("Content-Type", "application/json")

		response, err := client.Do(request)
		if err != nil {
			t.Fatal(err)
		}

		text, _ := io.ReadAll(response.Body)
		_, _ = response.Body.Close(), writer.Close()

		if response.StatusCode != http.StatusRequestTimeout || !strings.Contains(string(text), "5 bytes of the request body arrived within 200ms") {
			t.Errorf("%s: status %d: %s", version, response.StatusCode, text)
		}

		response, err = client.Post(server.URL, "application/json", strings.NewReader(`{"a":1}`))
		if err != nil {
			t.Fatal(err)
		}

		_ = response.Body.Close()

		if response.StatusCode != http.StatusCreated || response.ProtoMajor != map[string]int{"h2": 2, "http/1.1": 1}[version] {
			t.Errorf("%s: status %d by %s", version, response.StatusCode, response.Proto)
		}

		client.CloseIdleConnections()
	}
}

// nextProtocols turns HTTP/2 off, unless it is wanted.
func nextProtocols(version string) map[string]func(string, *tls.Conn) http.RoundTripper {
	if version == "h2" {
		return nil
	}

	return map[string]func(string, *tls.Conn) http.RoundTripper{}
}

// TestLongBodiesAreNotRead: a body that is longer than allowed is refused by its announced length; without one, when it has become
// too long.
func TestLongBodiesAreNotRead(t *testing.T) {
	for length, want := range map[int64]int{MaxBytes + 1: 0, -1: MaxBytes + 1} {
		body := &counted{Reader: strings.NewReader(strings.Repeat(" ", 3*MaxBytes))}
		request := requestOf(t.Context(), "a", body)
		request.ContentLength = length

		answer := httptest.NewRecorder()
		handlerFor(func(http.ResponseWriter, *http.Request) { t.Error("it was passed on") }).ServeHTTP(answer, request)

		if answer.Code != http.StatusRequestEntityTooLarge || !strings.Contains(answer.Body.String(), "limit is 1048576") || body.read != want {
			t.Errorf("length %d: status %d after %d bytes: %s", length, answer.Code, body.read, answer.Body)
		}
	}
}

// counted counts what is read.
type counted struct {
	io.Reader

	read int
}

func (c *counted) Read(into []byte) (int, error) {
	n, err := c.Reader.Read(into)
	c.read += n

	return n, err
}

// The library answers a body that ends too early.
func TestBodiesThatTheLibraryAnswers(t *testing.T) {
	var met error

	handler := handlerFor(func(_ http.ResponseWriter, r *http.Request) { _, met = io.ReadAll(r.Body) })

	release := make(chan struct{})
	close(release)
	handler.ServeHTTP(httptest.NewRecorder(), requestOf(t.Context(), "a", &stalled{5, func() {}, release}))

	if met != io.ErrUnexpectedEOF {
		t.Errorf("the library meets %v", met)
	}
}
