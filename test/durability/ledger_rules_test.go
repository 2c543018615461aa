package durability

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// A judge who lets everything pass would make the whole test worthless.
func TestLedger(t *testing.T) {
	object := func(mark, version string, uid types.UID) *v1alpha1.OmniWorkers {
		o := newWorkers("w", 1)
		o.Annotations, o.ResourceVersion, o.UID = map[string]string{markKey: mark}, version, uid

		return o
	}
	changed := object("a", "5", "u")
	changed.Spec.ClusterRef.Name = "other"

	for _, tc := range []struct {
		name         string
		acknowledged *v1alpha1.OmniWorkers
		doubt        *attempt
		found        *v1alpha1.OmniWorkers
		listed       string
		want         string
	}{
		{name: "the same", acknowledged: object("a", "5", "u"), found: object("a", "5", "u")},
		{name: "lost", acknowledged: object("a", "5", "u"), want: "an acknowledged object is lost"},
		{name: "back", found: object("a", "5", "u"), want: "a deleted object is back"},
		{name: "other content", acknowledged: object("a", "5", "u"), found: changed, want: "its content differs"},
		{name: "older content", acknowledged: object("b", "6", "u"), found: object("a", "5", "u"), want: "its content differs"},
		{name: "versions went back", listed: "4", want: "resourceVersions went back: the list has 4, 5 was acknowledged"},
		{name: "create took place", doubt: &attempt{"create", "a"}, found: object("a", "6", "u")},
		{name: "create did not", doubt: &attempt{"create", "a"}},
		{name: "update took place", acknowledged: object("a", "5", "u"), doubt: &attempt{"update", "b"}, found: object("b", "6", "u")},
		{name: "update did not", acknowledged: object("a", "5", "u"), doubt: &attempt{"update", "b"}, found: object("a", "5", "u")},
		{name: "update made another", acknowledged: object("a", "5", "u"), doubt: &attempt{"update", "b"}, found: object("b", "6", "v"), want: "its content differs"},
		{name: "update lost it", acknowledged: object("a", "5", "u"), doubt: &attempt{"update", "b"}, want: "an acknowledged object is lost"},
		{name: "delete took place", acknowledged: object("a", "5", "u"), doubt: &attempt{verb: "delete"}},
		{name: "delete did not", acknowledged: object("a", "5", "u"), doubt: &attempt{verb: "delete"}, found: object("a", "5", "u")},
	} {
		t.Run(tc.name, func(t *testing.T) {
			l := newLedger()
			l.newest = 5
			l.entries["w"] = &entry{acknowledged: tc.acknowledged, doubt: tc.doubt}

			list := &v1alpha1.OmniWorkersList{ListMeta: metav1.ListMeta{ResourceVersion: "6"}}
			if tc.listed != "" {
				list.ResourceVersion = tc.listed
			}

			if tc.found != nil {
				list.Items = append(list.Items, *tc.found)
			}

			var text string
			for _, err := range l.check(list) {
				text += err.Error() + "\n"
			}

			if (tc.want == "") != (text == "") || !strings.Contains(text, tc.want) {
				t.Errorf("got %q, want %q", text, tc.want)
			}
		})
	}
}

func TestLedgerSeesStrangersAndOldAnswers(t *testing.T) {
	l := newLedger()
	list := &v1alpha1.OmniWorkersList{ListMeta: metav1.ListMeta{ResourceVersion: "6"}, Items: []v1alpha1.OmniWorkers{*newWorkers("stranger", 1)}}

	if errs := l.check(list); len(errs) != 1 || errs[0].Error() != "stranger was never made" {
		t.Errorf("got %v", errs)
	}

	object := newWorkers("w", 1)
	object.ResourceVersion = "7"

	for _, want := range []string{"", "update of w has resourceVersion 7, after 7"} {
		l.sending("w", attempt{verb: "update", mark: "m"})

		if err := l.answered("w", object.DeepCopy()); (err == nil) != (want == "") || err != nil && err.Error() != want {
			t.Errorf("got %v, want %q", err, want)
		}
	}

	if got, want := l.tally.String(), "0 kills, 2 writes acknowledged: update 2; 0 without an answer (0 took place, 0 did not), 1 objects at the end"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
