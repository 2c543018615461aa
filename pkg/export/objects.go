package export

import (
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/template"
)

// ObjectOptions say how objects are made.
type ObjectOptions struct {
	// Namespace of every object. Empty: none is written, and the manifests go where they are applied.
	Namespace string
	// Connection is the name of the OmniConnection. Required.
	Connection string
	// Adopt makes an OmniCluster that takes its cluster over when somebody says so: spec.adopt is set, changePolicy Observe writes
	// nothing until then, and deletePolicy.orphan keeps the cluster if the object is deleted.
	Adopt bool
}

// Objects are the objects of one cluster.
type Objects struct {
	// ConfigMaps hold the contents that cannot be inline blocks, one key each.
	ConfigMaps []corev1.ConfigMap
	// Cluster is never nil.
	Cluster *v1alpha1.OmniCluster
	// ControlPlane is never nil.
	ControlPlane *v1alpha1.OmniControlPlane
	// Workers are in the order of the template.
	Workers []v1alpha1.OmniWorkers
	// Machines are those that say something about their machine, in the order of the template.
	Machines []v1alpha1.OmniMachine
}

// Input is what template.Assemble takes.
func (o *Objects) Input() template.Input {
	return template.Input{
		Cluster: o.Cluster, ControlPlanes: []v1alpha1.OmniControlPlane{*o.ControlPlane}, Workers: o.Workers, Machines: o.Machines,
	}
}

// Value is the template.ValueFunc that reads the objects' own ConfigMaps.
func (o *Objects) Value(source v1alpha1.ValueSource) (string, error) {
	if source.ConfigMapKeyRef == nil {
		return "", errors.New("only ConfigMaps are exported")
	}

	for _, configMap := range o.ConfigMaps {
		if value, found := configMap.Data[source.ConfigMapKeyRef.Key]; found && configMap.Name == source.ConfigMapKeyRef.Name {
			return value, nil
		}
	}

	return "", fmt.Errorf("no ConfigMap %q was exported", source.ConfigMapKeyRef.Name)
}

// Manifests are all objects, in the order in which they are written. The OmniCluster is the last: a tool applies
// one after the other, and a controller that saw the cluster without its other documents would take labels and
// settings of machines off that the next document puts back.
func (o *Objects) Manifests() []runtime.Object {
	var all []runtime.Object

	for i := range o.ConfigMaps {
		all = append(all, &o.ConfigMaps[i])
	}

	all = append(all, o.ControlPlane)

	for i := range o.Workers {
		all = append(all, &o.Workers[i])
	}

	for i := range o.Machines {
		all = append(all, &o.Machines[i])
	}

	return append(all, o.Cluster)
}

// ConnectionOptions describe an OmniConnection.
type ConnectionOptions struct {
	// Name and Namespace of the object.
	Name, Namespace string
	// Endpoint is the URL of the Omni API.
	Endpoint string
	// CABundle is PEM; empty: the system's roots.
	CABundle []byte
	// InsecureSkipTLSVerify accepts any certificate.
	InsecureSkipTLSVerify bool
	// Secret is the name of the Secret that holds the key, which is not exported.
	Secret string
}

// Connection is the OmniConnection to an Omni.
func Connection(options ConnectionOptions) *v1alpha1.OmniConnection {
	return &v1alpha1.OmniConnection{
		TypeMeta:   typeOf("OmniConnection"),
		ObjectMeta: metav1.ObjectMeta{Name: options.Name, Namespace: options.Namespace},
		Spec: v1alpha1.OmniConnectionSpec{
			Endpoint:              options.Endpoint,
			Auth:                  v1alpha1.OmniConnectionAuth{ServiceAccountSecretRef: v1alpha1.SecretKeyReference{Name: options.Secret}},
			CABundle:              options.CABundle,
			InsecureSkipTLSVerify: options.InsecureSkipTLSVerify,
		},
	}
}

func typeOf(kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: kind}
}
