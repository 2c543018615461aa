package kit

import (
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

func TestErrorsAreBounded(t *testing.T) {
	strategy := clusterStrategy()

	for _, test := range []struct {
		found, shown int
		last         string
	}{
		{0, 0, ""},
		{100, 100, "spec.name: Required value"},
		{101, 101, "spec: Invalid value: 1 more errors are not shown: correct these first"},
		{5000, 101, "spec: Invalid value: 4900 more errors are not shown: correct these first"},
	} {
		errs := make(field.ErrorList, test.found)
		for i := range errs {
			errs[i] = field.Required(field.NewPath("spec", "name"), "")
		}

		strategy.descriptor.Validation = Validation[*v1alpha1.OmniCluster]{
			Create:       func(*v1alpha1.OmniCluster) field.ErrorList { return errs },
			Update:       func(_, _ *v1alpha1.OmniCluster) field.ErrorList { return errs },
			StatusUpdate: func(_, _ *v1alpha1.OmniCluster) field.ErrorList { return errs },
		}

		object := &v1alpha1.OmniCluster{}

		for verb, got := range map[string]field.ErrorList{
			"create": strategy.Validate(t.Context(), object),
			"update": strategy.ValidateUpdate(t.Context(), object, object),
			"status": statusStrategy[*v1alpha1.OmniCluster]{strategy}.ValidateUpdate(t.Context(), object, object),
		} {
			if len(got) != test.shown || len(got) > 0 && got[len(got)-1].Error() != test.last {
				t.Errorf("%s: %d of %d errors, want %d: %v", verb, len(got), test.found, test.shown, got[len(got)-1])
			}
		}
	}
}
