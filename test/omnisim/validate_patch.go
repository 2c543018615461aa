package omnisim

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/siderolabs/omni/client/pkg/omni/resources/omni"
)

// validatePatch refuses what Omni of this version refuses in a patch. Up to 1.9 these are the rules of the client
// library, which look at the first document only. Since 1.10 each document is looked at.
func (r rules) validatePatch(text []byte) error {
	if err := r.validateTalos(text); err != nil || !r.version.from(since10) {
		return err
	}

	var reasons []error

	for decoder := yaml.NewDecoder(bytes.NewReader(text)); ; {
		var document map[string]any

		switch err := decoder.Decode(&document); {
		case errors.Is(err, io.EOF):
			return errors.Join(reasons...)
		case err != nil:
			return err
		}

		reasons = appendReason(reasons, r.validateDocument(document))
	}
}

// validateDocument refuses documents, and fields of documents, that Omni itself writes.
func (r rules) validateDocument(document map[string]any) error {
	kind, _ := document["kind"].(string)

	var fields []string

	switch kind {
	case "":
		text, err := yaml.Marshal(document)
		if err != nil {
			return err
		}

		if err := omni.ValidateConfigPatch(text); err != nil { // it may not be the first document
			return err
		}

		fields = []string{"cluster.ca", "cluster.serviceAccount"}
		if r.version.from(since11) {
			fields = append(fields, "machine.install.disk")
		}
	case "UnattendedInstallConfig", "DiscoveryIdentityConfig", "KubeClusterConfig", "KubeEtcdEncryptionConfig", "KubeAPIServerCAConfig",
		"KubeAggregatorCAConfig":
		return fmt.Errorf("the %q document is not allowed in the config patch", kind)
	case "KubeServiceAccountConfig":
		fields = []string{"issuer.privateKey"}
	case "KubeTalosAPIAccessConfig":
		if roles, _ := document["allowedRoles"].([]any); slices.Contains(roles, any("os:admin")) {
			return fmt.Errorf("element %q is not allowed in field %q", "os:admin", "allowedRoles")
		}
	}

	for _, field := range fields {
		if hasField(document, strings.Split(field, ".")) {
			return fmt.Errorf("overriding %q is not allowed in the config patch", field)
		}
	}

	return nil
}

// hasField reports whether a document has a field, given as its path.
func hasField(document map[string]any, path []string) bool {
	value, found := document[path[0]]
	if !found || len(path) == 1 {
		return found
	}

	inner, _ := value.(map[string]any)

	return hasField(inner, path[1:])
}
