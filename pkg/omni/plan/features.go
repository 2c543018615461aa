package plan

import (
	"slices"

	"github.com/cosi-project/runtime/pkg/resource"
	"github.com/siderolabs/omni/client/api/omni/specs"
	omnires "github.com/siderolabs/omni/client/pkg/omni/resources/omni"
	"github.com/siderolabs/omni/client/pkg/template"
	"google.golang.org/protobuf/reflect/protoreflect"

	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
)

// features are those of a Cluster document that the library's template does not know: Omni's templates have them since 1.10. Nil
// leaves what Omni has.
type features struct {
	EnableNodeAuditSkip           *bool `yaml:"enableNodeAuditSkip"`
	DisablePublicDiscoveryService *bool `yaml:"disablePublicDiscoveryService"`
}

// set puts those that are set into a Cluster. Omni 1.9 keeps the second one without a meaning.
func (f features) set(cluster *omnires.Cluster) {
	spec := cluster.TypedSpec().Value.GetFeatures()

	if f.EnableNodeAuditSkip != nil {
		spec.EnableNodeAuditSkip = *f.EnableNodeAuditSkip
	}

	if f.DisablePublicDiscoveryService != nil {
		omni.SetDisablePublicDiscovery(spec, *f.DisablePublicDiscoveryService)
	}
}

// addTo adds the features to the library's result, which has no update of a Cluster that differs in them only.
func (f features) addTo(result *template.SyncResult, wanted *parsed, live *omnires.Cluster) {
	if f == (features{}) {
		return
	}

	for _, item := range result.Create {
		if cluster, isCluster := item.(*omnires.Cluster); isCluster {
			f.set(cluster)
		}
	}

	isCluster := func(update template.UpdateChange) bool { return update.Old.Metadata().Type() == omnires.ClusterType }
	if live == nil || slices.ContainsFunc(result.Update, isCluster) {
		return
	}

	for _, item := range wanted.resources {
		if cluster, isCluster := item.(*omnires.Cluster); isCluster {
			result.Update = slices.Insert(result.Update, 0, template.UpdateChange{Old: live, New: inPlaceOf(live, cluster)})
		}
	}
}

// inPlaceOf returns what the template asks for as an update of the live resource, with what no template says of a resource.
func inPlaceOf(live, asked resource.Resource) resource.Resource {
	updated := asked.DeepCopy()
	updated.Metadata().SetVersion(live.Metadata().Version())
	updated.Metadata().SetCreated(live.Metadata().Created())
	updated.Metadata().SetUpdated(live.Metadata().Updated())
	updated.Metadata().Finalizers().Set(*live.Metadata().Finalizers())

	return updated
}

// featuresDiffer reports whether two messages are features that differ in the field that the library does not know.
func featuresDiffer(before, after protoreflect.Message) bool {
	was, hadFeatures := before.Interface().(*specs.ClusterSpec_Features)
	is, hasFeatures := after.Interface().(*specs.ClusterSpec_Features)

	return hadFeatures && hasFeatures && omni.DisablesPublicDiscovery(was) != omni.DisablesPublicDiscovery(is)
}
