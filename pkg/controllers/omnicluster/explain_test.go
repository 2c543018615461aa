package omnicluster

import (
	"fmt"
	"testing"

	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
)

// A conflict that lasts must not take the calls to Omni from other clusters.
func TestConflictsAreTriedAgainWithGrowingPauses(t *testing.T) {
	outcome, err := explainApply(t.Context(), &SecretTexts{}, nil, fmt.Errorf("%w: the cluster was made again since", omni.ErrPlanOutdated))
	if err != nil || outcome.Reason() != "Conflict" || !outcome.IsOvertaken() {
		t.Errorf("%+v, %v", outcome, err)
	}
}
