package omnicluster

import "testing"

// TestAUsedApprovalIsStoredByALaterRun: the run that used it could not store its status.
func TestAUsedApprovalIsStoredByALaterRun(t *testing.T) {
	r, cluster := &reconciler{}, newCluster()

	for i, run := range []struct{ stored, decided, want string }{
		{"old", "old", "old"},
		{"old", "new", "new"}, // not stored
		{"old", "old", "new"},
		{"new", "new", "new"},
		{"new", "newest", "newest"},
		{"newest", "newest", "newest"},
		{"newest", "newest", "newest"},
	} {
		cluster.Status.UsedApproval = run.stored

		if got := r.usedApproval(cluster, run.decided); got != run.want {
			t.Errorf("run %d: %q", i, got)
		}
	}

	if kept := r.processStates.of(cluster).used; kept != nil {
		t.Errorf("kept: %q", *kept)
	}

	// Another object of the name has used nothing.
	r.usedApproval(cluster, "lost")
	cluster.UID = "another"
	cluster.Status.UsedApproval = ""

	if got := r.usedApproval(cluster, ""); got != "" {
		t.Errorf("of another object: %q", got)
	}
}
