package migrate

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/validation"
)

// object is one of our typed objects.
type object interface {
	runtime.Object
	metav1.Object
}

// kind is one of the eight kinds that both operators have.
type kind struct {
	Name   string
	Plural string
	// make returns an empty object to decode into.
	make func() object
	// adapt changes the object as the takeover requires, and says what that means.
	adapt func(object) []Finding
	// permission is the field of the spec that adapt sets only for the takeover, if it may not stay: it would let a later
	// change of the object write over what others have made. Empty for kinds whose permission does nothing later.
	permission string
	// check applies the rules of our API server to an object with its defaults.
	check func(object) (field.ErrorList, []string)
}

func (k kind) resource() schema.GroupVersionResource {
	return v1alpha1.SchemeGroupVersion.WithResource(k.Plural)
}

// kinds are in the order of the import: an object comes after those it names, and an OmniCluster after its documents,
// so that no plan is made without them.
func kinds() []kind {
	return []kind{
		kindOf("OmniConnection", "omniconnections", adaptConnection,
			validation.ValidateOmniConnection, validation.WarningsForOmniConnection),
		kindOf("OmniControlPlane", "omnicontrolplanes", nothingToAdapt[*v1alpha1.OmniControlPlane],
			validation.ValidateOmniControlPlane, validation.WarningsForOmniControlPlane),
		kindOf("OmniWorkers", "omniworkers", nothingToAdapt[*v1alpha1.OmniWorkers],
			validation.ValidateOmniWorkers, validation.WarningsForOmniWorkers),
		kindOf("OmniMachine", "omnimachines", nothingToAdapt[*v1alpha1.OmniMachine],
			validation.ValidateOmniMachine, validation.WarningsForOmniMachine),
		kindOf("OmniCluster", "omniclusters", adaptCluster,
			validation.ValidateOmniCluster, validation.WarningsForOmniCluster),
		kindOf("OmniKubeconfigExport", "omnikubeconfigexports", adaptExport,
			validation.ValidateOmniKubeconfigExport, validation.WarningsForOmniKubeconfigExport),
		kindOf("OmniSecretSync", "omnisecretsyncs", adaptSync,
			validation.ValidateOmniSecretSync, func(*v1alpha1.OmniSecretSync) []string { return nil }).permittedBy("adopt"),
		kindOf("OmniHelmRelease", "omnihelmreleases", adaptRelease,
			validation.ValidateOmniHelmRelease, validation.WarningsForOmniHelmRelease).permittedBy("takeOwnership"),
	}
}

// kindOf combines the functions of one kind.
func kindOf[T any, P interface {
	*T
	object
}](name, plural string, adapt func(P) []Finding, validate func(P) field.ErrorList, warnings func(P) []string) kind {
	of := func(obj object) P { return obj.(P) } //nolint:forcetypeassert // made by make, below

	return kind{
		Name: name, Plural: plural,
		make:  func() object { return P(new(T)) },
		adapt: func(obj object) []Finding { return adapt(of(obj)) },
		check: func(obj object) (field.ErrorList, []string) { return validate(of(obj)), warnings(of(obj)) },
	}
}

// permittedBy returns the kind with the field that permits its takeover.
func (k kind) permittedBy(field string) kind {
	k.permission = field

	return k
}

// kindNamed finds a kind; the second result is false for a kind that we do not have.
func kindNamed(name string) (kind, bool) {
	for _, k := range kinds() {
		if k.Name == name {
			return k, true
		}
	}

	return kind{}, false
}
