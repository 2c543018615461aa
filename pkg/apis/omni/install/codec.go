package install

import (
	"bytes"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/runtime/serializer/versioning"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// StorageCodec encodes objects of the scheme the way they are stored, as JSON, and decodes them.
func StorageCodec(scheme *runtime.Scheme) runtime.Codec {
	serializer := json.NewSerializerWithOptions(newStoredMeta(scheme), scheme, scheme, json.SerializerOptions{})

	return storageCodec{versioning.NewDefaultingCodecForScheme(scheme, serializer, serializer, v1alpha1.SchemeGroupVersion, runtime.InternalGroupVersioner)}
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

	return obj, kind, err
}

// storedMeta tells the kind of a stored object by the text that it begins with: the key is that text. The library reads the
// whole text for that, which took a twentieth of the processor time of a create, and is done for each event of a watch of
// etcd.
type storedMeta map[string]schema.GroupVersionKind

func newStoredMeta(scheme *runtime.Scheme) storedMeta {
	meta := storedMeta{}

	for kind := range scheme.KnownTypes(v1alpha1.SchemeGroupVersion) {
		meta[fmt.Sprintf(`{"kind":%q,"apiVersion":%q,`, kind, v1alpha1.SchemeGroupVersion)] = v1alpha1.SchemeGroupVersion.WithKind(kind)
	}

	return meta
}

// Interpret implements json.MetaFactory. A text that begins otherwise is read as a whole.
func (m storedMeta) Interpret(data []byte) (*schema.GroupVersionKind, error) {
	// Through the second comma, or nothing.
	if first := bytes.IndexByte(data, ',') + 1; first > 0 {
		second := first + bytes.IndexByte(data[first:], ',') + 1

		if kind, known := m[string(data[:second])]; known {
			return &kind, nil
		}
	}

	return json.DefaultMetaFactory.Interpret(data)
}
