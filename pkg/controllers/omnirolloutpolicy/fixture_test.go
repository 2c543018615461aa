package omnirolloutpolicy

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/hubs"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/loop"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/metrics"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/skew"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/trigger"
	"omni.texashpc.com/omni-cluster-operator/test/looptest"
)

// Versions that the tests roll out.
const (
	v1 = "v1.35.1"
	v2 = "v1.36.1"
)

// noon is a Wednesday.
var noon = time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)

// fixture is the controller over a fake API. Only the policies' statuses may be written.
type fixture struct {
	t        *testing.T
	client   client.WithWatch
	loop     *loop.Reconciler[*v1alpha1.OmniRolloutPolicy, *scope]
	events   *looptest.Events
	rollouts *metrics.Rollouts
	well     *hubs.Well
	now      time.Time
	skew     time.Duration
	writes   int
	refusals int // of the next writes
}

func newFixture(t *testing.T, objects ...client.Object) *fixture {
	t.Helper()

	f := &fixture{t: t, now: noon, events: looptest.NewEvents(), rollouts: metrics.NewRollouts()}
	f.client = looptest.NewAPI(objects...).
		WithStatusSubresource(&v1alpha1.OmniCluster{}, &v1alpha1.OmniRolloutPolicy{}).
		WithInterceptorFuncs(interceptor.Funcs{
			Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
				t.Error("a policy has no finalizer, and nothing of it is patched but the status")

				return nil
			},
			SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
				if _, isPolicy := o.(*v1alpha1.OmniRolloutPolicy); !isPolicy {
					t.Errorf("the controller writes a %T", o)
				}

				f.writes++

				if f.refusals--; f.refusals >= 0 {
					return apierrors.NewForbidden(schema.GroupResource{Resource: "omnirolloutpolicies"}, o.GetName(), errors.New("not now"))
				}

				return c.SubResource(sub).Patch(ctx, o, p, opts...)
			},
		}).Build()

	f.restart()
	f.note(objects...)

	return f
}

// restart makes a controller in a process that has seen no cluster.
func (f *fixture) restart() {
	f.well = hubs.NewWell(trigger.Pacing{})
	r := newReconciler(f.client, f.events, Options{
		Objects: metrics.NewObjects(), Rollouts: f.rollouts, Well: f.well,
		Now: func() time.Time { return f.now }, Skew: func() skew.Difference { return skew.Difference{Server: "kube-apiserver", Ahead: f.skew} },
	})
	f.loop = loop.New(r.kind(), loop.Settings{
		Client: f.client, Events: f.events, Jitter: func(interval time.Duration) time.Duration { return interval },
	})
}

// note has the process see in Omni what the statuses of clusters say.
func (f *fixture) note(objects ...client.Object) {
	for _, object := range objects {
		if cluster, isCluster := object.(*v1alpha1.OmniCluster); isCluster {
			f.well.Note(cluster)
		}
	}
}

func key(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: "fleet", Name: name}
}

// run reconciles a policy once, and returns it and when it has to be reconciled again.
func (f *fixture) run(name string) (*v1alpha1.OmniRolloutPolicy, time.Duration) {
	f.t.Helper()

	result, err := f.loop.Reconcile(f.t.Context(), reconcile.Request{NamespacedName: key(name)})
	if err != nil {
		f.t.Fatal(err)
	}

	policy := &v1alpha1.OmniRolloutPolicy{}
	if err := f.client.Get(f.t.Context(), key(name), policy); err != nil {
		f.t.Fatal(err)
	}

	return policy, result.RequeueAfter
}

// put writes an object with its status, as a user and the object's own controller do.
func (f *fixture) put(object client.Object) {
	f.t.Helper()

	status, isObject := object.DeepCopyObject().(client.Object)
	stored, isToo := object.DeepCopyObject().(client.Object)

	if !isObject || !isToo {
		f.t.Fatalf("a copy of %T is no object", object)
	}

	if err := f.client.Get(f.t.Context(), client.ObjectKeyFromObject(object), stored); err != nil {
		f.t.Fatal(err)
	}

	object.SetResourceVersion(stored.GetResourceVersion())

	if err := f.client.Update(f.t.Context(), object); err != nil {
		f.t.Fatal(err)
	}

	status.SetResourceVersion(object.GetResourceVersion())

	if err := f.client.Status().Update(f.t.Context(), status); err != nil {
		f.t.Fatal(err)
	}

	f.note(status)
}

