package omnihelmrelease

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/types"

	"omni.texashpc.com/omni-cluster-operator/pkg/helm"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/limiter"
)

func TestAPanicIsAnError(t *testing.T) {
	err := sheltered(func() error { panic("canary") })

	var failure *helm.Error
	if !errors.As(err, &failure) || failure.Reason != helm.ReasonFailed || strings.Contains(err.Error(), "canary") {
		t.Errorf("got %v", err)
	}
}

func TestQuestionsAreLimitedAndGivenUp(t *testing.T) {
	l := newAsyncCache(limiter.New(limiter.Limits[string]{PerKey: 1, Total: 8}), time.Now, func(types.NamespacedName) {}, func(fresh time.Duration, _ answer[int]) time.Duration { return fresh })
	l.timeout = time.Millisecond
	begun, stopped := make(chan string, 4), make(chan string, 4)

	ask := func(name, key string) {
		l.ask(types.NamespacedName{Name: name}, question{key: key, group: "slow"}, time.Minute, func(ctx context.Context) (int, error) {
			begun <- name + key
			<-ctx.Done()
			stopped <- name + key

			return 0, ctx.Err()
		})
	}

	ask("a", "1")

	if got := <-begun; got != "a1" {
		t.Fatal(got)
	}

	ask("b", "1")

	select {
	case got := <-begun:
		t.Fatalf("%s asks the same host, too", got)
	case <-time.After(20 * time.Millisecond):
	}

	// Another question ends the first one, whose slot is free then.
	ask("a", "2")

	if got := <-stopped; got != "a1" {
		t.Fatal(got)
	}

	for range 2 {
		name := (<-begun)[:1]
		l.forget(types.NamespacedName{Name: name})
		<-stopped
	}
}

func TestLimited(t *testing.T) {
	got := limited(strings.Repeat("ä", 600))
	if len(got) > maxEventBytes || !utf8.ValidString(got) || !strings.HasSuffix(got, "...") {
		t.Errorf("%d bytes, %q", len(got), got[len(got)-6:])
	}
}
