package install

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// StorageCodec encodes objects the way they are stored.
func StorageCodec(codecs serializer.CodecFactory) runtime.Codec {
	return storageCodec{codecs.LegacyCodec(v1alpha1.SchemeGroupVersion)}
}

// storageCodec decodes objects without kind and apiVersion, as conversion to an internal type would. Where the stored
// and the internal type are the same, and the caller gives the object to decode into, the library keeps both fields.
// Items of a list would then have them or not, depending on whether they came from a list or a watch of etcd.
type storageCodec struct{ runtime.Codec }

// Decode implements runtime.Decoder.
func (c storageCodec) Decode(data []byte, defaults *schema.GroupVersionKind, into runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	obj, kind, err := c.Codec.Decode(data, defaults, into)
	if obj != nil {
		obj.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	}

	return obj, kind, err // the library knows its errors
}
