package omnisim_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/cosi-project/runtime/pkg/safe"
	"github.com/cosi-project/runtime/pkg/state"
	"github.com/golang-jwt/jwt/v4"

	"github.com/siderolabs/omni/client/pkg/omni/resources/oidc"

	"omni.texashpc.com/omni-cluster-operator/test/omnisim"
)

// TestSigningKeys checks who may see and destroy the keys that sign Kubernetes tokens, and what that does.
func TestSigningKeys(t *testing.T) {
	p := newProxied(t)
	p.attach(func(http.ResponseWriter, *http.Request) {})

	_, old := p.kubeconfig("robot", "g")
	id := kid(t, old)

	admin := connect(t, p.Server, key(t, p.Server, omnisim.RoleAdmin)).Omni().State()
	denied := func(what string, err error) {
		t.Helper()

		if err == nil || !strings.Contains(err.Error(), "PermissionDenied") {
			t.Errorf("%s: %v, want PermissionDenied", what, err)
		}
	}

	_, err := safe.StateListAll[*oidc.JWTPublicKey](deadline(t), admin)
	denied("an Admin of 1.9 lists the keys", err)

	if err := p.Upgrade("1.11"); err != nil {
		t.Fatal(err)
	}

	// The client of before connects again.
	_, err = safe.StateListAll[*oidc.JWTPublicKey](deadline(t), p.state)
	denied("an Operator lists the keys", err)
	denied("an Operator destroys a key", p.state.Destroy(deadline(t), oidc.NewJWTPublicKey(id).Metadata()))
	denied("an Admin makes a key", admin.Create(deadline(t), oidc.NewJWTPublicKey("mine")))

	keys, err := safe.StateListAll[*oidc.JWTPublicKey](deadline(t), admin)
	if err != nil || keys.Len() != 1 || keys.Get(0).Metadata().ID() != id {
		t.Fatalf("an Admin lists the keys: %d of them, %v, want that of the token, %s", keys.Len(), err, id)
	}

	if code, _ := p.ask(old, nil); code != http.StatusOK {
		t.Fatalf("before: %d", code)
	}

	if err := admin.TeardownAndDestroy(deadline(t), keys.Get(0).Metadata()); err != nil {
		t.Fatal(err)
	}

	if code, body := p.ask(old, nil); code != http.StatusUnauthorized || !strings.Contains(body, `key not found, ID "`+id+`"`) {
		t.Errorf("the token of a key that is gone: %d %q", code, body)
	}

	_, fresh := p.kubeconfig("robot", "g")
	if code, body := p.ask(fresh, nil); code != http.StatusOK || kid(t, fresh) == id {
		t.Errorf("a new token: %d %q, of key %s", code, body, kid(t, fresh))
	}

	if _, err := admin.Get(deadline(t), oidc.NewJWTPublicKey(id).Metadata()); !state.IsNotFoundError(err) {
		t.Errorf("the key that was destroyed: %v", err)
	}
}

// kid returns the ID of the key that signed a token.
func kid(t *testing.T, token string) string {
	t.Helper()

	parsed, _, err := jwt.NewParser().ParseUnverified(token, jwt.MapClaims{})
	if err != nil {
		t.Fatal("the token cannot be parsed")
	}

	id, _ := parsed.Header["kid"].(string)

	return id
}
