package apiserver

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
)

// withoutProtobuf serves our kinds as JSON and YAML. The library offers protobuf for every type, and
// answers 500 when a type has none; the namespace controller and the garbage collector, which prefer
// protobuf, could then delete nothing. Without the offer they agree on JSON.
type withoutProtobuf struct{ runtime.NegotiatedSerializer }

// SupportedMediaTypes leaves protobuf out of the offer.
func (s withoutProtobuf) SupportedMediaTypes() []runtime.SerializerInfo {
	offered := slices.Clone(s.NegotiatedSerializer.SupportedMediaTypes())

	return slices.DeleteFunc(offered, func(info runtime.SerializerInfo) bool {
		return info.MediaType == runtime.ContentTypeProtobuf
	})
}
