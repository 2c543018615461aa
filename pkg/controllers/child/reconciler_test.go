package child

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/loop"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/metrics"
	"omni.texashpc.com/omni-cluster-operator/test/looptest"
)

// fixture is the three controllers over a fake API.
type fixture struct {
	t      *testing.T
	client client.WithWatch
	writes int
}

func newFixture(t *testing.T, objects ...client.Object) *fixture {
	t.Helper()

	f := &fixture{t: t}
	f.client = looptest.NewAPI(objects...).
		WithStatusSubresource(&v1alpha1.OmniCluster{}, &v1alpha1.OmniControlPlane{}, &v1alpha1.OmniWorkers{}, &v1alpha1.OmniMachine{}).
		WithInterceptorFuncs(interceptor.Funcs{
			Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
				t.Error("a child has no finalizer, and nothing of it is patched but the status")

				return nil
			},
			SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
				f.writes++

				return c.SubResource(sub).Patch(ctx, o, p, opts...)
			},
		}).Build()

	return f
}

// run reconciles an object twice: the second time must not write.
func run[O loop.Object](f *fixture, document document[O], name string) O {
	f.t.Helper()

	r := &reconciler[O]{client: f.client, document: document, objects: metrics.NewObjects(), now: time.Now}
	reconciler := loop.New(r.kind(), loop.Settings{Client: f.client, Events: events.NewFakeRecorder(100)})
	request := reconcile.Request{NamespacedName: client.ObjectKey{Namespace: "team", Name: name}}

	for i := range 2 {
		before := f.writes

		if _, err := reconciler.Reconcile(f.t.Context(), request); err != nil {
			f.t.Fatal(err)
		}

		if i == 1 && f.writes != before {
			f.t.Error("the second run wrote")
		}
	}

	object := document.new()
	if err := f.client.Get(f.t.Context(), request.NamespacedName, object); err != nil {
		f.t.Fatal(err)
	}

	return object
}

func conditions(object loop.Object) map[string]string {
	shown := map[string]string{}
	for _, c := range object.GetReconcileStatus().Conditions {
		shown[c.Type] = string(c.Status) + " " + c.Reason
	}

	return shown
}

// syncedCluster has applied everything of the objects below.
func syncedCluster() *v1alpha1.OmniCluster {
	return &v1alpha1.OmniCluster{
		ObjectMeta: metadata("demo"),
		Spec:       v1alpha1.OmniClusterSpec{ClusterName: "real"},
		Status: v1alpha1.OmniClusterStatus{
			ControlPlaneRef: &v1alpha1.AppliedReference{Name: "cp", UID: "uid-cp", Generation: 2},
			WorkersRefs:     []v1alpha1.AppliedReference{{Name: "w", UID: "uid-w", Generation: 2}},
			MachineRefs:     []v1alpha1.AppliedReference{{Name: "m", UID: "uid-m", Generation: 2}},
			Omni: &v1alpha1.OmniClusterRemoteStatus{
				MachineSets: []v1alpha1.MachineSetStatus{
					{Name: "control-planes", Phase: "Running", Ready: true, Machines: v1alpha1.MachineCounts{Total: 1, Healthy: 1, Requested: 1}},
					{Name: "pool", Phase: "ScalingUp", Machines: v1alpha1.MachineCounts{Total: 3, Healthy: 2, Requested: 3}},
				},
				MachineStates: []v1alpha1.MachineState{{ID: "id-1", Stage: "Running", Connected: true, Ready: true}},
			},
		},
	}
}

func TestControlPlane(t *testing.T) {
	cp := newControlPlane("cp", "id-1")
	f := newFixture(t, syncedCluster(), &cp)
	got := run(f, controlPlane(), "cp")

	if diff := cmp.Diff(map[string]string{
		"Accepted": "True AcceptedByCluster", "Synced": "True Applied", "MachinesReady": "True MachinesReady", "Ready": "True MachinesReady",
	}, conditions(got)); diff != "" {
		t.Error(diff)
	}

	got.Status.ReconcileStatus = v1alpha1.ReconcileStatus{}
	want := v1alpha1.OmniControlPlaneStatus{MachineSetStatusFields: v1alpha1.MachineSetStatusFields{
		ClusterRef: &v1alpha1.LocalObjectReference{Name: "demo"}, WorkerSetName: "control-planes", Replicas: 1, ReadyReplicas: 1,
		Selector: "omni.sidero.dev/cluster=real,omni.sidero.dev/machine-set=real-control-planes",
	}}

	if diff := cmp.Diff(want, got.Status); diff != "" {
		t.Error(diff)
	}
}

