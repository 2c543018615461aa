package kubeclient

import (
	"fmt"

	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/kube"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/cli-runtime/pkg/resource"
	"k8s.io/client-go/openapi/cached"
	"k8s.io/kubectl/pkg/validation"
)

// Kinds is a set of kinds. It is safe for concurrent use.
type Kinds interface {
	// Has reports whether a kind is in the set.
	Has(kind schema.GroupVersionKind) bool
	// Add puts a kind into the set.
	Add(kind schema.GroupVersionKind)
}

// RememberKinds makes Helm ask a workload cluster once for each kind whether its API server validates fields, and not
// once for each action: the answer is in the OpenAPI document of the kind's group, and reading that takes more
// processor time than the rest of a small chart's installation. Kinds are those that the cluster is known to validate;
// a kind that it does not validate is asked about again, and nil asks in each action. The error is that of a configuration without the client that Helm makes.
func RememberKinds(config *action.Configuration, kinds Kinds) error {
	client, ok := config.KubeClient.(*kube.Client)
	if !ok {
		return fmt.Errorf("the client of Helm has the unknown type %T", config.KubeClient)
	}

	if kinds != nil {
		client.Factory = &rememberingFactory{Factory: client.Factory, getter: config.RESTClientGetter, kinds: kinds}
	}

	return nil
}

// rememberingFactory is Helm's factory with another validator.
type rememberingFactory struct {
	kube.Factory

	getter action.RESTClientGetter
	kinds  Kinds
}

// Validator implements kube.Factory.
func (f *rememberingFactory) Validator(directive string) (validation.Schema, error) {
	inner, err := f.Factory.Validator(directive)
	if err != nil || directive != metav1.FieldValidationStrict {
		return inner, err
	}

	objects, err := f.DynamicClient()
	if err != nil {
		return nil, err
	}

	documents, err := f.getter.ToDiscoveryClient()
	if err != nil {
		return nil, err
	}

	return &rememberingSchema{
		inner: inner, kinds: f.kinds,
		verifier: resource.NewQueryParamVerifierV3(objects, cached.NewClient(documents.OpenAPIV3()), resource.QueryParamFieldValidation),
	}, nil
}

// rememberingSchema leaves validation to the API server where it does that, and to Helm's own where it does not.
type rememberingSchema struct {
	inner    validation.Schema
	kinds    Kinds
	verifier resource.Verifier
}

// ValidateBytes implements validation.Schema.
func (s *rememberingSchema) ValidateBytes(data []byte) error {
	kind, err := json.DefaultMetaFactory.Interpret(data)
	if err != nil {
		return s.inner.ValidateBytes(data)
	}

	if s.kinds.Has(*kind) {
		return nil
	}

	if s.verifier.HasSupport(*kind) != nil {
		return s.inner.ValidateBytes(data)
	}

	s.kinds.Add(*kind)

	return nil
}
