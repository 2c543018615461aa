package contract

import (
	"testing"

	"github.com/cosi-project/runtime/pkg/resource"
	"github.com/cosi-project/runtime/pkg/state"
	"github.com/google/uuid"

	"github.com/siderolabs/omni/client/pkg/omni/resources/omni"
)

// independent tests that a set that is refused, because its machine class does not exist, leaves nothing behind and
// does not prevent other creates. It is accepted as soon as the class exists.
func (s *suite) independent(t *testing.T) {
	st, name, class := s.as(t, "Operator"), unique("independent"), unique("class")
	cluster := newCluster(name)
	s.create(t, cluster)

	refused := func() *omni.MachineSet { return withClass(newSet(name, "bad", omni.LabelWorkerRole), class) }
	controlPlanes, workers := newSet(name, "control-planes", omni.LabelControlPlaneRole), newSet(name, "good", omni.LabelWorkerRole)

	for _, test := range []struct {
		name  string
		res   resource.Resource
		words []string // empty: accepted
	}{
		{"refused set", refused(), []string{"machine class", "doesn't exist"}},
		{"control planes", controlPlanes, nil},
		{"machine of the control planes", labelled(newNode(uuid.NewString(), controlPlanes), name), nil},
		{"other set", workers, nil},
		{"machine of the other set", labelled(newNode(uuid.NewString(), workers), name), nil},
		{"machine of the refused set", labelled(newNode(uuid.NewString(), refused()), name), []string{"machine set does not exist"}},
		{"refused set again", refused(), []string{"machine class", "doesn't exist"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			err := st.Create(deadline(t), test.res)

			switch {
			case len(test.words) > 0:
				wantError(t, err, "InvalidArgument", test.words...)

				if _, getErr := st.Get(deadline(t), test.res.Metadata()); !state.IsNotFoundError(getErr) {
					t.Errorf("what was refused exists: %v", getErr)
				}
			case err != nil:
				t.Error(err)
			}
		})
	}

	made := omni.NewMachineClass(class)
	made.TypedSpec().Value.MatchLabels = []string{"contract = none"}
	s.create(t, made)
	s.create(t, refused())

	s.remove(t, cluster.Metadata())
	s.remove(t, made.Metadata())
}
