package contract

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/cosi-project/runtime/pkg/state"
	"github.com/siderolabs/go-api-signature/pkg/pgp"
	"github.com/siderolabs/go-api-signature/pkg/serviceaccount"
	"google.golang.org/grpc"

	"github.com/siderolabs/omni/client/pkg/access"
	"github.com/siderolabs/omni/client/pkg/client"

	operator "omni.texashpc.com/omni-cluster-operator/pkg/omni"
	"omni.texashpc.com/omni-cluster-operator/test/omnisim"
)

// Target is an Omni under test. It has no clusters and no machines, and has the Talos versions 1.12.7, 1.13.2 and
// 1.13.5 and the Kubernetes versions 1.34.8, 1.35.0, 1.35.1 and 1.36.1.
type Target struct {
	// Endpoint is the URL of the server, https://host:port.
	Endpoint string
	// ServiceAccountKey is the key of a service account with role Admin.
	ServiceAccountKey string
	// CA is the certificate authority of the endpoint, PEM encoded.
	CA []byte
}

// serverTimeout is how long any work of the server in the background may take.
const serverTimeout = 30 * time.Second

// suite is a target and the Admin's client.
type suite struct {
	target Target
	admin  *client.Client
	minor  int // the version of the target is 1.minor
}

// connect opens a client with the CA of the target.
func (s *suite) connect(t *testing.T, key string, options ...grpc.DialOption) *client.Client {
	t.Helper()

	operator.RegisterTypes()

	c, err := omnisim.Connect(s.target.Endpoint, key, s.target.CA, options...)
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() { _ = c.Close() })

	return c
}

// account registers a service account through the management service and returns its name and key.
func (s *suite) account(t *testing.T, role string) (name, key string) {
	t.Helper()

	name = unique("account")
	pair, key := newKey(t, name, time.Hour)

	public, err := pair.ArmorPublic()
	if err != nil {
		t.Fatal(err)
	}

	if _, err = s.admin.Management().CreateServiceAccount(deadline(t), name, public, role, false); err != nil {
		t.Fatal(err)
	}

	return name, key
}

// as returns the state of a client with a new account of the role.
func (s *suite) as(t *testing.T, role string) state.State {
	t.Helper()

	_, key := s.account(t, role)

	return s.connect(t, key).Omni().State()
}

// newKey returns a key pair that is not registered with any server.
func newKey(t *testing.T, name string, lifetime time.Duration) (*pgp.Key, string) {
	t.Helper()

	pair, err := pgp.GenerateKey(name, "contract test", access.ParseServiceAccountFromName(name).FullID(), lifetime)
	if err != nil {
		t.Fatal(err)
	}

	encoded, err := serviceaccount.Encode(name, pair)
	if err != nil {
		t.Fatal(err)
	}

	return pair, encoded
}

// unique returns a name that no other case uses.
func unique(prefix string) string {
	random := make([]byte, 4)
	_, _ = rand.Read(random) // never fails

	return prefix + "-" + hex.EncodeToString(random)
}

func deadline(t *testing.T) context.Context {
	t.Helper()

	ctx, cancel := context.WithTimeout(context.Background(), serverTimeout)
	t.Cleanup(cancel)

	return ctx
}

// wantError checks the code in an error's text, and words of the text. The code is only in the text: the client library
// wraps the error.
func wantError(t *testing.T, err error, code string, words ...string) {
	t.Helper()

	if err == nil {
		t.Errorf("no error, want code %s", code)

		return
	}

	found := regexp.MustCompile(`code = (\w+)`).FindStringSubmatch(err.Error())

	switch {
	case code == "" && found != nil:
		t.Errorf("error %q comes from the server, want a local one", err)
	case code != "" && (found == nil || found[1] != code):
		t.Errorf("error %q, want code %s", err, code)
	}

	for _, word := range words {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("error %q, want it to say %q", err, word)
		}
	}
}
