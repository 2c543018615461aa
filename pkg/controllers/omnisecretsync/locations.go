package omnisecretsync

import (
	"slices"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// location is the place of a Secret.
type location struct{ namespace, name string }

func (l location) String() string { return l.namespace + "/" + l.name }

// wantedLocation returns where the spec wants the Secret. writtenLocation returns where the status records that one was
// written; the zero location if none was.
func wantedLocation(sync *v1alpha1.OmniSecretSync) location {
	return location{namespace: sync.Spec.TargetSecretRef.Namespace, name: sync.Spec.TargetSecretRef.Name}
}

func writtenLocation(sync *v1alpha1.OmniSecretSync) location {
	if sync.Status.Target == nil {
		return location{}
	}

	return locationOf(*sync.Status.Target)
}

func locationOf(secret v1alpha1.SyncedSecret) location {
	return location{namespace: secret.Namespace, name: secret.Name}
}

// confirmed reports whether a write of a Secret there is known to have succeeded.
func confirmed(sync *v1alpha1.OmniSecretSync, where location) bool {
	return slices.ContainsFunc(knownSecrets(sync), func(known v1alpha1.SyncedSecret) bool {
		return locationOf(known) == where && known.Hash != ""
	})
}

// mostPending is how many locations the status records besides the target.
const mostPending = 8

// pendingLocations returns where a Secret may be besides the written location, oldest first.
func pendingLocations(sync *v1alpha1.OmniSecretSync) []location {
	var locations []location
	for _, pending := range sync.Status.PendingTargets {
		locations = append(locations, locationOf(pending))
	}

	return locations
}

// knownSecrets returns what the status records of all Secrets that this object may have, the target last.
func knownSecrets(sync *v1alpha1.OmniSecretSync) []v1alpha1.SyncedSecret {
	known := slices.Clone(sync.Status.PendingTargets)
	if written := writtenLocation(sync); written != (location{}) && !slices.Contains(pendingLocations(sync), written) {
		known = append(known, *sync.Status.Target)
	}

	return known
}

// knownLocations returns all locations at which this object may have a Secret.
func knownLocations(sync *v1alpha1.OmniSecretSync) []location {
	var locations []location
	for _, known := range knownSecrets(sync) {
		locations = append(locations, locationOf(known))
	}

	return locations
}
