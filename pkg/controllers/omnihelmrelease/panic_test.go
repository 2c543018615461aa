package omnihelmrelease

import (
	"errors"
	"strings"
	"testing"

	"omni.texashpc.com/omni-cluster-operator/pkg/helm"
)

func TestAPanicIsAnError(t *testing.T) {
	err := recoverPanic(func() error { panic("canary") })

	var failure *helm.Error
	if !errors.As(err, &failure) || failure.Reason != helm.ReasonFailed || strings.Contains(err.Error(), "canary") {
		t.Errorf("got %v", err)
	}
}
