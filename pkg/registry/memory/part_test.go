package memory

import (
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// A part is given back once, by its last holder, and nobody holds it after that.
func TestPart(t *testing.T) {
	returned := 0
	part := NewPart(func() { returned++ })
	ctx := WithPart(t.Context(), part)

	var releases []func()

	for range 2 {
		release, err := Retain(ctx)
		if err != nil {
			t.Fatal(err)
		}

		releases = append(releases, release)
	}

	part.Release()
	releases[0]()

	if returned != 0 {
		t.Error("it was given back while somebody held it")
	}

	if release, err := Retain(ctx); err != nil {
		t.Errorf("while work goes on, more of it may begin: %v", err)
	} else {
		release()
	}

	releases[1]()

	if returned != 1 {
		t.Errorf("it was given back %d times", returned)
	}

	if _, err := Retain(ctx); !apierrors.IsTimeout(err) || returned != 1 {
		t.Errorf("after its end: %v", err)
	}
}

// Requests without a body have no part.
func TestNoPart(t *testing.T) {
	release, err := Retain(t.Context())
	if err != nil {
		t.Fatal(err)
	}

	release()
}
