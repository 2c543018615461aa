package e2ecertmanager

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"testing"
)

// served waits until new connections see the certificate that is in the Secret, and accept it.
func (s *installation) served(t *testing.T) {
	t.Helper()
	s.until(t, "the certificate of the Secret to be served and accepted", func(ctx context.Context) error {
		want, err := s.tryIssued(ctx, serving)
		if err != nil {
			return err
		}

		leaf, err := s.load.latest()
		if err == nil && serial(leaf) != serial(want.leaf) {
			err = errors.New("another one is served")
		}

		return err
	})
}

// metricsServed waits until the controller serves its metrics with the certificate that is in the Secret.
func (s *installation) metricsServed(t *testing.T) {
	t.Helper()

	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(s.controller.Port(8080)))

	s.until(t, "the metrics to be served with the certificate of the Secret", func(ctx context.Context) error {
		want, err := s.tryIssued(ctx, metrics)
		if err != nil {
			return err
		}

		leaf, err := handshake(ctx, address)
		if err == nil && serial(leaf) != serial(want.leaf) {
			err = errors.New("another one is served")
		}

		return err
	})
}

// refused waits until a new connection is refused with this text.
func (s *installation) refused(t *testing.T, text string) {
	t.Helper()
	s.until(t, "a new connection to be refused: "+text, func(context.Context) error {
		if _, err := s.load.latest(); err == nil || !strings.Contains(err.Error(), text) {
			return fmt.Errorf("got %w", orNone(err))
		}

		return nil
	})
}

func orNone(err error) error {
	if err == nil {
		return errors.New("no error")
	}

	return err
}

// trusted waits until kube-apiserver trusts what signed the serving certificate of the Secret.
func (s *installation) trusted(t *testing.T) {
	t.Helper()
	s.until(t, "caBundle to have the authority of "+serving, func(ctx context.Context) error {
		want, err := s.tryIssued(ctx, serving)
		if err != nil {
			return err
		}

		bundle, err := s.load.caBundle(ctx)
		if err == nil && !bytes.Contains(bundle, bytes.TrimSpace(want.ca)) {
			err = errors.New("it does not")
		}

		return err
	})
}

// more waits for so many more requests, and new connections in their proportion: with what is now they are what is judged.
func (s *installation) more(t *testing.T, requests int) {
	t.Helper()

	before := s.load.now()

	s.until(t, "more requests", func(context.Context) error {
		if now := s.load.now().minus(before); now.requests < requests || now.connections < requests/5 {
			return fmt.Errorf("%+v", now)
		}

		return nil
	})
}

// fails waits until a request fails.
func (s *installation) fails(t *testing.T) {
	t.Helper()

	before := s.load.now()

	s.until(t, "a request to fail", func(context.Context) error {
		if s.load.now().failed == before.failed {
			return errors.New("none does")
		}

		return nil
	})
}
