package app

import (
	cliflag "k8s.io/component-base/cli/flag"

	"omni.texashpc.com/omni-cluster-operator/pkg/hub"
)

// Flags returns the flags in sections: our own first, then those of the generic API server.
func (o *Options) Flags() cliflag.NamedFlagSets {
	var sections cliflag.NamedFlagSets

	omni := sections.FlagSet("omni")
	omni.StringVar(&o.EtcdDataDir, "etcd-data-dir", o.EtcdDataDir,
		"Directory of the etcd that runs inside this process and holds all objects. Made if it does not exist; "+
			"only one process can use it. Excludes --etcd-servers.")
	o.Embedded.addFlags(omni)
	o.Limits.addFlags(omni)
	omni.StringSliceVar(&o.ControllerNamespaces, "controller-namespaces", o.ControllerNamespaces,
		"Namespaces that an omni-controller serves, comma separated. Who creates, changes or deletes an object anywhere else "+
			"gets a warning that nobody will look at it. Empty: no warning.")
	omni.BoolVar(&o.CheckReferences, "check-references", o.CheckReferences,
		"Refuse an object, or a change of it, that begins to use a Secret or ConfigMap which the writer may not get in "+
			"the management cluster. Accounts of GitOps controllers need that right then.")
	omni.BoolVar(&o.RequireDeletionConfirmation, "require-deletion-confirmation", o.RequireDeletionConfirmation,
		"Refuse to delete an OmniCluster before it is annotated with omni.texashpc.com/confirm-deletion=<its name>, "+
			"unless its spec.deletePolicy.requireConfirmation says otherwise.")
	omni.StringVar(&o.ManagementClusterName, "management-cluster-name", o.ManagementClusterName,
		"Name of this management cluster in the ownership mark of rendered templates. Give the controller the same.")
	omni.StringVar(&o.HubID, hub.FlagID, o.HubID, hub.FlagIDUsage)

	o.Hub.AddFlags(sections.FlagSet("hub"))
	o.Serving.AddFlags(sections.FlagSet("secure serving"))
	o.Authentication.AddFlags(sections.FlagSet("authentication"))
	o.Authorization.AddFlags(sections.FlagSet("authorization"))
	o.Storage.AddFlags(sections.FlagSet("storage"))
	o.Admission.AddFlags(sections.FlagSet("admission"))
	o.Audit.AddFlags(sections.FlagSet("audit"))
	o.Features.AddFlags(sections.FlagSet("features"))
	o.Traces.AddFlags(sections.FlagSet("traces"))
	o.addServerFlags(sections.FlagSet("generic"))

	return sections
}
