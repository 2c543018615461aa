package omnicluster

import (
	"time"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// turnID tells the turns of a cluster apart.
type turnID struct {
	hash  string
	since time.Time // when the turn was admitted
}

// turnOf returns the turn that a status is about; false if there is none, or the status does not say since when.
func turnOf(status *v1alpha1.OmniClusterRollout) (turnID, bool) {
	if status == nil || status.AdmittedSince == nil {
		return turnID{}, false
	}

	return turnID{hash: status.Hash, since: status.AdmittedSince.Time}, true
}

// isOf reports whether it is the turn of a status.
func (t turnID) isOf(status *v1alpha1.OmniClusterRollout) bool {
	is, known := turnOf(status)

	return known && t.hash == is.hash && t.since.Equal(is.since)
}
