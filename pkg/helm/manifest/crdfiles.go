package manifest

import (
	"bytes"
	"fmt"

	"omni.texashpc.com/omni-cluster-operator/pkg/helm/render"
)

// WithoutCRDs is a file of CRDs without those that exist; nil if it has CRDs and all of them do. A file that cannot be read
// stays as it is, for Helm to say what is wrong. The error is that of exists, or of an object that cannot be written.
func WithoutCRDs(file *render.CRD, exists func(name string) (bool, error)) (*render.CRD, error) {
	objects, err := Objects(file.Data)
	if err != nil {
		return file, nil // Helm itself says what is wrong with it
	}

	var (
		kept    [][]byte
		missing int
	)

	for _, object := range objects {
		if object.GetKind() == "CustomResourceDefinition" {
			there, err := exists(object.GetName())
			if err != nil {
				return nil, err
			}

			if there {
				continue
			}

			missing++
		}

		text, err := object.MarshalJSON()
		if err != nil {
			return nil, fmt.Errorf("write %s of %s: %w", object.GetName(), file.Name, err)
		}

		kept = append(kept, text)
	}

	switch {
	case len(kept) == len(objects):
		return file, nil
	case missing == 0:
		return nil, nil //nolint:nilnil // nothing of the file is needed
	}

	copied := *file
	copied.Data = bytes.Join(kept, []byte(Separator))

	return &copied, nil
}
