package clusteraccess

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"strings"
	"time"

	"omni.texashpc.com/omni-cluster-operator/pkg/foreign"
)

// claims are the needed parts of a token of Omni. They are read without checking the signature: Omni's proxy checks it,
// and accepts the token for this cluster only.
// An export reads its own tokens strictly (omnikubeconfigexport/token.go): there a claim that is missing is an error.
type claims struct {
	ClusterUUID string `json:"cluster_uuid"`
	Expires     int64  `json:"exp"`
}

// claimsLimits bound the claims of a token. Those of Omni have a few hundred bytes.
//
//nolint:gochecknoglobals // a constant
var claimsLimits = foreign.Limits{Bytes: 16 << 10, Depth: 16, Nodes: 1000, Expanded: 16 << 10}

// readClaims reads the claims of a token; a token of another form, or with claims that are too large, has none. What can be
// no ID of a cluster is left out.
func readClaims(token string) claims {
	var found claims

	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return found
	}

	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil || !json.Valid(payload) {
		return claims{}
	}

	// JSON never waits for other texts, so there is nothing to interrupt.
	if foreign.Unmarshal(context.Background(), payload, claimsLimits, &found) != nil {
		return claims{}
	}

	if !usable(found.ClusterUUID) {
		found.ClusterUUID = ""
	}

	return found
}

// expiry returns when the token expires; zero if unknown.
func (c claims) expiry() time.Time {
	if c.Expires <= 0 {
		return time.Time{}
	}

	return time.Unix(c.Expires, 0).UTC()
}
