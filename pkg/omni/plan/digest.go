package plan

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"
	"strconv"
)

// digestOf identifies a step with what it writes: 32 hexadecimal digits that stay the same as long as the change does.
// Content that is compressed differently counts as the same.
func digestOf(s step) string {
	parts := []string{string(s.change.Kind), string(s.change.Action), s.change.Key()}

	if s.new != nil {
		parts = append(parts, written(s)...)
	}

	hash := sha256.New()
	for _, part := range parts {
		// The length prefix separates the parts.
		hash.Write([]byte(strconv.Itoa(len(part)) + ":" + part))
	}

	return hex.EncodeToString(hash.Sum(nil)[:16])
}

// written returns what a create or an update writes: for a part of a Cluster only the version, so that the other
// version makes no difference.
func written(s step) []string {
	if s.change.Part != "" {
		return []string{s.change.To}
	}

	metadata := s.new.Metadata()

	return append(pairs(metadata.Labels().Raw(), metadata.Annotations().Raw()), specOf(s.new)...)
}

func pairs(all ...map[string]string) []string {
	var found []string

	for _, some := range all {
		for _, key := range slices.Sorted(maps.Keys(some)) {
			found = append(found, key+"="+some[key])
		}

		found = append(found, "")
	}

	return found
}
