package bounds

import (
	"errors"
	"fmt"
	"reflect"
	"sync"

	"github.com/cosi-project/runtime/api/v1alpha1"
	"github.com/cosi-project/runtime/pkg/resource"
	cosiproto "github.com/cosi-project/runtime/pkg/resource/protobuf"
	"github.com/klauspost/compress/zstd"
	"github.com/siderolabs/omni/client/api/omni/specs"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
)

// Weighing estimates the memory that an encoded message takes once it is decoded, without decoding it: two bytes of an
// empty message in a list become a hundred. It counts what the decoder allocates: a struct for each message, a string
// for each text, an entry for each element of a list or map.
const (
	textOverhead  = 32  // header and rounding of a string or []byte
	entryOverhead = 112 // of a map, which is copied once while the resource is decoded
	// resourceOverhead is the size of a resource without its spec and its labels, including its entries in the tables of a
	// mirror; measured.
	resourceOverhead = 700
	// maxNesting is the deepest nesting of messages; Omni's have five levels.
	maxNesting = 32
	// maxMetadataEntries is how many labels, annotations and finalizers one resource may have together: the client library
	// copies all of them for each one that it adds. Omni sets about ten.
	maxMetadataEntries = 1000
)

// ErrMalformed: the data is no message of the protocol, or none that we accept.
var ErrMalformed = errors.New("the answer is not what Omni sends")

// Weigh returns the weight of an encoded message, in bytes.
func Weigh(of protoreflect.MessageDescriptor, wire []byte) (int64, error) {
	return weighNested(of, wire, maxNesting)
}

func weighNested(of protoreflect.MessageDescriptor, wire []byte, levels int) (int64, error) {
	if levels == 0 {
		return 0, fmt.Errorf("%w: messages in messages in messages", ErrMalformed)
	}

	total := structSize(of)

	for len(wire) > 0 {
		number, kind, tag := protowire.ConsumeTag(wire)
		if tag < 0 {
			return 0, ErrMalformed
		}

		length := protowire.ConsumeFieldValue(number, kind, wire[tag:])
		if length < 0 {
			return 0, ErrMalformed
		}

		weight, err := weighField(of.Fields().ByNumber(number), kind, wire[tag:tag+length], levels)
		if err != nil {
			return 0, err
		}

		total += weight
		wire = wire[tag+length:]
	}

	return total, nil
}

// weighField returns what one occurrence of a field adds to its message.
func weighField(field protoreflect.FieldDescriptor, kind protowire.Type, value []byte, levels int) (int64, error) {
	switch {
	case field == nil:
		return int64(len(value)) + textOverhead, nil // kept as it came
	case kind != protowire.BytesType:
		return int64(2 * 8), nil // an element of a list that grows by doubling
	}

	content, _ := protowire.ConsumeBytes(value)

	switch field.Kind() { // the rest are numbers
	case protoreflect.MessageKind:
		weight, err := weighNested(field.Message(), content, levels-1)
		if field.IsMap() {
			weight += entryOverhead
		}

		return weight + 2*8, err
	case protoreflect.StringKind:
		return int64(len(content)) + textOverhead, nil
	case protoreflect.BytesKind:
		inflated, err := inflatedSize(field, content)

		return int64(len(content)) + textOverhead + inflated, err
	default:
		return int64(8 * len(content)), nil // packed numbers
	}
}

// WeighResource returns the memory that a stored resource takes, in bytes.
func WeighResource(sent *v1alpha1.Resource) (int64, error) {
	metadata := sent.GetMetadata()

	if count := len(metadata.GetLabels()) + len(metadata.GetAnnotations()) + len(metadata.GetFinalizers()); count > maxMetadataEntries {
		return 0, &omni.TooMuchDataError{Message: fmt.Sprintf("Omni sent a resource with %d labels, annotations and finalizers; the bound is %d, of the controller", count, maxMetadataEntries)}
	}

	total := int64(resourceOverhead + len(metadata.GetId()) + len(metadata.GetOwner()))

	for _, entries := range []map[string]string{metadata.GetLabels(), metadata.GetAnnotations()} {
		for key, value := range entries {
			total += int64(len(key) + len(value) + entryOverhead)
		}
	}

	for _, finalizer := range metadata.GetFinalizers() {
		total += int64(len(finalizer) + textOverhead)
	}

	spec := sent.GetSpec().GetProtoSpec()

	descriptor := specDescriptor(metadata.GetType())
	if descriptor == nil {
		return total + int64(len(spec)+len(sent.GetSpec().GetYamlSpec())), nil // kept as it came
	}

	weight, err := Weigh(descriptor, spec)

	return total + weight, err
}

//nolint:gochecknoglobals // caches of what never changes
var (
	structSizes     sync.Map // protoreflect.FullName to int64
	specDescriptors sync.Map // resource.Type to protoreflect.MessageDescriptor
)

