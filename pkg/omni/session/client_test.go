package session

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"omni.texashpc.com/omni-cluster-operator/pkg/foreign/redact"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
	"omni.texashpc.com/omni-cluster-operator/test/omnisim"
)

// startOmni starts a simulated Omni.
func startOmni(t *testing.T, options omnisim.Options) *omnisim.Server {
	t.Helper()

	server, err := omnisim.Start(options)
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(server.Close)

	return server
}

// newAccount creates a service account and returns its key, encoded and parsed.
func newAccount(t *testing.T, server *omnisim.Server, name string, role omnisim.Role, lifetime time.Duration) (string, Key) {
	t.Helper()

	encoded, err := server.CreateServiceAccount(name, role, lifetime)
	if err != nil {
		t.Fatal(err)
	}

	key, err := ParseServiceAccountKey([]byte(encoded))
	if err != nil {
		t.Fatal(err)
	}

	return encoded, key
}

func dial(t *testing.T, config Config) (*Client, error) {
	t.Helper()

	client, err := Dial(t.Context(), config)
	if client != nil {
		t.Cleanup(func() { _ = client.Close() })
	}

	return client, err
}

func TestDial(t *testing.T) {
	server := startOmni(t, omnisim.Options{})
	plain := startOmni(t, omnisim.Options{Plaintext: true})

	_, key := newAccount(t, server, "operator", omnisim.RoleOperator, time.Hour)
	_, plainKey := newAccount(t, plain, "operator", omnisim.RoleReader, time.Hour)

	for name, config := range map[string]Config{
		"own CA":          {Endpoint: server.Endpoint(), Key: key, CABundle: server.CAPEM()},
		"no verification": {Endpoint: server.Endpoint(), Key: key, InsecureSkipTLSVerify: true},
		"plaintext":       {Endpoint: plain.Endpoint(), Key: plainKey},
		"http":            {Endpoint: strings.Replace(plain.Endpoint(), "grpc://", "http://", 1), Key: plainKey},
	} {
		t.Run(name, func(t *testing.T) {
			var (
				mu    sync.Mutex
				calls []string
			)

			config.Observer = func(method, code string, _ time.Duration) {
				mu.Lock()
				defer mu.Unlock()

				calls = append(calls, method+" "+code)
			}

			client, err := dial(t, config)
			if err != nil {
				t.Fatal(err)
			}

			mu.Lock()
			defer mu.Unlock()

			if len(calls) != 1 || calls[0] != "/cosi.resource.State/Get NotFound" {
				t.Errorf("calls %v", calls)
			}

			if client.Endpoint() != config.Endpoint || client.ServiceAccount() != "operator" {
				t.Errorf("client %s, %s", client.Endpoint(), client.ServiceAccount())
			}

			for range 2 {
				if err = client.Close(); err != nil {
					t.Errorf("Close: %v", err)
				}
			}
		})
	}
}

