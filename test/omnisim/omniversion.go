package omnisim

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/cosi-project/runtime/pkg/resource"
	"github.com/cosi-project/runtime/pkg/resource/meta"
	"github.com/cosi-project/runtime/pkg/state"

	"github.com/siderolabs/omni/client/pkg/omni/resources"
	"github.com/siderolabs/omni/client/pkg/omni/resources/omni"
	"github.com/siderolabs/omni/client/pkg/omni/resources/registry"
	"github.com/siderolabs/omni/client/pkg/omni/resources/system"

	operator "omni.texashpc.com/omni-cluster-operator/pkg/omni"
)

// DefaultVersion is the version of Omni that a simulator speaks unless Options.OmniVersion is set.
const DefaultVersion = "1.9"

// release is what a version of Omni says of itself.
type release struct {
	minor   int32
	version string
	api     uint32
}

// releases are the versions that the simulator speaks:
//
//   - 1.9 is held to a real server, 1.9.3, by the contract.
//   - 1.11 was read in the public source of 21 August 2026, and tried against a server that was built from it.
//   - 1.14 is 1.11 and what release pages tell of later ones. Nobody tried it; that its API has number 3 is inferred.
//   - 1.8 is 1.9 without KubernetesHealthChecks. Nobody tried it.
func releases() map[string]release {
	return map[string]release{
		"1.8":  {minor: 8, version: "v1.8.0", api: 2},
		"1.9":  {minor: 9, version: "v1.9.3", api: 2},
		"1.11": {minor: 11, version: "v1.11.0", api: 3},
		"1.14": {minor: 14, version: "v1.14.1", api: 3},
	}
}

// The minor versions of Omni 1 from which on something holds.
const (
	since9  = 9
	since10 = 10
	since11 = 11
	since14 = 14
)

func releaseOf(version string) (release, error) {
	found, known := releases()[version]
	if !known {
		return release{}, fmt.Errorf("version %q of Omni is not one of %s", version, strings.Join(slices.Sorted(maps.Keys(releases())), ", "))
	}

	return found, nil
}

// speaks is the minor version of Omni 1 that a simulator speaks now.
type speaks struct{ minor atomic.Int32 }

// from reports whether the simulator speaks that minor version or a later one.
func (s *speaks) from(minor int32) bool { return s.minor.Load() >= minor }

// serves reports whether Omni of this version has the type. Of the types of the client library only those are told apart
// that this repository uses.
func (s *speaks) serves(resourceType resource.Type) bool {
	switch resourceType {
	case omni.KubernetesHealthCheckType:
		return s.from(since9)
	case operator.MachineInstallDiskConfigType, operator.MachineInstallDiskStatusType, operator.KubernetesHealthCheckStatusType:
		return s.from(since11)
	default:
		return true
	}
}

// Upgrade makes the simulator another version of Omni, as a restart with another image does: connections end, the
// migrations of the first start run, and the server is back at the same address, unless it was down before. To an older
// version, nothing is migrated; a real Omni does not go back.
func (s *Server) Upgrade(version string) error {
	next, err := releaseOf(version)
	if err != nil {
		return err
	}

	s.mu.Lock()
	up := s.serving != nil
	s.mu.Unlock()

	s.GoDown()

	if err := s.become(context.Background(), next); err != nil {
		return fmt.Errorf("become Omni %s: %w", version, err)
	}

	if !up {
		return nil
	}

	return s.ComeBack()
}

// become stores what a version says of itself and serves, and migrates.
func (s *Server) become(ctx context.Context, next release) error {
	s.version.minor.Store(next.minor)

	if err := s.defineTypes(ctx); err != nil {
		return err
	}

	err := put(ctx, s.resources, "", system.NewSysVersion(system.SysVersionID), func(current *system.SysVersion) {
		spec := current.TypedSpec().Value
		spec.BackendVersion, spec.BackendApiVersion, spec.InstanceName = next.version, next.api, s.options.AccountName
	})
	if err != nil {
		return fmt.Errorf("store the version: %w", err)
	}

	if !s.version.from(since11) {
		return nil
	}

	return migrateInstallDisks(ctx, s.resources)
}

// defineTypes makes the ResourceDefinitions equal to what is served.
func (s *Server) defineTypes(ctx context.Context) error {
	definitions := []meta.ResourceDefinitionSpec{
		meta.ResourceDefinitionExtension{}.ResourceDefinition(), meta.NamespaceExtension{}.ResourceDefinition(),
		operator.MachineInstallDiskConfigExtension{}.ResourceDefinition(),
		{Type: operator.MachineInstallDiskStatusType, DefaultNamespace: resources.DefaultNamespace},
		{Type: operator.KubernetesHealthCheckStatusType, DefaultNamespace: resources.EphemeralNamespace},
	}

	for _, known := range registry.Resources {
		definitions = append(definitions, known.ResourceDefinition())
	}

	for _, spec := range definitions {
		definition, err := meta.NewResourceDefinition(spec)
		if err != nil {
			return err
		}

		if s.version.serves(spec.Type) {
			err = s.resources.Create(ctx, definition, state.WithCreateOwner(meta.Owner))
		} else {
			err = s.resources.Destroy(ctx, definition.Metadata(), state.WithDestroyOwner(meta.Owner))
		}

		if err != nil && !state.IsConflictError(err) && !state.IsNotFoundError(err) {
			return fmt.Errorf("define %s: %w", spec.Type, err)
		}
	}

	return nil
}
