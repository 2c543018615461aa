package v1alpha1

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/google/uuid"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// UnlimitedSize is the machine class size that takes every matching machine.
const UnlimitedSize = "unlimited"

// unlimitedSizes are the texts that Omni's templates read as UnlimitedSize.
// Source: Size.UnmarshalYAML in github.com/siderolabs/omni/client/pkg/template/internal/models.
//
//nolint:gochecknoglobals // a constant
var unlimitedSizes = []string{UnlimitedSize, "Unlimited", "infinity", "∞"}

// CanonicalUUID returns a UUID as Omni writes it, in lower case with hyphens. ok reports whether the text is a UUID in one
// of the spellings that Omni's templates take: also in upper case, without hyphens, in braces, or behind urn:uuid:.
func CanonicalUUID(text string) (canonical string, ok bool) {
	// Parse alone takes any two characters for the braces.
	if uuid.Validate(text) != nil {
		return "", false
	}

	parsed, err := uuid.Parse(text)
	if err != nil {
		return "", false
	}

	return parsed.String(), true
}

// MachineIDs are the UUIDs of machines as Omni writes them. A text that is no UUID stays as it is.
func (m *MachineSetMachines) MachineIDs() []string {
	ids := slices.Clone(m.Machines)

	for i, id := range ids {
		if canonical, ok := CanonicalUUID(id); ok {
			ids[i] = canonical
		}
	}

	return ids
}

// Count reads the size: a number of machines, or unlimited. It returns an error if the size is missing, negative or
// neither a number nor one of Omni's words for unlimited.
func (c *MachineClass) Count() (count int32, unlimited bool, err error) {
	switch size := c.Size; {
	case size == nil:
		return 0, false, fmt.Errorf("size is missing")
	case size.Type == intstr.Int && size.IntVal >= 0:
		return size.IntVal, false, nil
	case size.Type == intstr.String && slices.Contains(unlimitedSizes, size.StrVal):
		return 0, true, nil
	case size.Type == intstr.String:
		// ParseUint, because ParseInt takes a sign.
		if number, err := strconv.ParseUint(size.StrVal, 10, 31); err == nil {
			return int32(number), false, nil
		}
	}

	return 0, false, fmt.Errorf("size %q is neither a number of machines up to %d nor %s", c.Size.String(), math.MaxInt32, UnlimitedSize)
}
