package hubs

import (
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/event"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

func TestAdviceNamesWhatToSetAndWhere(t *testing.T) {
	said := Of("own", nil).Differ("other") + Advice("other", "Secret", `OmniConnection "omni"`)

	for _, words := range []string{"another hub, other", "this hub is own", v1alpha1.AnnotationPreviousHub + ": other", `OmniConnection "omni"`, "the Secret stays"} {
		if !strings.Contains(said, words) {
			t.Errorf("%q does not say %q", said, words)
		}
	}
}

func TestPreviousChanged(t *testing.T) {
	changed := PreviousChanged()

	for name, test := range map[string]struct{ got, want bool }{
		"made without": {changed.Create(event.CreateEvent{Object: connection("")}), false},
		"made with":    {changed.Create(event.CreateEvent{Object: connection("a")}), true},
		"set":          {changed.Update(event.UpdateEvent{ObjectOld: connection(""), ObjectNew: connection("a")}), true},
		"taken off":    {changed.Update(event.UpdateEvent{ObjectOld: connection("a"), ObjectNew: connection("")}), true},
		"as it was":    {changed.Update(event.UpdateEvent{ObjectOld: connection("a"), ObjectNew: connection("a")}), false},
		"deleted":      {changed.Delete(event.DeleteEvent{Object: connection("a")}), false},
	} {
		if test.got != test.want {
			t.Errorf("%s: %v", name, test.got)
		}
	}
}
