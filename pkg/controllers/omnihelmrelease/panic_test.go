package omnihelmrelease

import (
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"omni.texashpc.com/omni-cluster-operator/pkg/helm"
)

func TestAPanicIsAnError(t *testing.T) {
	err := recoverPanic(func() error { panic("canary") })

	var failure *helm.Error
	if !errors.As(err, &failure) || failure.Reason != helm.ReasonFailed || strings.Contains(err.Error(), "canary") {
		t.Errorf("got %v", err)
	}
}

func TestLimited(t *testing.T) {
	got := limited(strings.Repeat("ä", 600))
	if len(got) > maxEventBytes || !utf8.ValidString(got) || !strings.HasSuffix(got, "...") {
		t.Errorf("%d bytes, %q", len(got), got[len(got)-6:])
	}
}