// newPolicy has the stages canary and prod, which take one cluster at a time.
func newPolicy(name string, changes ...func(*v1alpha1.OmniRolloutPolicy)) *v1alpha1.OmniRolloutPolicy {
	policy := &v1alpha1.OmniRolloutPolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: name, UID: types.UID("uid-" + name), Generation: 2},
		Spec: v1alpha1.OmniRolloutPolicySpec{
			ClusterSelector: &v1alpha1.ClusterSelector{},
			Stages: []v1alpha1.RolloutStage{
				{Name: "canary", ClusterSelector: &v1alpha1.ClusterSelector{MatchLabels: map[string]string{"tier": "canary"}}}, {Name: "prod"},
			},
		},
	}
	for _, change := range changes {
		change(policy)
	}

	return policy
}

// newCluster has run v1 well for a long time.
func newCluster(name, tier string, changes ...func(*v1alpha1.OmniCluster)) *v1alpha1.OmniCluster {
	cluster := &v1alpha1.OmniCluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: name, UID: types.UID("uid-" + name), Generation: 1, Labels: map[string]string{"tier": tier}},
		Spec:       v1alpha1.OmniClusterSpec{Kubernetes: v1alpha1.OmniClusterKubernetes{Version: v1}},
		Status: v1alpha1.OmniClusterStatus{
			ReconcileStatus: v1alpha1.ReconcileStatus{
				ObservedGeneration: 1,
				Conditions: []metav1.Condition{{
					Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonRunning, LastTransitionTime: metav1.NewTime(noon.Add(-1000 * time.Hour)),
				}},
			},
			Omni:    &v1alpha1.OmniClusterRemoteStatus{KubernetesVersion: v1},
			Rollout: &v1alpha1.OmniClusterRollout{Governed: true, Policy: "production", WellSince: &metav1.Time{Time: noon.Add(-1000 * time.Hour)}},
		},
	}
	for _, change := range changes {
		change(cluster)
	}

	return cluster
}

// waits holds the change to v2 since some time before noon.
func waits(ago time.Duration) func(*v1alpha1.OmniCluster) {
	return func(o *v1alpha1.OmniCluster) {
		o.Spec.Kubernetes.Version = v2
		since := metav1.NewTime(noon.Add(-ago))
		o.Status.Rollout.State, o.Status.Rollout.Hash, o.Status.Rollout.HeldSince = v1alpha1.RolloutHeld, "hash-"+o.Name, &since
		o.Status.Rollout.Kinds = []v1alpha1.ChangeKind{v1alpha1.ChangeKubernetesVersion}
	}
}

// works has begun with the change.
func works(o *v1alpha1.OmniCluster) {
	waits(time.Hour)(o)
	o.Status.Rollout.State = v1alpha1.RolloutAdmitted
	o.Status.Conditions[0].Status, o.Status.Rollout.WellSince = metav1.ConditionFalse, nil
}

// isDone is done with the change, and has run v2 since some time before noon.
func isDone(ago time.Duration) func(*v1alpha1.OmniCluster) {
	return func(o *v1alpha1.OmniCluster) {
		o.Spec.Kubernetes.Version, o.Status.Omni.KubernetesVersion = v2, v2
		at := metav1.NewTime(noon.Add(-ago))
		o.Status.Rollout = &v1alpha1.OmniClusterRollout{
			Governed: true, Policy: "production", WellSince: &at, Last: &v1alpha1.RolloutResult{Hash: "hash-" + o.Name, Result: v1alpha1.RolloutDone, Time: at},
		}
		o.Status.Conditions[0].Status, o.Status.Conditions[0].LastTransitionTime = metav1.ConditionTrue, at
	}
}

// tickets are the clusters with a ticket, as "cluster (stage)".
func tickets(policy *v1alpha1.OmniRolloutPolicy) string {
	var shown []string
	for _, one := range policy.Status.Admitted {
		shown = append(shown, one.Cluster+" ("+one.Stage+")")
	}

	return strings.Join(shown, ", ")
}

func condition(policy *v1alpha1.OmniRolloutPolicy, name string) string {
	found := apimeta.FindStatusCondition(policy.Status.Conditions, name)
	if found == nil {
		return ""
	}

	return string(found.Status) + " " + found.Reason + ": " + found.Message
}

func wantTickets(t *testing.T, policy *v1alpha1.OmniRolloutPolicy, want string) {
	t.Helper()

	if diff := cmp.Diff(want, tickets(policy)); diff != "" {
		t.Errorf("tickets (-want +got):\n%s", diff)
	}
}
