package main

import (
	"context"
	"errors"
	"testing"
)

func TestExplainHidesOnlyWhatFollowsFromTheInterrupt(t *testing.T) {
	interrupted, cancel := context.WithCancel(t.Context())
	cancel()

	late, cancel := context.WithTimeout(t.Context(), 0)
	defer cancel()

	failure := errors.New("broken")

	for name, test := range map[string]struct {
		ctx  context.Context
		want string
		code int
	}{
		"a failure":    {t.Context(), "Scaling works: broken", 1},
		"an interrupt": {interrupted, "interrupted; everything is stopped and removed", 130},
		"too late":     {late, "Scaling works: broken", 1},
	} {
		t.Run(name, func(t *testing.T) {
			err := explain(test.ctx, "Scaling works.", failure)
			if err.Error() != test.want || exitCode(err) != test.code {
				t.Errorf("got %v, exit code %d", err, exitCode(err))
			}
		})
	}
}