func TestDialFailures(t *testing.T) {
	server := startOmni(t, omnisim.Options{})
	stranger := startOmni(t, omnisim.Options{})
	plain := startOmni(t, omnisim.Options{Plaintext: true})
	down := startOmni(t, omnisim.Options{})
	down.GoDown()

	encoded, key := newAccount(t, server, "operator", omnisim.RoleOperator, time.Hour)
	revokedText, revoked := newAccount(t, server, "revoked", omnisim.RoleOperator, time.Hour)
	_, expired := newAccount(t, server, "expired", omnisim.RoleOperator, -time.Hour)
	early, err := ParseServiceAccountKey([]byte(encodeKey(t, "operator", newEntity(t, time.Now().Add(time.Hour), 86400, 86400))))
	if err != nil {
		t.Fatal(err)
	}

	_, powerless := newAccount(t, server, "powerless", omnisim.RoleNone, time.Hour)
	_, foreign := newAccount(t, stranger, "operator", omnisim.RoleOperator, time.Hour)
	_, plainKey := newAccount(t, plain, "operator", omnisim.RoleOperator, time.Hour)

	if err := server.RevokeKey(revokedText); err != nil {
		t.Fatal(err)
	}

	for name, test := range map[string]struct {
		config Config
		want   omni.Class
	}{
		"no key":               {Config{Endpoint: server.Endpoint(), CABundle: server.CAPEM()}, omni.ClassKeyInvalid},
		"revoked key":          {Config{Endpoint: server.Endpoint(), CABundle: server.CAPEM(), Key: revoked}, omni.ClassUnauthenticated},
		"key of another Omni":  {Config{Endpoint: server.Endpoint(), CABundle: server.CAPEM(), Key: foreign}, omni.ClassUnauthenticated},
		"expired key":          {Config{Endpoint: server.Endpoint(), CABundle: server.CAPEM(), Key: expired}, omni.ClassKeyExpired},
		"key from the future":  {Config{Endpoint: server.Endpoint(), CABundle: server.CAPEM(), Key: early}, omni.ClassKeyNotYetValid},
		"role may not read":    {Config{Endpoint: server.Endpoint(), CABundle: server.CAPEM(), Key: powerless}, omni.ClassDenied},
		"unknown authority":    {Config{Endpoint: server.Endpoint(), Key: key}, omni.ClassTLS},
		"another authority":    {Config{Endpoint: server.Endpoint(), CABundle: stranger.CAPEM(), Key: key}, omni.ClassTLS},
		"unreadable CA bundle": {Config{Endpoint: server.Endpoint(), CABundle: []byte("x"), Key: key}, omni.ClassTLS},
		"TLS to plaintext":     {Config{Endpoint: strings.Replace(plain.Endpoint(), "grpc://", "https://", 1), Key: plainKey}, omni.ClassTLS},
		"TLS with CA to plaintext": {
			Config{Endpoint: strings.Replace(plain.Endpoint(), "grpc://", "https://", 1), CABundle: server.CAPEM(), Key: plainKey}, omni.ClassTLS,
		},
		"nobody there":      {Config{Endpoint: down.Endpoint(), CABundle: down.CAPEM(), Key: key}, omni.ClassUnreachable},
		"no such name":      {Config{Endpoint: "https://omni.invalid", Key: key}, omni.ClassUnreachable},
		"no usable address": {Config{Endpoint: "omni", Key: key}, omni.ClassRefused},
	} {
		t.Run(name, func(t *testing.T) {
			// Without its own timeout the check would never end.
			client, err := dial(t, test.config)
			if err == nil || client != nil {
				t.Fatal("it works")
			}

			if got := omni.Classify(err); got != test.want {
				t.Errorf("class %q: %v", got, err)
			}

			if message := omni.Message(err); strings.Contains(message, encoded[30:60]) || len(message) > redact.MaxBytes {
				t.Errorf("message %q", message)
			}
		})
	}
}

func TestPlaintextToATLSServer(t *testing.T) {
	server := startOmni(t, omnisim.Options{})
	_, key := newAccount(t, server, "operator", omnisim.RoleOperator, time.Hour)

	_, err := dial(t, Config{Endpoint: strings.Replace(server.Endpoint(), "https://", "http://", 1), Key: key})
	if class := omni.Classify(err); class != omni.ClassUnreachable && class != omni.ClassTLS {
		t.Errorf("class %q: %v", class, err)
	}
}

func TestCheckOfASilentOmniEnds(t *testing.T) {
	server := startOmni(t, omnisim.Options{Plaintext: true})
	_, key := newAccount(t, server, "operator", omnisim.RoleOperator, time.Hour)

	client, err := dial(t, Config{Endpoint: server.Endpoint(), Key: key})
	if err != nil {
		t.Fatal(err)
	}

	remove := server.Inject(omnisim.Fault{Hang: true})
	defer remove()

	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()

	if err = client.Check(ctx); omni.Classify(err) != omni.ClassUnreachable {
		t.Errorf("error %v", err)
	}
}

func TestCheckClassifiesAnswers(t *testing.T) {
	server := startOmni(t, omnisim.Options{Plaintext: true})
	_, key := newAccount(t, server, "operator", omnisim.RoleOperator, time.Hour)

	client, err := dial(t, Config{Endpoint: server.Endpoint(), Key: key})
	if err != nil {
		t.Fatal(err)
	}

	for _, test := range []struct {
		fault omnisim.Fault
		want  omni.Class
	}{
		{omnisim.Fault{Code: codes.Internal}, omni.ClassTransient},
		{omnisim.Fault{Code: codes.Unavailable}, omni.ClassTransient},
		{omnisim.Fault{Code: codes.FailedPrecondition, Message: "EULA has not been accepted"}, omni.ClassRefused},
		{omnisim.Fault{Code: codes.PermissionDenied}, omni.ClassDenied},
	} {
		remove := server.Inject(test.fault)

		if err := client.Check(t.Context()); omni.Classify(err) != test.want {
			t.Errorf("%s: %v is %q", test.fault.Code, err, omni.Classify(err))
		}

		remove()
	}

	if err := client.Check(t.Context()); err != nil {
		t.Errorf("afterwards: %v", err)
	}

	_ = client.Close()

	if err := client.Check(t.Context()); err == nil || errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("after Close: %v", err)
	}
}
