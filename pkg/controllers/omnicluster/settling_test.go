package omnicluster

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/test/omnisim"
)

// A document that is pruned by mistake while nothing may be written is not told as something that settles. So the settle
// time begins when that ends, and leaves the time to put the document back.
func TestSettleTimeBeginsWhenNothingHoldsTheClusterBack(t *testing.T) {
	const lock = "omni.sidero.dev/cluster-locked"

	locked := func(f *fixture, is bool) {
		err := omnisim.AnnotateCluster(t.Context(), f.omni.State(), testCluster, lock, "")
		if !is {
			err = omnisim.RemoveAnnotation(t.Context(), f.omni.State(), testCluster, lock)
		}

		if err != nil {
			t.Fatal(err)
		}
	}
	observed := func(f *fixture, is bool) {
		f.edit(func(o *v1alpha1.OmniCluster) {
			o.Spec.ChangePolicy = map[bool]v1alpha1.ChangePolicy{true: v1alpha1.ChangePolicyObserve, false: v1alpha1.ChangePolicyApply}[is]
		})
	}
	suspended := func(f *fixture, is bool) { f.edit(func(o *v1alpha1.OmniCluster) { o.Spec.Suspend = is }) }

	for name, test := range map[string]struct {
		hold   func(f *fixture, is bool)
		status metav1.ConditionStatus
		reason string
	}{
		"locked":    {locked, metav1.ConditionFalse, "RemoteLocked"},
		"observed":  {observed, metav1.ConditionFalse, "Observing"},
		"suspended": {suspended, metav1.ConditionFalse, "Suspended"},
	} {
		t.Run(name, func(t *testing.T) {
			f := running(t)
			test.hold(f, true)
			f.delete(newWorkers("w", machineClass, 2))
			f.until("Synced", test.status, test.reason)

			for range 10 {
				f.run()
				f.advance(settleTime)
			}

			f.until("Synced", test.status, test.reason)
			test.hold(f, false)
			f.until("Synced", metav1.ConditionFalse, "WaitingToSettle")
			f.advance(settleTime - time.Second)
			f.until("Synced", metav1.ConditionFalse, "WaitingToSettle")
			f.wantTornDown()

			f.advance(time.Second)
			f.until("Ready", metav1.ConditionTrue, "Running")
			f.wantTornDown("MachineSets demo-w")
		})
	}
}
