package charts

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

func TestGate(t *testing.T) {
	g := newGate(4)

	var leaves []func()

	for range 2 {
		leave, err := g.enter(t.Context(), "a.example.com")
		if err != nil {
			t.Fatal(err)
		}

		leaves = append(leaves, leave)
	}

	short, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()

	var failure *Error
	if _, err := g.enter(short, "a.example.com"); !errors.As(err, &failure) || failure.Reason != Timeout {
		t.Errorf("a third of one host: %v", err)
	}

	leave, err := g.enter(t.Context(), "b.example.com")
	if err != nil {
		t.Fatalf("another host: %v", err)
	}

	for _, leave := range append(leaves, leave) {
		leave()
	}

	if len(g.hosts) != 0 {
		t.Errorf("%d hosts are remembered", len(g.hosts))
	}

	for range 4 {
		if _, err := g.enterLarge(t.Context()); err != nil {
			t.Fatal(err)
		}
	}

	if _, err := g.enterLarge(short); !errors.As(err, &failure) || failure.Reason != Timeout {
		t.Errorf("a fifth large answer: %v", err)
	}
}

// Indexes are parsed one at a time.
func TestParsing(t *testing.T) {
	g := newGate(4)

	var (
		all          sync.WaitGroup
		now, tooMany atomic.Int32
	)

	for range 8 {
		all.Go(func() {
			if err := g.parse(context.Background(), func() error {
				if now.Add(1) > 1 {
					tooMany.Add(1)
				}

				time.Sleep(2 * time.Millisecond)
				now.Add(-1)

				return nil
			}); err != nil {
				t.Error(err)
			}
		})
	}

	all.Wait()

	if got := tooMany.Load(); got > 0 {
		t.Errorf("%d began beside another", got)
	}

	want := errors.New("no index")
	if err := g.parse(t.Context(), func() error { return want }); !errors.Is(err, want) {
		t.Errorf("%v", err)
	}

	g.parsing <- struct{}{}

	ended, cancel := context.WithCancel(t.Context())
	cancel()

	var failure *Error
	if err := g.parse(ended, func() error { return nil }); !errors.As(err, &failure) || failure.Reason != Timeout {
		t.Errorf("%v", err)
	}
}
