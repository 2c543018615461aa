package omnisim

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/cosi-project/runtime/pkg/state"

	"github.com/siderolabs/omni/client/api/omni/specs"
	"github.com/siderolabs/omni/client/pkg/omni/resources/omni"
	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/compatibility"
)

// Catalogue is what exists outside of Omni: versions and extensions. Versions have no leading v.
type Catalogue struct {
	// Talos are the versions of Talos that clusters may use.
	Talos []string
	// Kubernetes are the versions of Kubernetes that clusters may use.
	Kubernetes []string
	// Extensions are the names of the system extensions.
	Extensions []string
	// Since has the first version of Talos that an extension exists for, by the extension's name. All others exist for
	// every version.
	Since map[string]string
}

// DefaultCatalogue returns the versions and extensions that the real server has in the contract tests. Talos 1.13.1 is
// missing: it is on Omni's deny list.
func DefaultCatalogue() Catalogue {
	return Catalogue{
		Talos:      []string{"1.11.6", "1.12.7", "1.12.8", "1.13.2", "1.13.3", "1.13.4", "1.13.5"},
		Kubernetes: []string{"1.34.8", "1.35.0", "1.35.1", "1.35.4", "1.35.5", "1.36.0", "1.36.1"},
		Extensions: []string{
			"siderolabs/hello-world-service", "siderolabs/iscsi-tools", "siderolabs/qemu-guest-agent", "siderolabs/util-linux-tools",
		},
	}
}

// talosVersion is a version of Talos with the versions of Kubernetes that it runs.
type talosVersion struct{ kubernetes []string }

func (t talosVersion) runs(kubernetes string) bool { return slices.Contains(t.kubernetes, kubernetes) }

// talos returns a version of Talos if the catalogue has it.
func (c *Catalogue) talos(version string) (talosVersion, bool) {
	if !slices.Contains(c.Talos, version) {
		return talosVersion{}, false
	}

	parsed, err := compatibility.ParseTalosVersion(&machine.VersionInfo{Tag: "v" + version})
	if err != nil {
		return talosVersion{}, false
	}

	var runs []string

	for _, kubernetes := range c.Kubernetes {
		target, parseErr := compatibility.ParseKubernetesVersion(kubernetes)
		if parseErr == nil && target.SupportedWith(parsed) == nil {
			runs = append(runs, kubernetes)
		}
	}

	return talosVersion{kubernetes: runs}, true
}

// hasExtension reports whether an extension exists for a version of Talos. Since must name a version that the catalogue has.
func (c *Catalogue) hasExtension(name, talos string) bool {
	return slices.Contains(c.Extensions, name) && slices.Index(c.Talos, talos) >= slices.Index(c.Talos, c.Since[name])
}

// store creates the resources of the versions.
func (c *Catalogue) store(ctx context.Context, st state.State) error {
	for _, version := range c.Talos {
		version = strings.TrimPrefix(version, "v")
		known, _ := c.talos(version)

		talos := omni.NewTalosVersion(version)
		talos.TypedSpec().Value.Version = version
		talos.TypedSpec().Value.CompatibleKubernetesVersions = known.kubernetes

		if err := st.Create(ctx, talos, state.WithCreateOwner("VersionsController")); err != nil {
			return fmt.Errorf("talos %s: %w", version, err)
		}

		extensions := omni.NewTalosExtensions(version)
		for _, name := range c.Extensions {
			if c.hasExtension(name, version) {
				extensions.TypedSpec().Value.Items = append(extensions.TypedSpec().Value.Items, &specs.TalosExtensionsSpec_Info{Name: name})
			}
		}

		if err := st.Create(ctx, extensions, state.WithCreateOwner("TalosExtensionsController")); err != nil {
			return fmt.Errorf("extensions of talos %s: %w", version, err)
		}
	}

	for _, version := range c.Kubernetes {
		kubernetes := omni.NewKubernetesVersion(version)
		kubernetes.TypedSpec().Value.Version = version

		if err := st.Create(ctx, kubernetes, state.WithCreateOwner("VersionsController")); err != nil {
			return fmt.Errorf("kubernetes %s: %w", version, err)
		}
	}

	return nil
}
