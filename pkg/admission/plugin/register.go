// Package plugin has the admission plugins of omni-apiserver, and hands them what they need: a view of this server's own
// objects, the authorizer, and choices of the command line.
package plugin

import (
	"io"

	"k8s.io/apiserver/pkg/admission"
)

// Register makes our plugins known, and returns their names in the order in which they run.
func Register(plugins *admission.Plugins) []string {
	ours := []struct {
		name string
		make func() admission.Interface
	}{
		{ClusterNamePlugin, func() admission.Interface { return NewClusterName() }},
		{ControlPlaneCountPlugin, func() admission.Interface { return NewControlPlaneCount() }},
		{ControllerNamespacesPlugin, func() admission.Interface { return NewControllerNamespaces() }},
		{ReferencesPlugin, func() admission.Interface { return NewReferences() }},
		{ExportTargetPlugin, func() admission.Interface { return NewExportTarget() }},
		{RolloutOverridePlugin, func() admission.Interface { return NewRolloutOverride() }},
		{OwnerReferencesPlugin, func() admission.Interface { return NewOwnerReferences() }},
	}

	names := make([]string, 0, len(ours))
	for _, one := range ours {
		plugins.Register(one.name, func(io.Reader) (admission.Interface, error) { return one.make(), nil })
		names = append(names, one.name)
	}

	return names
}
