package charts

import (
	"context"
	"errors"
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
