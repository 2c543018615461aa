package charts

import (
	"context"
	"errors"
	"testing"
	"time"
)

func TestDownloads(t *testing.T) {
	d := newDownloads(4)

	var leaves []func()

	for range 2 {
		leave, err := d.enter(t.Context(), "a.example.com")
		if err != nil {
			t.Fatal(err)
		}

		leaves = append(leaves, leave)
	}

	short, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()

	var failure *Error
	if _, err := d.enter(short, "a.example.com"); !errors.As(err, &failure) || failure.Reason != Timeout {
		t.Errorf("a third of one host: %v", err)
	}

	leave, err := d.enter(t.Context(), "b.example.com")
	if err != nil {
		t.Fatalf("another host: %v", err)
	}

	for _, leave := range append(leaves, leave) {
		leave()
	}

	if !d.hosts.Idle() {
		t.Error("hosts are remembered")
	}

	for range 4 {
		if _, err := d.enterLarge(t.Context()); err != nil {
			t.Fatal(err)
		}
	}

	if _, err := d.enterLarge(short); !errors.As(err, &failure) || failure.Reason != Timeout {
		t.Errorf("a fifth large answer: %v", err)
	}
}
