package omnicluster

import (
	"context"
	"strings"
	"testing"

	"github.com/cosi-project/runtime/pkg/resource"
	omnires "github.com/siderolabs/omni/client/pkg/omni/resources/omni"
	"github.com/siderolabs/omni/client/pkg/omni/resources/siderolink"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/test/omnitest"
)

// afterLiveRead calls a function once, after the controller has read its object or its worker sets from the API server
// itself, which it does before it writes to Omni.
func (f *fixture) afterLiveRead(ofWorkers bool, happens func()) {
	once := func() {
		if happens != nil {
			now := happens
			happens = nil
			now()
		}
	}

	f.reconciler.live = interceptor.NewClient(f.client, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
			err := c.Get(ctx, key, object, options...)
			if _, is := object.(*v1alpha1.OmniCluster); is && !ofWorkers {
				once()
			}

			return err
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			err := c.List(ctx, list, options...)
			if _, is := list.(*v1alpha1.OmniWorkersList); is && ofWorkers {
				once()
			}

			return err
		},
	})
}

// What asks for the destruction of a set may be gone when the writes before it are made.
func TestDestroysOnlyWhatIsStillWanted(t *testing.T) {
	for name, happens := range map[string]func(*fixture){
		"its document is back":    func(f *fixture) { f.create(newWorkers("w", machineClass, 2)) },
		"the object is suspended": func(f *fixture) { f.edit(func(o *v1alpha1.OmniCluster) { o.Spec.Suspend = true }) },
	} {
		t.Run(name, func(t *testing.T) {
			f := running(t)
			f.delete(newWorkers("w", machineClass, 2))
			f.until("Synced", metav1.ConditionFalse, "WaitingToSettle")

			happened := false

			f.afterLiveRead(true, func() {
				happens(f)

				happened = true
			})
			f.create(newWorkers("more", machineClass, 1))
			f.advance(settleTime)
			f.eventually("the run that would destroy", func() string {
				if f.run(); !happened {
					return strings.Join(shown(f.get()), "\n")
				}

				return ""
			})

			for _, set := range []string{"demo-w", "demo-more"} {
				found, err := f.omni.State().Get(t.Context(), omnires.NewMachineSet(set).Metadata())
				if err != nil || found.Metadata().Phase() != resource.PhaseRunning {
					t.Errorf("%s: %v, %v", set, found, err)
				}
			}
		})
	}
}

// The links of dead machines go first: a cluster that is kept by then stays.
func TestDestroysOnlyAClusterThatIsStillUnwanted(t *testing.T) {
	f := running(t)
	dead, st := f.machines[0], f.omni.State()
	f.edit(func(o *v1alpha1.OmniCluster) { o.Spec.DeletePolicy.DestroyMachines = true })
	f.untilDisconnected(dead)
	f.omni.Pause()

	// Without a finalizer, Omni destroys the link at once.
	link := siderolink.NewLink(dead, nil)
	omnitest.MustChange(t, st, link, func(found *siderolink.Link) {
		for _, finalizer := range *found.Metadata().Finalizers() {
			found.Metadata().Finalizers().Remove(finalizer)
		}
	})

	f.delete(newCluster())
	f.afterLiveRead(false, func() {
		f.edit(func(o *v1alpha1.OmniCluster) { o.Spec.DeletePolicy = v1alpha1.OmniClusterDeletePolicy{Orphan: true} })
	})
	f.untilGone()

	if cluster, err := st.Get(t.Context(), clusterPointer()); err != nil || cluster.Metadata().Phase() != resource.PhaseRunning {
		t.Errorf("the cluster: %v, %v", cluster, err)
	}

	if _, err := st.Get(t.Context(), link.Metadata()); err == nil || !f.hasEvent("Released", "stays in Omni, without this object's mark") {
		t.Errorf("the link: %v, events %q", err, f.events.All())
	}
}
