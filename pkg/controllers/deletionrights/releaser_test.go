package deletionrights

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/skew"
)

const foreign = "example.com/of-somebody-else"

// leftBehind is what a former controller kept in the namespace while it had an object. Its lease was renewed the given time ago.
func leftBehind(holder string, ago time.Duration) []client.Object {
	kept, mark := binding("binding-deletion", "former"), lease()
	kept.Finalizers = []string{v1alpha1.InUseFinalizer}
	mark.Finalizers = []string{foreign, v1alpha1.InUseFinalizer}
	renewed := metav1.NewMicroTime(time.Now().Add(-ago))
	mark.Spec = coordinationv1.LeaseSpec{HolderIdentity: &holder, RenewTime: &renewed}

	return []client.Object{kept, mark, &v1alpha1.OmniCluster{ObjectMeta: named("c", v1alpha1.Finalizer)}}
}

// release runs the releaser with these options until it does not ask for another run soon, and returns the result of the last.
func (b *bench) release(ctx context.Context, options Options) reconcile.Result {
	b.t.Helper()

	r := newReleaser(&reconciler{client: b, live: b, options: options})
	b.writes = nil

	for range 5 {
		result, err := r.Reconcile(ctx, reconcile.Request{NamespacedName: types.NamespacedName{Name: team}})
		if err != nil {
			b.t.Fatal(err)
		}

		if result.RequeueAfter != shortPause {
			return result
		}
	}

	b.t.Fatal("it does not end")

	return reconcile.Result{}
}

// wantReleased looks for the lease without our finalizer, and for no copy.
func (b *bench) wantReleased() {
	b.t.Helper()

	if got, _ := b.finalizers(&coordinationv1.Lease{}, "lease"); !slices.Equal(got, []string{foreign}) {
		b.t.Errorf("the lease has %q", got)
	}

	if _, found := b.finalizers(&rbacv1.RoleBinding{}, "binding-deletion"); found {
		b.t.Error("the copy is still there")
	}
}

// ofAll are the options of a controller of all namespaces.
var ofAll = Options{RoleBinding: "binding", Lease: "lease", LeaseNamespace: "system"}

// A controller of all namespaces takes the place of one that was scaled to zero, or that has crashed, and does not wait until its
// objects are gone. A second run writes nothing.
func TestReleasesWhatAFormerControllerKept(t *testing.T) {
	t.Parallel()

	for name, objects := range map[string][]client.Object{
		"stopped":   leftBehind("", time.Second),
		"crashed":   leftBehind("former", time.Hour),
		"never led": {leftBehind("", 0)[0], lease()},
	} {
		b := newBench(t, objects...)
		want := []string{"patch lease", "delete binding-deletion", "patch binding-deletion"}

		if name == "never led" {
			want = want[1:]
		}

		for _, want := range [][]string{want, nil} {
			if result := b.release(t.Context(), ofAll); result.RequeueAfter != 0 {
				t.Errorf("%s: %+v", name, result)
			}

			if diff := cmp.Diff(want, b.writes); diff != "" {
				t.Errorf("%s: written (-want +got):\n%s", name, diff)
			}
		}

		b.wantReleased()
	}
}

// While the former controller renews its lease, it knows itself what it needs. The lease of this controller it cannot renew.
func TestLeavesARunningControllerAlone(t *testing.T) {
	t.Parallel()

	b := newBench(t, leftBehind("former", 20*time.Second)...)
	if result := b.release(t.Context(), ofAll); result.RequeueAfter != lookAgain || len(b.writes) > 0 {
		t.Errorf("%+v, written %q", result, b.writes)
	}

	// Our clock is ahead, by what an API server says.
	ahead := ofAll
	ahead.Skew = func() skew.Difference { return skew.Difference{Server: "kube-apiserver", Ahead: -25 * time.Hour} }

	b = newBench(t, leftBehind("former", 25*time.Hour)...)
	if result := b.release(t.Context(), ahead); result.RequeueAfter != lookAgain || len(b.writes) > 0 {
		t.Errorf("with a clock that is ahead: %+v, written %q", result, b.writes)
	}

	own := ofAll
	own.LeaseNamespace = team
	b.release(t.Context(), own)
	b.wantReleased()
}

