package asynccache

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"omni.texashpc.com/omni-cluster-operator/pkg/limiter"
)

func TestAsyncCache(t *testing.T) {
	now := time.Now()
	ended := make(chan types.NamespacedName, 1)
	asked, failure := 0, error(nil)
	hold := make(chan struct{})
	close(hold)

	l := New(Options[types.NamespacedName, string, int]{
		Limiter: limiter.New(limiter.Limits[string]{PerKey: 1, Total: 2}), QuestionTimeout: time.Minute,
		Now: func() time.Time { return now }, Wake: func(name types.NamespacedName) { ended <- name },
		Keep: func(question Question[string], answer Answer[int]) time.Duration {
			if answer.Err != nil {
				return time.Duration(answer.Failures) * time.Second
			}

			return question.Fresh
		},
	})
	name := types.NamespacedName{Name: "app"}
	ask := func(key string, timeout time.Duration) (Answer[int], bool) {
		l.Options.AnswerTimeout = timeout

		return l.Ask(t.Context(), name, Question[string]{Key: key, Fresh: time.Minute}, func(context.Context, Question[string]) (int, error) {
			asked++
			<-hold

			return asked, failure
		})
	}

	for _, step := range []struct {
		what  string
		after time.Duration
		key   string
		err   error
		want  int
		row   int
	}{
		{"asked", 0, "a", nil, 1, 0},
		{"fresh", 59 * time.Second, "a", nil, 1, 0},
		{"another question", 0, "b", nil, 2, 0},
		{"not fresh any more", time.Minute, "b", errors.New("no"), 3, 1},
		{"a failure counts for a while", 900 * time.Millisecond, "b", nil, 3, 1},
		{"it fails again", 100 * time.Millisecond, "b", errors.New("no"), 4, 2},
		{"and counts for longer", time.Second, "b", nil, 4, 2},
		{"until it is over", time.Second, "b", nil, 5, 0},
	} {
		now, failure = now.Add(step.after), step.err

		if got, ok := ask(step.key, time.Minute); !ok || got.Value != step.want || got.Failures != step.row {
			t.Errorf("%s: %+v, %v, want %d in row %d", step.what, got, ok, step.want, step.row)
		}
	}

	select {
	case <-ended:
		t.Error("woken although nobody had to wait")
	default:
	}

	hold = make(chan struct{})

	if _, ok := ask("slow", time.Millisecond); ok {
		t.Error("an answer before there is one")
	}

	close(hold)

	if got := <-ended; got != name {
		t.Errorf("%s was woken", got)
	}

	if got, ok := ask("slow", time.Minute); !ok || got.Value != 6 {
		t.Errorf("%+v, %v", got, ok)
	}

	l.Forget(name)

	if got, _ := ask("slow", time.Minute); got.Value != 7 {
		t.Errorf("%+v was kept", got)
	}
}

// Since when somebody has to be asked counts until there is an answer, though the object tells it only once.
func TestAfterIsKeptUntilAnAnswer(t *testing.T) {
	now, failure := time.Now(), errors.New("no")

	var got []time.Time

	c := New(Options[string, string, int]{
		AnswerTimeout: time.Minute, QuestionTimeout: time.Minute, Now: func() time.Time { return now }, Wake: func(string) {},
		Keep: func(Question[string], Answer[int]) time.Duration { return time.Second },
	})
	ask := func(after time.Time) {
		c.Ask(t.Context(), "app", Question[string]{Key: "a", Group: "g", After: after}, func(_ context.Context, asked Question[string]) (int, error) {
			got = append(got, asked.After)

			return 0, failure
		})

		now = now.Add(time.Minute)
	}

	begun := now
	ask(begun)
	ask(time.Time{})

	failure = nil

	ask(time.Time{})
	ask(time.Time{})

	if diff := cmp.Diff([]time.Time{begun, begun, begun, {}}, got); diff != "" {
		t.Error(diff)
	}
}
