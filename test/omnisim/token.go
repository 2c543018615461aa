package omnisim

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/golang-jwt/jwt/v4"
)

// tokenKeyBits is the key size of Omni. Signing is RS256.
const tokenKeyBits = 2048

// tokenSigner signs the bearer tokens of service-account kubeconfigs, and verifies them for the
// Kubernetes proxy.
type tokenSigner struct {
	key *rsa.PrivateKey
	id  string
}

// newTokenSigner makes a signer once for all servers of a process: a key of this size is most of what the start of one
// costs, and no Omni is told from another by it.
var newTokenSigner = sync.OnceValues(makeTokenSigner)

func makeTokenSigner() (*tokenSigner, error) {
	key, err := rsa.GenerateKey(rand.Reader, tokenKeyBits)
	if err != nil {
		return nil, err
	}

	digest := sha256.Sum256(x509.MarshalPKCS1PublicKey(&key.PublicKey))

	return &tokenSigner{key: key, id: hex.EncodeToString(digest[:16])}, nil
}

// TokenPublicKey returns the key that verifies the tokens of service-account kubeconfigs.
func (s *Server) TokenPublicKey() *rsa.PublicKey { return &s.signer.key.PublicKey }

// tokenRequest is the content of a token.
type tokenRequest struct {
	account, cluster, clusterUUID, user string
	groups                              []string
	ttl                                 time.Duration
}

func (t *tokenSigner) sign(request tokenRequest) (string, error) {
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
	token.Header["kid"] = t.id

	return token.SignedString(t.key)
}

// tokenClaims is what the Kubernetes proxy reads from a token.
type tokenClaims struct {
	jwt.RegisteredClaims

	Groups      []string `json:"groups"`
	Cluster     string   `json:"cluster"`
	ClusterUUID string   `json:"cluster_uuid"`
}

// verify checks the signature and the times of a token. It refuses tokens without an expiry.
func (t *tokenSigner) verify(raw string) (*tokenClaims, error) {
	claims := &tokenClaims{}

	_, err := jwt.NewParser(jwt.WithValidMethods([]string{"RS256"})).ParseWithClaims(raw, claims, func(*jwt.Token) (any, error) {
		return &t.key.PublicKey, nil
	})
	if err != nil {
		return nil, fmt.Errorf("verify token: %w", err)
	}

	if claims.ExpiresAt == nil {
		return nil, errors.New("verify token: it does not expire")
	}

	return claims, nil
}
