package omnihelmrelease

import (
	"context"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/clusteraccess"
	"omni.texashpc.com/omni-cluster-operator/pkg/foreign/redact"
	"omni.texashpc.com/omni-cluster-operator/pkg/helm"
	"omni.texashpc.com/omni-cluster-operator/pkg/words"
)

// shownRevisions is how many revisions the status lists.
const shownRevisions = 5

// report writes the results of a run and of the last action into the status.
func (r *reconciler) report(ctx context.Context, s *scope) {
	status := &s.release.Status

	if s.opened != nil && status.ReleaseName != "" {
		// What it made in another cluster before stays there, and nothing else would record that.
		if moved := clusteraccess.Moved(status.ClusterID, s.opened.ClusterID); moved != "" {
			r.stays(s, moved)
		}

		status.ClusterID = s.opened.ClusterID
	}

	if !s.last.ended.IsZero() {
		status.LastAction = string(s.last.action)
		status.LastActionTime = new(words.StoredTime(s.last.ended))

		if s.release.DeletionTimestamp.IsZero() {
			status.LastAttemptedDigest, status.Failures = s.last.attempt, int32(s.last.failures()) //nolint:gosec // a small count
		}
	}

	// A release that is about to be taken over does not belong to this object yet.
	if s.observed != nil && (s.latest() == nil || marked(*s.observed).Owner == string(s.release.UID)) {
		r.reportRevisions(ctx, s)
	}

	if s.done {
		status.ReleaseName, status.Namespace = s.release.EffectiveReleaseName(), s.release.Spec.Namespace
		status.ChartDigest, status.ValuesDigest, status.Failures = s.resolved.ArchiveDigest, s.values.Digest(), 0
		// The release is as the object says, whichever state of it made the revision.
		status.LastAttemptedGeneration = max(s.release.Generation, s.latest().Generation)
	}
}

// reportRevisions writes the revisions of Helm's records. It reads the record of the revision in effect only when that
// is another one.
func (r *reconciler) reportRevisions(ctx context.Context, s *scope) {
	status := &s.release.Status
	changed := status.Chart == ""
	latest := s.latest()

	number, helmStatus := int32(0), ""
	if latest != nil {
		number, helmStatus = int32(latest.Number), string(latest.Status) //nolint:gosec // Helm counts from 1
	}

	changed = changed || status.Revision != number || status.ReleaseStatus != helmStatus
	status.Revision, status.ReleaseStatus = number, helmStatus
	status.History = history(s.observed.Revisions)

	if effective := inEffect(s.observed.Revisions); changed && effective != nil {
		status.Chart, status.ChartVersion, status.AppVersion = "", effective.ChartVersion, ""

		// If it stays empty, the next run reads it again.
		if found, err := details(ctx, s, effective.Number); err == nil {
			status.Chart, status.ChartVersion, status.AppVersion = redact.Line(found.Chart), redact.Line(found.ChartVersion), redact.Line(found.AppVersion)
		}
	}
}

func inEffect(revisions []helm.Revision) *helm.Revision {
	for i := range revisions {
		if revisions[i].Status == helm.StatusDeployed {
			return &revisions[i]
		}
	}

	return nil
}

func history(revisions []helm.Revision) []v1alpha1.HelmRevision {
	var listed []v1alpha1.HelmRevision

	for i := range revisions[:min(len(revisions), shownRevisions)] {
		revision := &revisions[i]
		listed = append(listed, v1alpha1.HelmRevision{
			Revision: int32(revision.Number), ChartVersion: revision.ChartVersion, Status: string(revision.Status), //nolint:gosec // Helm counts from 1
			Time: new(words.StoredTime(revision.Modified)),
		})
	}

	return listed
}
