package quota

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/testutil"
)

// object has a size that depends on its filler.
func object(namespace, name, version string, filler int) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: name, ResourceVersion: version, Annotations: map[string]string{"f": strings.Repeat("x", filler)},
	}}
}

func newLedger(limits Limits) *Ledger {
	l := NewLedger(limits, json.NewSerializerWithOptions(json.DefaultMetaFactory, nil, nil, json.SerializerOptions{}))
	close(l.counted)

	return l
}

var kind = schema.GroupResource{Resource: "things"}

func must(t *testing.T, err error) {
	t.Helper()

	if err != nil {
		t.Fatal(err)
	}
}

// TestLateAnswers: a write that ends late does not overwrite a newer record from the watch.
func TestLateAnswers(t *testing.T) {
	l := newLedger(Limits{NamespaceObjects: 1})
	room := l.Begin(kind, false)
	must(t, room.Created(rest.ValidateAllObjectFunc)(t.Context(), object("a", "o", "", 10)))

	if refused := l.Begin(kind, false).Created(rest.ValidateAllObjectFunc)(t.Context(), object("a", "p", "", 10)); refused == nil {
		t.Error("room that is held was given away")
	}

	must(t, l.observe("things", object("a", "o", "5", 10), false))
	must(t, l.observe("things", object("a", "o", "6", 10), true)) // deleted
	room.Done(object("a", "o", "5", 10), nil)

	if got := l.Stored("things", "a"); got != (Use{}) || len(l.namespaces) != 0 {
		t.Errorf("left over: %+v, %+v", got, l.namespaces)
	}
}

// TestWritesCountAtOnce: writes count before the watch delivers them, and only once.
func TestWritesCountAtOnce(t *testing.T) {
	l := newLedger(Limits{NamespaceObjects: 2})
	room := l.Begin(kind, false)
	must(t, room.Created(rest.ValidateAllObjectFunc)(t.Context(), object("a", "o", "", 10)))
	room.Done(object("a", "o", "5", 10), nil)

	want := l.Stored("things", "a")
	if want.Objects != 1 || want.Bytes < 50 {
		t.Errorf("got %+v", want)
	}

	must(t, l.observe("things", object("a", "o", "5", 10), false))

	if got := l.Stored("things", ""); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}

	// A list that replaces missed events.
	must(t, l.recount("things", []any{object("b", "p", "7", 10)}, 8))

	if got := l.Stored("things", "a"); got != (Use{}) {
		t.Errorf("got %+v", got)
	}

	if got := l.Stored("things", "b"); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// TestFailedWrites: failed writes release their reservation.
func TestFailedWrites(t *testing.T) {
	l := newLedger(Limits{Objects: 1, NamespaceBytes: 1000})
	room := l.Begin(kind, false)
	must(t, room.Created(rest.ValidateAllObjectFunc)(t.Context(), object("a", "o", "", 10)))
	room.Done(nil, fmt.Errorf("no"))

	if l.total != (account{}) || len(l.namespaces) != 0 {
		t.Errorf("left over: %+v, %+v", l.total, l.namespaces)
	}
}

// Updates of finalizers and field ownership may exceed a limit by two tenths, so that small updates of others, which may
// exceed it by one, leave room for them.
func TestUpkeepMayGoAboveALimit(t *testing.T) {
	l := newLedger(Limits{NamespaceBytes: 1000})
	old := object("a", "o", "1", 800)
	must(t, l.observe("things", old, false))

	bytes := l.Stored("things", "a").Bytes
	grown := func(by int) error {
		updated := old.DeepCopy()
		updated.Finalizers = []string{strings.Repeat("f", by-len(`"finalizers":[""],`))}

		return l.Begin(kind, true).Updated(rest.ValidateAllObjectUpdateFunc)(t.Context(), updated, old)
	}

	must(t, grown(int(1200-bytes)))

	if err := grown(int(1201 - bytes)); err == nil {
		t.Error("more than two tenths")
	}
}

