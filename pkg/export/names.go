package export

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"strings"
)

const (
	// maxName is the largest length of a name that is kept as it is: that of a DNS label, which suits every kind.
	maxName = 63
	// hashLength is the number of hexadecimal digits that tell changed names apart.
	hashLength = 8
)

// dnsName is a name that Kubernetes takes for every kind of ours.
const dnsName = `^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`

// ObjectName is the name of a Kubernetes object for something that Omni calls id: the ID itself where Kubernetes
// allows it, else a readable form of it with a hash of the ID behind, so that two IDs never get one name. The
// same ID always gets the same name.
func ObjectName(id string) string {
	if len(id) <= maxName && regexp.MustCompile(dnsName).MatchString(id) {
		return id
	}

	return hashedName(id)
}

// hashedName always carries the hash.
func hashedName(id string) string {
	sum := sha256.Sum256([]byte(id))
	readable := regexp.MustCompile(`[^a-z0-9]+`).ReplaceAllString(strings.ToLower(id), "-")

	if len(readable) > maxName-hashLength-1 {
		readable = readable[:maxName-hashLength-1]
	}

	readable = strings.Trim(readable, "-")
	suffix := hex.EncodeToString(sum[:])[:hashLength]

	if readable == "" {
		readable = "omni"
	}

	return readable + "-" + suffix
}
