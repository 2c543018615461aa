package validation

import (
	"context"
	"fmt"
	"math"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"omni.texashpc.com/omni-cluster-operator/pkg/foreign"
)

// maxSpec is the largest spec, in bytes of JSON. Patches can make an object larger than one request can be. The rest
// of etcd's 1.5 MiB is room for metadata and status.
const maxSpec = 1 << 20

// MaxSpecDepth is how deep a spec may be nested. The kinds' rules allow less for free-form blocks, but do not run
// while an object is being deleted; this limit always holds. JSON that is nested 10,000 levels deep can be written.
// Stored inside an object it is even deeper and cannot be read again, and then nobody can list the kind.
const MaxSpecDepth = 256

// maxSpecValues is how many maps, lists, keys and values a spec may have. Without it, many patches, each within the
// limit of a request, would make a spec that every later write has to hold in memory, at a kilobyte and more for each
// value.
const maxSpecValues = 50_000

// ValidateSpecSize returns an error if a spec, encoded as JSON, is too large to be stored, nested too deep, or has too
// many values.
func ValidateSpecSize(encoded []byte) field.ErrorList {
	if foreign.DepthOfJSON(encoded) > MaxSpecDepth {
		return field.ErrorList{field.Invalid(field.NewPath("spec"), field.OmitValueType{},
			fmt.Sprintf("is nested deeper than %d levels: make it flatter", MaxSpecDepth))}
	}

	limits := foreign.Limits{Bytes: math.MaxInt, Depth: MaxSpecDepth, Nodes: maxSpecValues, Expanded: math.MaxInt}
	if err := foreign.Check(context.Background(), encoded, limits); err != nil { // JSON, which waits for nothing
		return field.ErrorList{field.Invalid(field.NewPath("spec"), field.OmitValueType{},
			fmt.Sprintf("has more than %d values: read parts of it with valueFrom", maxSpecValues))}
	}

	if len(encoded) <= maxSpec {
		return nil
	}

	return field.ErrorList{{
		Type:     field.ErrorTypeTooLong,
		Field:    "spec",
		BadValue: "",
		Detail: fmt.Sprintf("has %d KiB, at most %d KiB fit: read parts of it with valueFrom",
			(len(encoded)+1023)>>10, maxSpec>>10),
	}}
}
