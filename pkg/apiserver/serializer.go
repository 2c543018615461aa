package apiserver

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
)

// withoutProtobuf serves our kinds as JSON and YAML only. The library offers protobuf for every type, and answers 500
// if a type has no protobuf encoding. The namespace controller and the garbage collector, which prefer protobuf,
// could then delete nothing. Without the offer they use JSON.
type withoutProtobuf struct{ runtime.NegotiatedSerializer }

// SupportedMediaTypes returns the media types without protobuf.
func (s withoutProtobuf) SupportedMediaTypes() []runtime.SerializerInfo {
	offered := slices.Clone(s.NegotiatedSerializer.SupportedMediaTypes())

	return slices.DeleteFunc(offered, func(info runtime.SerializerInfo) bool {
		return info.MediaType == runtime.ContentTypeProtobuf
	})
}
