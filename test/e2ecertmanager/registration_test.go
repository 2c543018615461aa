package e2ecertmanager

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
)

// history is what the condition Available of the APIService said, in its order.
type history struct {
	mu     sync.Mutex
	states []state
}

// state is one that the condition had.
type state struct {
	seen     time.Time
	text     string
	bundle   bool
	isServed bool
}

// watchRegistration records the APIService until the test ends.
func (s *installation) watchRegistration(t *testing.T) *history {
	t.Helper()

	h := &history{}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})

	go func() {
		defer close(done)

		for ctx.Err() == nil {
			service, err := s.trusts.ApiregistrationV1().APIServices().Get(ctx, registration, metav1.GetOptions{})
			if err == nil {
				h.see(service)
			}

			select {
			case <-ctx.Done():
			case <-time.After(20 * time.Millisecond):
			}
		}
	}()

	t.Cleanup(func() {
		cancel()
		<-done
	})

	return h
}

func (h *history) see(service *apiregistrationv1.APIService) {
	now := state{seen: time.Now(), bundle: len(service.Spec.CABundle) > 0}

	for _, condition := range service.Status.Conditions {
		if condition.Type == apiregistrationv1.Available {
			now.text, now.isServed = string(condition.Status)+" "+condition.Reason, condition.Status == apiregistrationv1.ConditionTrue
			if !now.isServed {
				now.text += ": " + condition.Message
			}
		}
	}

	h.mu.Lock()
	defer h.mu.Unlock()

	if n := len(h.states); n == 0 || h.states[n-1].text != now.text || h.states[n-1].bundle != now.bundle {
		h.states = append(h.states, now)
	}
}

// first returns when something was first seen.
func (h *history) first(is func(state) bool) (time.Time, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()

	for _, state := range h.states {
		if is(state) {
			return state.seen, true
		}
	}

	return time.Time{}, false
}

// take returns the texts since the last time, beginning with the one that still holds.
func (h *history) take() []string {
	h.mu.Lock()
	defer h.mu.Unlock()

	var texts []string

	for _, state := range h.states {
		if n := len(texts); n == 0 || texts[n-1] != state.text {
			texts = append(texts, state.text)
		}
	}

	if n := len(h.states); n > 0 {
		h.states = slices.Clone(h.states[n-1:])
	}

	return texts
}
