package requestbody

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"k8s.io/apiserver/pkg/authentication/user"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/client-go/kubernetes/scheme"

	"omni.texashpc.com/omni-cluster-operator/pkg/registry/memory"
)

// handlerFor is the handler in front of another one.
func handlerFor(next http.HandlerFunc) bodies {
	handler := newBodies(Budget)
	handler.next, handler.serializer, handler.maxBytes, handler.wait = next, scheme.Codecs, MaxBytes, time.Minute

	return handler
}

// requestOf is a request of a user that creates something.
func requestOf(ctx context.Context, name string, body io.Reader) *http.Request {
	request := httptest.NewRequestWithContext(genericapirequest.WithUser(ctx, &user.DefaultInfo{Name: name}), http.MethodPost, "/", body)
	request.Header.Set("Content-Type", "application/json")

	return request
}

// impatient is the context of one who does not wait.
func impatient(t *testing.T) context.Context {
	t.Helper()

	ctx, cancel := context.WithCancel(t.Context())
	cancel()

	return ctx
}

// TestBodiesShareABudget: a large request waits for another one, a small request does not wait, and a client that
// waited too long is asked to try again later.
func TestBodiesShareABudget(t *testing.T) {
	inside, release := make(chan struct{}), make(chan struct{})
	handler := handlerFor(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Wait") != "" {
			inside <- struct{}{}
			<-release
		}

		w.WriteHeader(http.StatusOK)
	})

	large := "[" + strings.Repeat("{},", 25_000) + "1]"

	// The time to wait counts from the request's arrival and includes the check of its body, which takes long on a busy
	// machine: only the request that is to be refused has a short one.
	impatient := handler
	impatient.wait = 50 * time.Millisecond

	send := func(handler http.Handler, name, body, wait string) *httptest.ResponseRecorder {
		request := requestOf(t.Context(), name, strings.NewReader(body))
		request.Header.Set("Wait", wait)

		recorder := httptest.NewRecorder()
		handler.ServeHTTP(recorder, request)

		return recorder
	}

	first := make(chan *httptest.ResponseRecorder)
	for _, name := range []string{"a", "b"} {
		go func() { first <- send(handler, name, large, "yes") }()
		<-inside
	}

	refused := send(impatient, "c", large, "")
	if refused.Code != http.StatusTooManyRequests || refused.Header().Get("Retry-After") == "" || !strings.Contains(refused.Body.String(), "too many large requests") {
		t.Errorf("the third: status %d, %v: %s", refused.Code, refused.Header(), refused.Body)
	}

	if small := send(handler, "c", `{"a":1}`, ""); small.Code != http.StatusOK {
		t.Errorf("a small one: status %d: %s", small.Code, small.Body)
	}

	close(release)

	for range 2 {
		if got := <-first; got.Code != http.StatusOK {
			t.Errorf("one of the first: status %d", got.Code)
		}
	}

	if again := send(handler, "c", large, ""); again.Code != http.StatusOK {
		t.Errorf("after them: status %d: %s", again.Code, again.Body)
	}
}

// TestBudgetIsHeldByTheWork: what a request takes of the budget is given back when its work is done, and not when the request
// has ended, or when its answer has been read.
func TestBudgetIsHeldByTheWork(t *testing.T) {
	var work func(http.ResponseWriter, *http.Request)

	handler := handlerFor(func(w http.ResponseWriter, r *http.Request) { work(w, r) })

	taken := func(expected bool) {
		t.Helper()

		giveBack, err := handler.work.Take(impatient(t), Budget)
		if free := err == nil; free == expected {
			t.Errorf("the budget is free: %t", free)
		} else if free {
			giveBack()
		}
	}

	send := func() {
		handler.ServeHTTP(httptest.NewRecorder(), requestOf(t.Context(), "a", strings.NewReader(`{"a":1}`)))
	}

	for name, begin := range map[string]func(http.ResponseWriter){
		"a status": func(w http.ResponseWriter) { w.WriteHeader(http.StatusOK) },
		"a text":   func(w http.ResponseWriter) { _, _ = w.Write([]byte("a")) },
	} {
		work = func(w http.ResponseWriter, r *http.Request) {
			t.Log("the answer begins with", name)
			taken(true)
			begin(w)
			taken(false)

			if _, err := memory.Retain(r.Context()); err == nil {
				t.Error("work may begin that nobody counts")
			}
		}

		send()
	}

	var done func()

	work = func(_ http.ResponseWriter, r *http.Request) {
		var err error
		if done, err = memory.Retain(r.Context()); err != nil {
			t.Error(err)
		}
	}

	send()
	taken(true)
	done()
	taken(false)
}

// A patch is merged, and costs that, whatever parameters its Content-Type has: the library does not read them.
func TestMergedBytes(t *testing.T) {
	body := []byte(`{"a":{"b":"` + strings.Repeat("x", 990) + `"}}`)

	for contentType, merged := range map[string]bool{
		"application/merge-patch+json":                  true,
		"application/merge-patch+json; charset=utf-8":   true,
		"application/merge-patch+json;a=1;a=1":          true, // no media type by RFC 2045
		"application/strategic-merge-patch+json;;nn;a=": true,
		"application/json":                              false,
		"application/json-patch+json":                   true,
		"application/apply-patch+yaml":                  false,
	} {
		request := httptest.NewRequestWithContext(t.Context(), http.MethodPatch, "/", nil)
		request.Header.Set("Content-Type", contentType)

		if got := mergedBytes(request, body, jsonPatch{}); (got > 0) != merged || merged && got < 2*int64(len(body)) {
			t.Errorf("%q: %d", contentType, got)
		}
	}
}

// What a JSON patch copies costs as much as its longest pointer is deep.
func TestMergedBytesOfCopies(t *testing.T) {
	request := httptest.NewRequestWithContext(t.Context(), http.MethodPatch, "/", nil)
	request.Header.Set("Content-Type", "application/json-patch+json")

	const deep = 1000

	pointer := strings.Repeat(`\/a`, deep)

	for body, want := range map[string]jsonPatch{
		`[{"op":"add","path":"/spec/a","value":"op=copy"},{"op":"test","path":"/a/b/c"}]`: {levels: 3},
		`[{"op":"copy","from":"` + pointer + `","path":"/a"}]`:                            {copies: true, levels: deep},
		`[{"op":"test","op":"copy","path":"/a","path":"` + pointer + `","Path":"/a"}]`:    {copies: true, levels: deep},
		`[{"op":"copy","path":1}]`: {copies: true},
		`{"op":"copy"}`:            {},
	} {
		got := readJSONPatch(request, []byte(body))
		if got != want {
			t.Errorf("%.80s: %+v, want %+v", body, got, want)
		}

		if bytes := mergedBytes(request, []byte(body), got); want.copies && bytes < maxCopied*int64(want.levels) {
			t.Errorf("%.80s: %d bytes", body, bytes)
		}
	}
}
