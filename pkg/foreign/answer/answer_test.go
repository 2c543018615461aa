package answer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"omni.texashpc.com/omni-cluster-operator/test/foreigntest"
)

func many(text string, count int) string {
	return strings.TrimSuffix(strings.Repeat(text+",", count), ",")
}

func estimate(text string) int64 {
	m := meter{}
	for rest := []byte(text); len(rest) > 0; {
		taken, _ := m.add(rest)
		rest = rest[taken:]
	}

	return m.memory
}

// held is what a function's result takes of the heap.
func held(run func() any) uint64 {
	before := foreigntest.LiveBytes()
	result := run()
	after := foreigntest.LiveBytes()

	runtime.KeepAlive(result)

	return uint64(max(after-before, 0))
}

// The estimate is not far below what decoders keep, whatever is sent to make them take much.
func TestEstimate(t *testing.T) {
	const count = 20_000

	for name, test := range map[string]struct {
		text string
		into func() any
	}{
		"empty Pods":          {`{"items":[` + many(`{}`, count) + `]}`, func() any { return &corev1.PodList{} }},
		"null Pods":           {`{"items":[` + many(`null`, count) + `]}`, func() any { return &corev1.PodList{} }},
		"empty Deployments":   {`{"items":[` + many(`{}`, count) + `]}`, func() any { return &appsv1.DeploymentList{} }},
		"empty Secrets":       {`{"items":[` + many(`{}`, count) + `]}`, func() any { return &corev1.SecretList{} }},
		"empty metadata":      {`{"items":[` + many(`{}`, count) + `]}`, func() any { return &metav1.PartialObjectMetadataList{} }},
		"managedFields":       {`{"metadata":{"managedFields":[` + many(`{}`, count) + `]}}`, func() any { return &corev1.Namespace{} }},
		"empty containers":    {`{"spec":{"containers":[` + many(`{}`, count) + `]}}`, func() any { return &corev1.Pod{} }},
		"empty volumes":       {`{"spec":{"volumes":[` + many(`{}`, count) + `]}}`, func() any { return &corev1.Pod{} }},
		"free-form objects":   {`{"items":[` + many(`{}`, count) + `]}`, func() any { return &map[string]any{} }},
		"free-form lists":     {`{"items":[` + many(`[]`, count) + `]}`, func() any { return &map[string]any{} }},
		"free-form numbers":   {`{"items":[` + many(`1`, count) + `]}`, func() any { return &map[string]any{} }},
		"free-form fields":    {`{"items":[` + many(`{"a":1,"b":"c"}`, count) + `]}`, func() any { return &map[string]any{} }},
		"nested lists":        {strings.Repeat(`{"a":[`, 100) + many(`{}`, count) + strings.Repeat(`]}`, 100), func() any { return &map[string]any{} }},
		"pointers to structs": {`{"items":[` + many(`{"spec":{"affinity":{},"securityContext":{},"dnsConfig":{}}}`, count/10) + `]}`, func() any { return &corev1.PodList{} }},
	} {
		t.Run(name, func(t *testing.T) {
			into := test.into()
			got := held(func() any {
				if err := json.Unmarshal([]byte(test.text), into); err != nil {
					t.Error(err)
				}

				return into
			})

			// Half, because slices of Go have room to grow.
			if least := int64(got) / 2; estimate(test.text) < least {
				t.Errorf("estimated %d KiB, decoders keep %d KiB", estimate(test.text)>>10, got>>10)
			}
		})
	}
}

// What real objects take is not overestimated so much that they would be refused.
func TestEstimateOfRealObjects(t *testing.T) {
	pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web-7d4b9c6f5-x2x7k", Namespace: "shop", Labels: map[string]string{"app": "web", "pod-template-hash": "7d4b9c6f5"}}}
	for i := range 3 {
		container := corev1.Container{Name: fmt.Sprintf("container-%d", i), Image: "registry.example.com/team/program:v1.2.3"}
		for j := range 20 {
			container.Env = append(container.Env, corev1.EnvVar{Name: fmt.Sprintf("SETTING_%d", j), Value: "a value of ordinary length"})
		}

		pod.Spec.Containers = append(pod.Spec.Containers, container)
	}

	one, err := json.Marshal(pod)
	if err != nil {
		t.Fatal(err)
	}

	if got, most := estimate(`{"items":[`+many(string(one), 500)+`]}`), int64(40<<20); got > most {
		t.Errorf("500 Pods of %d KiB are estimated as %d MiB", len(one)>>10, got>>20)
	}
}

func reader(t *testing.T, text io.Reader, limits Limits, key any) *Reader {
	t.Helper()

	r := NewReader(t.Context(), io.NopCloser(text), limits, key)
	t.Cleanup(func() { _ = r.Close() })

	return r
}

// endless repeats a text.
type endless struct {
	text string
	next int
}

func (e *endless) Read(buffer []byte) (int, error) {
	for i := range buffer {
		buffer[i] = e.text[e.next]
		e.next = (e.next + 1) % len(e.text)
	}

	return len(buffer), nil
}

