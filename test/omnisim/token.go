package omnisim

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/cosi-project/runtime/pkg/resource"
	"github.com/cosi-project/runtime/pkg/safe"
	"github.com/cosi-project/runtime/pkg/state"
	"github.com/golang-jwt/jwt/v4"

	"github.com/siderolabs/omni/client/pkg/omni/resources/oidc"
)

// tokenKeyBits is the key size of Omni. Signing is RS256.
const tokenKeyBits = 2048

// signingKey signs the bearer tokens of service-account kubeconfigs. Its ID is the kid in their headers.
type signingKey struct {
	private *rsa.PrivateKey
	id      string
}

// firstSigningKey makes a key once for all servers of a process: a key of this size is most of what the start of one
// costs, and no Omni is told from another by it.
var firstSigningKey = sync.OnceValues(newSigningKey)

func newSigningKey() (signingKey, error) {
	private, err := rsa.GenerateKey(rand.Reader, tokenKeyBits)
	if err != nil {
		return signingKey{}, err
	}

	digest := sha256.Sum256(x509.MarshalPKCS1PublicKey(&private.PublicKey))

	return signingKey{private: private, id: hex.EncodeToString(digest[:16])}, nil
}

// tokenSigner signs tokens with the newest key, and verifies those of every key whose JWTPublicKey exists: from 1.10.4 on, an
// Admin may destroy one, and all tokens of it are refused from the next request on, with "key not found" (tried). If the newest
// one was destroyed, Omni makes another when it issues the next token (told by its release page).
//
// A real Omni makes a key at each start, too, and from time to time; the simulator does not.
type tokenSigner struct {
	resources state.State // the keys, unchecked

	mu      sync.Mutex
	current signingKey
}

// newTokenSigner returns a signer, and stores its first key.
func newTokenSigner(ctx context.Context, resources state.State) (*tokenSigner, error) {
	first, err := firstSigningKey()
	if err != nil {
		return nil, err
	}

	t := &tokenSigner{resources: resources}

	return t, t.use(ctx, first)
}

// use makes a key the newest.
func (t *tokenSigner) use(ctx context.Context, key signingKey) error {
	stored := oidc.NewJWTPublicKey(key.id)
	stored.TypedSpec().Value.PublicKey = x509.MarshalPKCS1PublicKey(&key.private.PublicKey)

	if err := t.resources.Create(ctx, stored); err != nil {
		return fmt.Errorf("store signing key: %w", err)
	}

	t.current = key

	return nil
}

// newest returns the key to sign with. If it was destroyed, that is another one.
func (t *tokenSigner) newest(ctx context.Context) (signingKey, error) {
	t.mu.Lock()
	defer t.mu.Unlock()

	if _, err := t.publicKey(ctx, t.current.id); err == nil {
		return t.current, nil
	}

	made, err := newSigningKey()
	if err != nil {
		return signingKey{}, err
	}

	return made, t.use(ctx, made)
}

// publicKey returns the key with an ID. The error for one that does not exist is the real server's.
func (t *tokenSigner) publicKey(ctx context.Context, id string) (*rsa.PublicKey, error) {
	stored, err := find[*oidc.JWTPublicKey](ctx, t.resources, oidc.NewJWTPublicKey(id).Metadata())

	switch {
	case err != nil:
		return nil, err
	case stored == nil || stored.Metadata().Phase() == resource.PhaseTearingDown:
		return nil, fmt.Errorf("key not found, ID %q", id)
	}

	return x509.ParsePKCS1PublicKey(stored.TypedSpec().Value.GetPublicKey())
}

// DeleteSigningKeys destroys every key that signs tokens, as an Admin may from 1.10.4 on.
func (s *Server) DeleteSigningKeys(ctx context.Context) error {
	keys, err := safe.StateListAll[*oidc.JWTPublicKey](ctx, s.resources)
	if err != nil {
		return fmt.Errorf("list signing keys: %w", err)
	}

	for key := range keys.All() {
		if err := s.resources.Destroy(ctx, key.Metadata()); err != nil {
			return fmt.Errorf("destroy signing key: %w", err)
		}
	}

	return nil
}

// TokenPublicKey returns the key that verifies the tokens of service-account kubeconfigs.
func (s *Server) TokenPublicKey() *rsa.PublicKey {
	s.signer.mu.Lock()
	defer s.signer.mu.Unlock()

	return &s.signer.current.private.PublicKey
}

// tokenRequest is the content of a token.
type tokenRequest struct {
	account, cluster, clusterUUID, user string
	groups                              []string
	ttl                                 time.Duration
}

func (t *tokenSigner) sign(ctx context.Context, request tokenRequest) (string, error) {
	key, err := t.newest(ctx)
	if err != nil {
		return "", err
	}

	now := time.Now()
	token := jwt.NewWithClaims(jwt.SigningMethodRS256, jwt.MapClaims{
		"iat":          now.Unix(),
		"iss":          fmt.Sprintf("omni-%s-service-account-issuer", request.account),
		"exp":          now.Add(request.ttl).Unix(),
		"sub":          request.user,
		"groups":       request.groups,
		"cluster":      request.cluster,
		"cluster_uuid": request.clusterUUID,
	})
	token.Header["kid"] = key.id

	return token.SignedString(key.private)
}

// tokenClaims is what the Kubernetes proxy reads from a token.
type tokenClaims struct {
	jwt.RegisteredClaims

	Groups      []string `json:"groups"`
	Cluster     string   `json:"cluster"`
	ClusterUUID string   `json:"cluster_uuid"`
}

// errTokenInvalid is the error for a token that is refused for another reason than its key. The texts of the real server are those of
// its JWT library.
var errTokenInvalid = errors.New("the token is not valid")

// verify checks the signature, the times and the claims of a token. Omni issues tokens without groups, and then does not accept
// them.
func (t *tokenSigner) verify(ctx context.Context, raw string) (*tokenClaims, error) {
	claims := &tokenClaims{}

	var keyGone error

	_, err := jwt.NewParser(jwt.WithValidMethods([]string{"RS256"})).ParseWithClaims(raw, claims, func(token *jwt.Token) (any, error) {
		id, named := token.Header["kid"].(string)
		if !named {
			return nil, errTokenInvalid
		}

		key, err := t.publicKey(ctx, id)
		keyGone = err

		return key, err
	})

	switch {
	case keyGone != nil:
		// The words before it are inferred: they are those of the newer JWT library, which Omni has.
		return nil, fmt.Errorf("token is unverifiable: error while executing keyfunc: %w", keyGone)
	case err != nil, claims.ExpiresAt == nil, claims.Cluster == "", claims.Subject == "", len(claims.Groups) == 0:
		return nil, errTokenInvalid
	}

	return claims, nil
}
