package e2ecertmanager

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// renew asks for a new certificate as `cmctl renew` does.
func (s *installation) renew(t *testing.T, name string) {
	t.Helper()
	s.until(t, "the request to renew "+name, func(ctx context.Context) error { return s.tryRenew(ctx, name) })
}

func (s *installation) tryRenew(ctx context.Context, name string) error {
	client := s.kinds.Resource(certificates).Namespace(namespace)

	certificate, err := client.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}

	conditions, _, err := unstructured.NestedSlice(certificate.Object, "status", "conditions")
	if err != nil {
		return err
	}

	conditions = slices.DeleteFunc(conditions, func(c any) bool { return c.(map[string]any)["type"] == "Issuing" })
	conditions = append(conditions, map[string]any{
		"type": "Issuing", "status": "True", "reason": "ManuallyTriggered", "message": "asked for by a test",
		"lastTransitionTime": time.Now().UTC().Format(time.RFC3339), "observedGeneration": certificate.GetGeneration(),
	})

	if err := unstructured.SetNestedSlice(certificate.Object, conditions, "status", "conditions"); err != nil {
		return err
	}

	_, err = client.UpdateStatus(ctx, certificate, metav1.UpdateOptions{})

	return err
}

// issued is what is in a Secret that cert-manager made.
type issued struct {
	leaf *x509.Certificate
	ca   []byte
}

func (s *installation) tryIssued(ctx context.Context, name string) (issued, error) {
	secret, err := s.hub.Client().CoreV1().Secrets(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return issued{}, err
	}

	leaf, err := parse(secret.Data["tls.crt"])

	return issued{leaf: leaf, ca: secret.Data["ca.crt"]}, err
}

func (s *installation) issued(t *testing.T, name string) issued {
	t.Helper()

	got, err := s.tryIssued(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}

	return got
}

func parse(text []byte) (*x509.Certificate, error) {
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, errors.New("there is no certificate")
	}

	return x509.ParseCertificate(block.Bytes)
}

func serial(certificate *x509.Certificate) string { return certificate.SerialNumber.String() }

// reissued waits until the Secret has another certificate than before.
func (s *installation) reissued(t *testing.T, name string, before issued) issued {
	t.Helper()

	var now issued

	s.until(t, "another certificate in "+name, func(ctx context.Context) (err error) {
		if now, err = s.tryIssued(ctx, name); err == nil && serial(now.leaf) == serial(before.leaf) {
			err = errors.New("it is the one from before")
		}

		return err
	})

	return now
}

// renewSigned renews the serving certificate until the authority of now has signed it: cert-manager may know that
// authority a moment later than we.
func (s *installation) renewSigned(t *testing.T) {
	t.Helper()

	ca, before := s.issued(t, authority), s.issued(t, serving)
	s.renew(t, serving)

	s.until(t, "a serving certificate of the new authority", func(ctx context.Context) error {
		now, err := s.tryIssued(ctx, serving)
		if err != nil {
			return err
		}

		signer, err := parse(now.ca)
		if err != nil {
			return err
		}

		switch {
		case serial(now.leaf) == serial(before.leaf):
			return errors.New("the serving certificate is the one from before")
		case serial(signer) != serial(ca.leaf):
			before = now

			return errors.Join(errors.New("it has the authority from before"), s.tryRenew(ctx, serving))
		default:
			return nil
		}
	})
}

// deleteSecret takes the Secret of a certificate away and waits until it is back.
func (s *installation) deleteSecret(t *testing.T, name string) {
	t.Helper()

	before := s.issued(t, name)
	s.kubectl(t, "", "delete", "secret", name, "-n", namespace)
	s.reissued(t, name, before)
}