func TestLimits(t *testing.T) {
	limits := Limits{Bytes: 1 << 20, Memory: 4 << 20, Small: 1 << 20}
	stream := limits
	stream.Stream = true
	text := Limits{Bytes: 1 << 20, Small: 1 << 20}

	for name, test := range map[string]struct {
		text   io.Reader
		limits Limits
		says   string // empty: it is read to its end
	}{
		"nothing":                  {strings.NewReader(""), limits, ""},
		"an object":                {strings.NewReader(`{"a":"}{[\"[[[","b":[{}]}`), limits, ""},
		"endless text":             {&endless{text: "x"}, limits, "more than 1 MiB"},
		"endless string":           {io.MultiReader(strings.NewReader(`{"a":"`), &endless{text: "{},"}), limits, "more than 1 MiB"},
		"endless objects":          {io.MultiReader(strings.NewReader(`{"items":[`), &endless{text: "{},"}), limits, "more than 4 MiB of memory"},
		"endless nulls":            {io.MultiReader(strings.NewReader(`{"items":[`), &endless{text: "null,"}), limits, "more than 4 MiB of memory"},
		"endless depth":            {&endless{text: "["}, limits, "in more than 256 levels"},
		"endless spaces":           {&endless{text: " "}, stream, "more than 1 MiB"},
		"many events":              {strings.NewReader(strings.Repeat(`{"type":"ADDED","object":{"a":[{},{}]}}`+"\n", 100_000)), stream, ""},
		"as many in one":           {strings.NewReader(strings.Repeat(`{"type":"ADDED","object":{"a":[{},{}]}}`+"\n", 100_000)), limits, "more than"},
		"an endless event":         {io.MultiReader(strings.NewReader(`{"type":"ADDED","object":{"a":[`), &endless{text: "{},"}), stream, "of memory"},
		"text is not decoded":      {strings.NewReader(strings.Repeat("[{},", 100_000)), text, ""},
		"text that does not end":   {&endless{text: "[{},"}, text, "more than 1 MiB"},
		"more ends than beginning": {strings.NewReader(strings.Repeat("]}", 1000)), limits, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var err error

			foreigntest.WantAllocated(t, 1<<20, func() { _, err = io.Copy(io.Discard, reader(t, test.text, test.limits, nil)) })

			var limit *LimitError
			if test.says == "" && err != nil || test.says != "" && (!errors.As(err, &limit) || !strings.Contains(err.Error(), test.says)) {
				t.Errorf("got %v, want %q", err, test.says)
			}
		})
	}
}

// Large answers queue, small ones do not, and whoever stops waiting gives everything back.
func TestLargeAnswersShareABudget(t *testing.T) {
	limits := Limits{Bytes: 32 << 20, Memory: 32 << 20, Small: 1 << 10}
	large := `{"a":"` + strings.Repeat("x", 10<<10) + `"}`

	first := reader(t, strings.NewReader(large), limits, "one")
	if _, err := io.Copy(io.Discard, first); err != nil {
		t.Fatal(err)
	}

	if _, err := io.Copy(io.Discard, reader(t, strings.NewReader(`{"a":"b"}`), limits, "one")); err != nil {
		t.Errorf("a small one: %v", err)
	}

	gone, cancel := context.WithCancel(t.Context())
	cancel()

	refused := func(key string) {
		second := NewReader(gone, io.NopCloser(strings.NewReader(large)), limits, key)
		if _, err := io.Copy(io.Discard, second); !errors.Is(err, context.Canceled) {
			t.Errorf("a second large one of %s: %v", key, err)
		}
	}

	refused("one")

	if _, err := io.Copy(io.Discard, reader(t, strings.NewReader(large), limits, "another")); err != nil {
		t.Errorf("a large one of another server: %v", err)
	}

	refused("a third")

	if err := errors.Join(first.Close(), first.Close()); err != nil {
		t.Error(err)
	}

	if _, err := io.Copy(io.Discard, reader(t, strings.NewReader(large), limits, "one")); err != nil {
		t.Errorf("the next one: %v", err)
	}
}

// A watch holds no slot between its events.
func TestAWatchHoldsNoSlot(t *testing.T) {
	limits := Limits{Bytes: 32 << 20, Memory: 32 << 20, Small: 1 << 10, Stream: true}
	event := `{"a":"` + strings.Repeat("x", 10<<10) + `"}` + "\n"

	watch := reader(t, strings.NewReader(event+event), limits, "one")
	if _, err := io.ReadFull(watch, make([]byte, len(event))); err != nil {
		t.Fatal(err)
	}

	if taken, _ := large.Load(); taken != 0 {
		t.Errorf("%d bytes are held", taken)
	}
}

func FuzzMeter(f *testing.F) {
	f.Add([]byte(`{"items":[{},null,{"a":[1,"b\"",{}]}]}`))
	f.Add([]byte(`[[[{"a":"\\"}]]]`))

	f.Fuzz(func(t *testing.T, text []byte) {
		if len(text) > 64<<10 {
			return
		}

		var decoded any
		if json.Unmarshal(text, &decoded) != nil {
			decoded = nil
		}

		r := NewReader(t.Context(), io.NopCloser(strings.NewReader(string(text))), Limits{Bytes: 64 << 10, Memory: 64 << 20, Small: 64 << 20}, nil)
		foreigntest.WantAllocated(t, 1<<20, func() { _, _ = io.Copy(io.Discard, r) })

		// A text that is JSON closes everything that it opens.
		if decoded != nil && r.err == nil && (r.meter.depth != 0 || r.meter.text) {
			t.Errorf("%d containers open at the end", r.meter.depth)
		}
	})
}
