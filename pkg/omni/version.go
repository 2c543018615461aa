package omni

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/cosi-project/runtime/pkg/resource"
	"github.com/cosi-project/runtime/pkg/resource/meta"
	"github.com/cosi-project/runtime/pkg/safe"
	"github.com/cosi-project/runtime/pkg/state"
	"github.com/siderolabs/omni/client/pkg/omni/resources/system"

	"omni.texashpc.com/omni-cluster-operator/pkg/foreign/redact"
)

// Versions of Omni that this project was tried with: see docs/reference/versions.md.
const (
	// OldestVersion is the oldest one that serves every kind that is mirrored, but for optional ones.
	OldestVersion = "1.9"
	// newestMinor and newestAPI are of the newest one: a server of 1.11 in the making.
	newestMinor = 11
	newestAPI   = 3
)

// maxVersionText is how long each text of a Version may be, in bytes: they go into statuses.
const maxVersionText = 128

// Version is what an Omni says of itself. The zero value is an Omni that does not.
type Version struct {
	// Text is the release, such as v1.9.3.
	Text string
	// API is the number of its API: 2 up to 1.10, 3 from 1.11 on.
	API uint32
	// Instance is the name of the Omni account.
	Instance string
}

// VersionOf returns what a resource says.
func VersionOf(current *system.SysVersion) Version {
	spec := current.TypedSpec().Value
	bounded := func(text string) string { return redact.Bounded(redact.Line(text), maxVersionText) }

	return Version{Text: bounded(spec.GetBackendVersion()), API: spec.GetBackendApiVersion(), Instance: bounded(spec.GetInstanceName())}
}

// IsNewer reports whether Omni is newer than every version that this project was tried with.
func (v Version) IsNewer() bool {
	major, minor, known := v.numbers()

	return v.API > newestAPI || known && (major > 1 || major == 1 && minor > newestMinor)
}

// IsOlder reports whether Omni is older than every version that this project was tried with.
func (v Version) IsOlder() bool {
	_, oldest, _ := Version{Text: OldestVersion + ".0"}.numbers()
	major, minor, known := v.numbers()

	return known && (major < 1 || major == 1 && minor < oldest)
}

// numbers returns the first two numbers of a release. A server that was built from source may not say one.
func (v Version) numbers() (major, minor int, known bool) {
	parts := strings.SplitN(strings.TrimPrefix(v.Text, "v"), ".", 3)
	if len(parts) < 3 {
		return 0, 0, false
	}

	major, err := strconv.Atoi(parts[0])
	if err != nil {
		return 0, 0, false
	}

	minor, err = strconv.Atoi(parts[1])

	return major, minor, err == nil
}

// Capabilities are what an Omni is and serves.
type Capabilities struct {
	Version Version
	served  map[resource.Type]bool
}

// Serves reports whether Omni serves a type, of those that were asked for.
func (c *Capabilities) Serves(resourceType resource.Type) bool {
	return c.served[resourceType]
}

// ReadCapabilities asks an Omni about types, in two calls. Each signed caller may read both answers, whatever its role.
func ReadCapabilities(ctx context.Context, st state.State, types []resource.Type) (*Capabilities, error) {
	found := &Capabilities{served: map[resource.Type]bool{}}

	current, err := safe.StateGetByID[*system.SysVersion](ctx, st, system.SysVersionID)

	switch {
	case err == nil:
		found.Version = VersionOf(current)
	case !state.IsNotFoundError(err):
		return nil, fmt.Errorf("read the version of Omni: %w", err)
	}

	definitions, err := st.List(ctx, resource.NewMetadata(meta.NamespaceName, meta.ResourceDefinitionType, "", resource.VersionUndefined))
	if err != nil {
		return nil, fmt.Errorf("read what Omni serves: %w", err)
	}

	// The ID of a definition is the lower case of its type. What else an Omni lists is not kept.
	for _, resourceType := range types {
		found.served[resourceType] = slices.ContainsFunc(definitions.Items, func(definition resource.Resource) bool {
			return definition.Metadata().ID() == strings.ToLower(resourceType)
		})
	}

	return found, nil
}

// ErrTooOld: Omni does not serve a kind that is needed. The error is a *TooOldError.
var ErrTooOld = errors.New("Omni is too old") // Omni is a name

// TooOldError names what Omni does not serve. It is ErrTooOld.
type TooOldError struct {
	// Version is that of the Omni.
	Version Version
	// Missing is the first type that is needed and not served.
	Missing resource.Type
}

// Error says which version is needed.
func (e *TooOldError) Error() string {
	said := e.Version.Text
	if said == "" {
		said = "of an unknown version"
	}

	remedy := "upgrade Omni to " + OldestVersion + " or later"
	if e.Version.IsNewer() {
		remedy = "this Omni is newer than this release of the operator: install a later release"
	}

	return fmt.Sprintf("Omni %s does not serve %s, which is needed: %s", said, KindOf(e.Missing), remedy)
}

// Unwrap returns ErrTooOld.
func (*TooOldError) Unwrap() error { return ErrTooOld }

// RequireKinds returns a *TooOldError if Omni does not serve one of the types.
func (c *Capabilities) RequireKinds(required []resource.Type) error {
	for _, resourceType := range required {
		if !c.Serves(resourceType) {
			return &TooOldError{Version: c.Version, Missing: resourceType}
		}
	}

	return nil
}