// A RoleBinding of that name without our finalizer is somebody else's.
func TestReleasesNothingElse(t *testing.T) {
	t.Parallel()

	other := binding("binding-deletion", "account")
	other.Finalizers = []string{foreign}

	b := newBench(t, other, lease(), binding("binding", "account"))
	if result := b.release(t.Context(), ofAll); result.RequeueAfter != 0 || len(b.writes) > 0 {
		t.Errorf("%+v, written %q", result, b.writes)
	}
}

// The namespace may be being deleted already: then the copy is, too.
func TestReleasesInANamespaceBeingDeleted(t *testing.T) {
	t.Parallel()

	objects := leftBehind("", time.Second)
	b := newBench(t, objects...)

	for _, object := range objects {
		if err := b.WithWatch.Delete(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}

	b.release(t.Context(), ofAll)

	if want := []string{"patch lease", "patch binding-deletion"}; !slices.Equal(b.writes, want) {
		t.Errorf("written %q", b.writes)
	}

	b.wantReleased()
}

// A controller of one namespace that keeps nothing may have the same account as the one before, and need the copy until it has
// cleaned up.
func TestReleasesInTheServedNamespace(t *testing.T) {
	t.Parallel()

	objects := leftBehind("this", time.Second)
	objects[0].SetName(CopyName(defaultRoleBinding))

	b := newBench(t, objects...)
	ofOne := Options{Namespace: team, Lease: "lease", LeaseNamespace: team}

	if result := b.release(t.Context(), ofOne); result.RequeueAfter != 0 || len(b.writes) > 0 {
		t.Errorf("%+v, written %q", result, b.writes)
	}

	if err := b.WithWatch.Patch(t.Context(), objects[2], client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))); err != nil {
		t.Fatal(err)
	}

	b.release(t.Context(), ofOne)

	if want := []string{"patch lease", "delete omni-controller-deletion", "patch omni-controller-deletion"}; !slices.Equal(b.writes, want) {
		t.Errorf("written %q", b.writes)
	}
}

// Without the rights the log has it once, if there is anything to release, and nothing fails.
func TestMayNotRelease(t *testing.T) {
	t.Parallel()

	forbidden := apierrors.NewForbidden(rbacv1.Resource("rolebindings"), "binding-deletion", errors.New("no right"))

	for name, test := range map[string]struct {
		leases, bindings, writes error
		objects                  []client.Object
		told                     int
	}{
		"may not read":                {leases: forbidden, bindings: forbidden, objects: leftBehind("", 0), told: 1},
		"may not write":               {writes: forbidden, objects: leftBehind("", 0), told: 1},
		"may not read the copy":       {bindings: forbidden, objects: leftBehind("", 0), told: 1},
		"there is nothing to release": {bindings: forbidden, objects: []client.Object{lease()}},
	} {
		told := 0
		ctx := log.IntoContext(t.Context(), funcr.New(func(string, string) { told++ }, funcr.Options{}))
		b := newBench(t, test.objects...)
		b.refuse = test.writes
		r := newReleaser(&reconciler{client: b, live: refusing{b, test.leases, test.bindings}, options: ofAll})

		for _, namespace := range []string{team, team, "another"} {
			if result, err := r.Reconcile(ctx, reconcile.Request{NamespacedName: types.NamespacedName{Name: namespace}}); err != nil || result.RequeueAfter != 0 {
				t.Errorf("%s: %+v, %v", name, result, err)
			}
		}

		if told != test.told {
			t.Errorf("%s: told %d times", name, told)
		}
	}
}

// refusing refuses to read leases or RoleBindings with an error, if any.
type refusing struct {
	client.Reader
	leases, bindings error
}

func (r refusing) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	err := r.leases
	if _, is := object.(*rbacv1.RoleBinding); is {
		err = r.bindings
	}

	if err != nil {
		return err
	}

	return r.Reader.Get(ctx, key, object, options...)
}

// A failure is tried again with the pauses of every controller.
func TestReleaseFails(t *testing.T) {
	t.Parallel()

	b := newBench(t, leftBehind("", 0)...)
	b.refuse = errors.New("away")
	r := newReleaser(&reconciler{client: b, live: b, options: ofAll})

	if _, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: team}}); !errors.Is(err, b.refuse) {
		t.Error(err)
	}

	b.refuse = apierrors.NewConflict(coordinationv1.Resource("leases"), "lease", errors.New("modified"))
	if result, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: team}}); err != nil || result.RequeueAfter != shortPause {
		t.Errorf("%+v, %v", result, err)
	}
}
