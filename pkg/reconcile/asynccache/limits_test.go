package asynccache

import (
	"context"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"omni.texashpc.com/omni-cluster-operator/pkg/limiter"
)

func TestQuestionsAreLimitedAndGivenUp(t *testing.T) {
	l := New(Options[types.NamespacedName, string, int]{
		Limiter: limiter.New(limiter.Limits[string]{PerKey: 1, Total: 8}), AnswerTimeout: time.Millisecond, QuestionTimeout: time.Minute, Now: time.Now,
		Wake: func(types.NamespacedName) {},
		Keep: func(question Question[string], _ Answer[int]) time.Duration { return question.Fresh },
	})
	begun, stopped := make(chan string, 4), make(chan string, 4)

	ask := func(name, key string) {
		l.Ask(t.Context(), types.NamespacedName{Name: name}, Question[string]{Key: key, Group: "slow", Fresh: time.Minute}, func(ctx context.Context, _ Question[string]) (int, error) {
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
		l.Forget(types.NamespacedName{Name: name})
		<-stopped
	}
}
