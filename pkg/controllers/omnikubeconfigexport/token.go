package omnikubeconfigexport

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"strings"
	"time"
)

// errToken says nothing of the token on purpose.
var errToken = errors.New("the kubeconfig holds no token whose content can be read")

// claims are what a token of Omni says. The signature is not checked: the token
// came over the connection to Omni, or from a Secret whose hash is right, and
// it is Omni's proxy that lets it in.
type claims struct {
	User        string   `json:"sub"`
	Groups      []string `json:"groups"`
	Cluster     string   `json:"cluster"`
	ClusterUUID string   `json:"cluster_uuid"`
	Expires     int64    `json:"exp"`
	Issued      int64    `json:"iat"`
}

// readToken reads a token. One that does not expire is not accepted.
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

// expires is when the token ends.
func (c claims) expires() time.Time { return time.Unix(c.Expires, 0).UTC() }
