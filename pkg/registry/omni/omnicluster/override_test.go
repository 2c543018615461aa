package omnicluster

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

func TestOverrideIsRecorded(t *testing.T) {
	now := time.Date(2026, 11, 23, 12, 0, 0, 123, time.UTC)
	hash := strings.Repeat("a", 64)

	old := valid()
	old.Status.Rollout = &v1alpha1.OmniClusterRollout{Governed: true, Hash: hash, State: v1alpha1.RolloutHeld}

	updated := old.DeepCopy()
	updated.Annotations = map[string]string{v1alpha1.AnnotationRolloutOverride: hash + " the fix for the outage"}
	recordOverride(updated, old, "alice", now)

	want := &v1alpha1.RolloutOverride{Hash: hash, Reason: "the fix for the outage", User: "alice"}
	want.Time.Time = now.Truncate(time.Second)

	if diff := cmp.Diff(want, updated.Status.Rollout.Override); diff != "" {
		t.Error(diff)
	}

	if old.Status.Rollout.Override != nil || !updated.Status.Rollout.Governed || updated.Status.Rollout.Hash != hash {
		t.Error("the rest of the status changed, or the old object did")
	}

	// A later write by another user, which leaves the annotation unchanged, records nothing new.
	later := updated.DeepCopy()
	later.Labels = map[string]string{"a": "b"}
	recordOverride(later, updated, "bob", now.Add(time.Hour))

	if diff := cmp.Diff(updated.Status, later.Status); diff != "" {
		t.Error(diff)
	}

	// A write of the status neither drops nor forges the record.
	for name, status := range map[string]*v1alpha1.OmniClusterRollout{
		"left out": {Governed: true}, "nothing": nil,
		"forged": {Governed: true, Override: &v1alpha1.RolloutOverride{Hash: hash, User: "mallory"}},
	} {
		written := later.DeepCopy()
		written.Status.Rollout = status
		keepOverride(written, later)

		if diff := cmp.Diff(want, written.Status.Rollout.Override); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}

	// It may say that this override was used, once, and of no other.
	use := func(stored *v1alpha1.OmniCluster, change func(*v1alpha1.RolloutOverride)) *metav1.Time {
		written := stored.DeepCopy()
		change(written.Status.Rollout.Override)
		keepOverride(written, stored)

		return written.Status.Rollout.Override.UsedTime
	}
	at := metav1.Time{Time: now.Add(time.Hour).Truncate(time.Second)}

	if used := use(later, func(o *v1alpha1.RolloutOverride) { o.UsedTime = &at }); used == nil || !used.Equal(&at) {
		t.Errorf("used %s, want %s", used, at)
	}

	if used := use(later, func(o *v1alpha1.RolloutOverride) { o.UsedTime, o.Time = &at, at }); used != nil {
		t.Errorf("another override was used: %s", used)
	}

	later.Status.Rollout.Override.UsedTime = &at
	if used := use(later, func(o *v1alpha1.RolloutOverride) { o.UsedTime = nil }); used == nil {
		t.Error("a use was taken back")
	}

	// The same user gives another reason: that is a new override.
	again := later.DeepCopy()
	again.Annotations[v1alpha1.AnnotationRolloutOverride] = hash + " the next outage"
	recordOverride(again, later, "alice", now.Add(2*time.Hour))

	if again.Status.Rollout.Override.UsedTime != nil {
		t.Error("the second override is used up from the start")
	}

	without := valid()
	written := without.DeepCopy()
	written.Status.Rollout = &v1alpha1.OmniClusterRollout{Override: &v1alpha1.RolloutOverride{User: "mallory"}}
	keepOverride(written, without)

	if written.Status.Rollout.Override != nil {
		t.Error("a status write made an override")
	}
}
