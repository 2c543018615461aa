package apiserver

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
)

// compactJSON writes our kinds as JSON without white space only, which is valid YAML, too, and reads JSON and YAML.
//
// Not indented: of a deeply nested object that takes a hundred times its size, and the library encodes only compact JSON
// object by object. A whole list in another format takes up to seven times its length in memory.
//
// No protobuf: the library offers it for every type, and answers 500 if a type has no such encoding. The namespace
// controller and the garbage collector, which prefer protobuf, could then delete nothing. Without the offer they use JSON.
type compactJSON struct{ runtime.NegotiatedSerializer }

// SupportedMediaTypes returns JSON and YAML, both with the encoder of compact JSON.
func (s compactJSON) SupportedMediaTypes() []runtime.SerializerInfo {
	offered := slices.Clone(s.NegotiatedSerializer.SupportedMediaTypes())

	json, ok := runtime.SerializerInfoForMediaType(offered, runtime.ContentTypeJSON)
	if !ok {
		return nil
	}

	offered = slices.DeleteFunc(offered, func(info runtime.SerializerInfo) bool {
		return info.MediaType == runtime.ContentTypeProtobuf
	})

	for i := range offered {
		offered[i].PrettySerializer = nil

		if offered[i].MediaType == runtime.ContentTypeYAML {
			offered[i].Serializer = struct {
				runtime.Decoder
				runtime.Encoder
			}{offered[i].Serializer, json.Serializer}
		}
	}

	return offered
}