// A user can suspend, approve and confirm in a namespace that is full; nobody can fill it further with more than that.
func TestSmallUpdatesMayGoAboveALimit(t *testing.T) {
	const limit = 100 << 10

	l := newLedger(Limits{NamespaceBytes: limit})
	old := object("a", "o", "1", 90<<10)
	must(t, l.observe("things", old, false))

	bytes := l.Stored("things", "a").Bytes
	must(t, l.observe("things", object("a", "rest", "2", limit-int(bytes)-200), false))

	grown := func(by int) error {
		return l.Begin(kind, true).Updated(rest.ValidateAllObjectUpdateFunc)(t.Context(), object("a", "o", "1", 90<<10+by), old)
	}

	must(t, grown(4<<10))

	if err := grown(4<<10 + 1); err == nil {
		t.Error("more than a small update")
	}

	must(t, l.observe("things", object("a", "more", "3", 9<<10), false))

	if err := grown(4 << 10); err == nil {
		t.Error("more than a tenth")
	}

	if err := l.Begin(kind, true).Created(rest.ValidateAllObjectFunc)(t.Context(), object("a", "new", "", 10)); err == nil {
		t.Error("a create is no update")
	}
}

// TestRefusalNamesTheFlagThatCounts: raising --max-bytes would change nothing while half of the database is less.
func TestRefusalNamesTheFlagThatCounts(t *testing.T) {
	for flag, limits := range map[string]Limits{
		"have --max-bytes of omni-apiserver raised":                                            {Bytes: 100},
		"have --etcd-quota-backend-bytes of omni-apiserver raised, half of which is the limit": {Bytes: 100, HalfOfEtcd: true},
		"have --max-bytes-per-namespace of omni-apiserver raised":                              {NamespaceBytes: 100, HalfOfEtcd: true},
	} {
		l := newLedger(limits)

		err := l.Begin(kind, false).Created(rest.ValidateAllObjectFunc)(t.Context(), object("a", "o", "", 200))
		if err == nil || !strings.HasSuffix(err.Error(), flag) {
			t.Errorf("got %v, want %q", err, flag)
		}
	}
}

// TestMetricsNameTheFlagThatCounts, for the same reason.
func TestMetricsNameTheFlagThatCounts(t *testing.T) {
	l := newLedger(Limits{Bytes: 100, HalfOfEtcd: true})
	registry := metrics.NewKubeRegistry()
	registry.CustomMustRegister(l.Collector())

	must(t, testutil.GatherAndCompare(registry, strings.NewReader(`
# HELP omni_apiserver_stored_limit [ALPHA] Limit of what is stored, by its flag; 0 is none.
# TYPE omni_apiserver_stored_limit gauge
omni_apiserver_stored_limit{flag="--etcd-quota-backend-bytes"} 100
omni_apiserver_stored_limit{flag="--max-bytes-per-namespace"} 0
omni_apiserver_stored_limit{flag="--max-objects"} 0
omni_apiserver_stored_limit{flag="--max-objects-per-namespace"} 0
`), "omni_apiserver_stored_limit"))
}

func TestMetrics(t *testing.T) {
	l := newLedger(Limits{NamespaceObjects: 1})
	registry := metrics.NewKubeRegistry()
	registry.CustomMustRegister(l.Collector())

	for i := range fullest + 5 {
		must(t, l.observe("things", object(fmt.Sprintf("n%02d", i), "o", "1", 10), false))
	}

	must(t, l.observe("things", object("n24", "p", "2", 10), false))

	if err := l.Begin(kind, false).Created(rest.ValidateAllObjectFunc)(t.Context(), object("n01", "p", "", 10)); err == nil {
		t.Error("not refused")
	}

	families, err := registry.Gather()
	must(t, err)

	found := map[string]int{}
	for _, family := range families {
		found[family.GetName()] = len(family.GetMetric())
	}

	if found["omni_apiserver_namespace_stored_objects"] != fullest {
		t.Errorf("got %v", found)
	}

	must(t, testutil.GatherAndCompare(registry, strings.NewReader(`
# HELP omni_apiserver_quota_refusals_total [ALPHA] Writes that were refused because of a limit, by its flag.
# TYPE omni_apiserver_quota_refusals_total counter
omni_apiserver_quota_refusals_total{flag="--max-bytes"} 0
omni_apiserver_quota_refusals_total{flag="--max-bytes-per-namespace"} 0
omni_apiserver_quota_refusals_total{flag="--max-objects"} 0
omni_apiserver_quota_refusals_total{flag="--max-objects-per-namespace"} 1
# HELP omni_apiserver_stored_objects [ALPHA] Stored objects by resource.
# TYPE omni_apiserver_stored_objects gauge
omni_apiserver_stored_objects{resource="things"} 26
`), "omni_apiserver_quota_refusals_total", "omni_apiserver_stored_objects"))
}
