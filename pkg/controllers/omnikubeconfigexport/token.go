package omnikubeconfigexport

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"strings"
	"time"
)

// errToken intentionally has nothing of the token.
var errToken = errors.New("the kubeconfig holds no token whose content can be read")

// claims are the content of a token from Omni. The signature is not verified: the token came over the connection to
// Omni, or from a Secret with a correct hash, and Omni's proxy decides whether to accept it.
type claims struct {
	User        string   `json:"sub"`
	Groups      []string `json:"groups"`
	Cluster     string   `json:"cluster"`
	ClusterUUID string   `json:"cluster_uuid"`
	Expires     int64    `json:"exp"`
	Issued      int64    `json:"iat"`
}

// readToken parses a token. It refuses a token that does not expire.
func readToken(token string) (claims, error) {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return claims{}, errToken
	}

	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return claims{}, errToken
	}

	var found claims
	// The error could quote the content.
	if json.Unmarshal(payload, &found) != nil || found.Expires <= 0 {
		return claims{}, errToken
	}

	return found, nil
}

// expires returns when the token ends.
func (c claims) expires() time.Time { return time.Unix(c.Expires, 0).UTC() }

// issued returns when the token was issued; zero if it does not say.
func (c claims) issued() time.Time {
	if c.Issued <= 0 {
		return time.Time{}
	}

	return time.Unix(c.Issued, 0).UTC()
}
