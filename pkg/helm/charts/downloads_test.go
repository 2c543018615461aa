package charts

import (
	"context"
	"errors"
	"testing"
	"time"
)

func TestDownloads(t *testing.T) {
	d := newDownloads(4)

	var releases []func()

	for range 2 {
		release, err := d.enter(t.Context(), "a.example.com")
		if err != nil {
			t.Fatal(err)
		}

		releases = append(releases, release)
	}

	short, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()

	var failure *Error
	if _, err := d.enter(short, "a.example.com"); !errors.As(err, &failure) || failure.Reason != Timeout {
		t.Errorf("a third of one host: %v", err)
	}

	release, err := d.enter(t.Context(), "b.example.com")
	if err != nil {
		t.Fatalf("another host: %v", err)
	}

	for _, release := range append(releases, release) {
		release()
	}

	if taken, _ := d.hosts.Load(); taken != 0 {
		t.Errorf("%d slots are taken", taken)
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