func TestWorkers(t *testing.T) {
	w := newWorkers("w", "pool")
	f := newFixture(t, syncedCluster(), &w)
	got := run(f, workers(), "w")

	if diff := cmp.Diff(map[string]string{
		"Accepted": "True AcceptedByCluster", "Synced": "True Applied", "MachinesReady": "False MachinesNotReady",
		"Ready": "False MachinesNotReady", "Reconciling": "True MachinesNotReady",
	}, conditions(got)); diff != "" {
		t.Error(diff)
	}

	if got.Status.Replicas != 3 || got.Status.ReadyReplicas != 2 || got.Status.WorkerSetName != "pool" {
		t.Errorf("%+v", got.Status)
	}
}

func TestMachine(t *testing.T) {
	cp, m := newControlPlane("cp", "id-1"), newMachine("m", "id-1")
	f := newFixture(t, syncedCluster(), &cp, &m)
	got := run(f, machine(), "m")

	if diff := cmp.Diff(map[string]string{
		"Accepted": "True AcceptedByCluster", "Synced": "True Applied", "Ready": "True MachinesReady",
	}, conditions(got)); diff != "" {
		t.Error(diff)
	}

	if got.Status.MachineID != "id-1" || got.Status.Stage != "Running" || got.Status.Connected == nil || !*got.Status.Connected {
		t.Errorf("%+v", got.Status)
	}
}

func TestMachineThatIsNotListed(t *testing.T) {
	m := newMachine("m", "id-1")
	got := run(newFixture(t, syncedCluster(), &m), machine(), "m")

	if diff := cmp.Diff(map[string]string{
		"Accepted": "False NotListed", "Synced": "Unknown Blocked", "Ready": "False NotListed", "Reconciling": "True NotListed",
	}, conditions(got)); diff != "" {
		t.Error(diff)
	}

	if got.Status.ClusterRef != nil || got.Status.Connected != nil || got.Status.Stage != "" {
		t.Errorf("%+v", got.Status)
	}
}

func TestNoCluster(t *testing.T) {
	w := newWorkers("w", "")
	w.Status.Replicas, w.Status.ReadyReplicas, w.Status.Selector = 5, 5, "left over"
	got := run(newFixture(t, &w), workers(), "w")

	if diff := cmp.Diff(map[string]string{
		"Accepted": "False ClusterNotFound", "Synced": "Unknown Blocked", "MachinesReady": "Unknown Blocked",
		"Ready": "False ClusterNotFound", "Reconciling": "True ClusterNotFound",
	}, conditions(got)); diff != "" {
		t.Error(diff)
	}

	if got.Status.Replicas != 0 || got.Status.ReadyReplicas != 0 || got.Status.Selector != "" {
		t.Errorf("%+v", got.Status)
	}
}

func TestClusterThatIsBeingDeleted(t *testing.T) {
	cluster := syncedCluster()
	cluster.ObjectMeta = gone(cluster.ObjectMeta)
	w := newWorkers("w", "pool")

	if got := conditions(run(newFixture(t, cluster, &w), workers(), "w"))["Accepted"]; got != "False Deleting" {
		t.Error(got)
	}
}

func TestMapping(t *testing.T) {
	cp, w, m := newControlPlane("cp"), newWorkers("w", ""), newMachine("m", "id-1")
	stranger := newWorkers("stranger", "")
	stranger.Spec.ClusterRef.Name = "other"
	f := newFixture(t, &cp, &w, &m, &stranger)
	r := &reconciler[*v1alpha1.OmniWorkers]{client: f.client, document: workers()}
	want := []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: "team", Name: "w"}}}

	if diff := cmp.Diff(want, r.ofCluster(t.Context(), &v1alpha1.OmniCluster{ObjectMeta: metadata("demo")})); diff != "" {
		t.Error(diff)
	}

	for _, sibling := range []client.Object{&cp, &w, &m} {
		if diff := cmp.Diff(want, r.family(t.Context(), sibling)); diff != "" {
			t.Error(diff)
		}
	}
}
