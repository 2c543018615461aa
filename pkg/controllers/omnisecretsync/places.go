package omnisecretsync

import (
	"slices"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// place is where a Secret is.
type place struct{ namespace, name string }

func (p place) String() string { return p.namespace + "/" + p.name }

// wantedPlace is where the spec wants the Secret, writtenPlace where the status
// says that one was written; the zero place if none was.
func wantedPlace(sync *v1alpha1.OmniSecretSync) place {
	return place{namespace: sync.Spec.TargetSecretRef.Namespace, name: sync.Spec.TargetSecretRef.Name}
}

func writtenPlace(sync *v1alpha1.OmniSecretSync) place {
	if sync.Status.Target == nil {
		return place{}
	}

	return place{namespace: sync.Status.Target.Namespace, name: sync.Status.Target.Name}
}

// confirmed tells whether a Secret was written there for certain.
func confirmed(sync *v1alpha1.OmniSecretSync, where place) bool {
	return where == writtenPlace(sync) && sync.Status.Target.Hash != ""
}

// mostPending is how many places are remembered besides the target.
const mostPending = 8

// pendingPlaces are where a Secret may be besides the written place, oldest first.
func pendingPlaces(sync *v1alpha1.OmniSecretSync) []place {
	var places []place
	for _, pending := range sync.Status.PendingTargets {
		places = append(places, place{namespace: pending.Namespace, name: pending.Name})
	}

	return places
}

// knownPlaces are all places at which this object may have a Secret.
func knownPlaces(sync *v1alpha1.OmniSecretSync) []place {
	places := pendingPlaces(sync)
	if written := writtenPlace(sync); written != (place{}) && !slices.Contains(places, written) {
		places = append(places, written)
	}

	return places
}