// structSize returns the size of the Go type of a message, in bytes.
func structSize(of protoreflect.MessageDescriptor) int64 {
	if known, found := structSizes.Load(of.FullName()); found {
		return known.(int64) //nolint:forcetypeassert // stored below
	}

	size := int64(16 * of.Fields().Len()) // a map's entry, which has no type

	if found, err := protoregistry.GlobalTypes.FindMessageByName(of.FullName()); err == nil {
		size = int64(reflect.TypeOf(found.Zero().Interface()).Elem().Size()) //nolint:gosec // of a struct
	}

	structSizes.Store(of.FullName(), size)

	return size
}

// specDescriptor returns the descriptor of the spec of a resource type; nil for types that are not decoded.
func specDescriptor(resourceType resource.Type) protoreflect.MessageDescriptor {
	if known, found := specDescriptors.Load(resourceType); found {
		return known.(protoreflect.MessageDescriptor) //nolint:forcetypeassert // stored below
	}

	empty, err := cosiproto.CreateResource(resourceType)
	if err != nil {
		return nil
	}

	spec, ok := empty.Spec().(interface{ GetValue() proto.Message })
	if !ok {
		return nil
	}

	descriptor := spec.GetValue().ProtoReflect().Descriptor()
	specDescriptors.Store(resourceType, descriptor)

	return descriptor
}

const (
	// maxInflated is how much one compressed text of Omni may hold, in bytes. The client library allocates the size that
	// the text itself claims, without checking it.
	maxInflated = 8 << 20
	// maxBlock is how much one block of the format holds, in bytes.
	maxBlock = 128 << 10
)

// compressedField is the name of the fields that Omni compresses with zstd: the texts of patches and manifests.
const compressedField = "compressed_data"

// inflatable is a spec with a text that may be compressed.
type inflatable interface {
	GetCompressedData() []byte
	GetUncompressedData(options ...specs.CompressionOption) (specs.Buffer, error)
}

// Inflate returns the text of a spec. It always checks the size first, even if a caller did: the settings of the
// library's decoder are global to the process, and every new client resets them.
func Inflate(spec inflatable) (string, error) {
	if packed := spec.GetCompressedData(); len(packed) > 0 {
		if err := checkInflated(packed); err != nil {
			return "", err
		}
	}

	text, err := spec.GetUncompressedData()
	if err != nil {
		return "", err
	}

	defer text.Free()

	return string(text.Data()), nil
}

func checkInflated(packed []byte) error {
	size, err := zstdSize(packed)
	if err == nil && size > maxInflated {
		err = &omni.TooMuchDataError{Message: fmt.Sprintf("Omni sent a compressed text of more than %d MiB", maxInflated>>20)}
	}

	return err
}

// inflatedSize returns the size of a field's content after decompression; 0 for fields that are not compressed.
func inflatedSize(field protoreflect.FieldDescriptor, content []byte) (int64, error) {
	if field.Name() != compressedField || len(content) == 0 {
		return 0, nil
	}

	if err := checkInflated(content); err != nil {
		return 0, err
	}

	return zstdSize(content)
}

// zstdSize returns the largest size that a compressed text can have after decompression, in bytes: the size in its
// header, which the decoder enforces, or what its blocks can hold. Anything but exactly one frame is malformed: the
// decoder would go on with the next frame, whose size was not checked.
func zstdSize(text []byte) (int64, error) {
	malformed := fmt.Errorf("%w: a compressed text cannot be read", ErrMalformed)

	var header zstd.Header
	if err := header.Decode(text); err != nil || header.Skippable || header.HeaderSize > len(text) {
		return 0, malformed
	}

	rest, size := text[header.HeaderSize:], int64(0)

	for last := false; !last; {
		if len(rest) < 3 {
			return 0, malformed
		}

		block := int(rest[0]) | int(rest[1])<<8 | int(rest[2])<<16
		last = block&1 == 1

		length, holds := block>>3, int64(maxBlock)
		if kind := block >> 1 & 3; kind == 1 { // one repeated byte
			length, holds = 1, int64(length)
		}

		if len(rest) < 3+length {
			return 0, malformed
		}

		rest, size = rest[3+length:], size+holds
	}

	checksum := 0
	if header.HasCheckSum {
		checksum = 4
	}

	if len(rest) != checksum {
		return 0, malformed
	}

	// The decoder allocates the whole window, whatever the size of the text.
	if !header.SingleSegment && header.WindowSize > maxInflated {
		size = int64(maxInflated) + 1
	}

	if header.HasFCS {
		if header.FrameContentSize > maxInflated {
			return maxInflated + 1, nil
		}

		return int64(header.FrameContentSize), nil // bounded above
	}

	return size, nil
}
