package deletionrights

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

const team = "team"

// bench is a namespace in an API that notes what is written, and refuses it with an error, if any.
type bench struct {
	client.WithWatch

	t      *testing.T
	writes []string
	refuse error
	broken error // of every list
	r      *reconciler
}

func newBench(t *testing.T, objects ...client.Object) *bench {
	t.Helper()

	scheme := runtime.NewScheme()
	if err := errors.Join(corev1.AddToScheme(scheme), v1alpha1.AddToScheme(scheme), rbacv1.AddToScheme(scheme), coordinationv1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}

	b := &bench{t: t}
	b.WithWatch = fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithInterceptorFuncs(interceptor.Funcs{
		Create: func(ctx context.Context, api client.WithWatch, object client.Object, options ...client.CreateOption) error {
			return b.write("create "+object.GetName(), func() error { return api.Create(ctx, object, options...) })
		},
		Patch: func(ctx context.Context, api client.WithWatch, object client.Object, change client.Patch, options ...client.PatchOption) error {
			return b.write("patch "+object.GetName(), func() error { return api.Patch(ctx, object, change, options...) })
		},
		List: func(ctx context.Context, api client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			return errors.Join(b.broken, api.List(ctx, list, options...))
		},
		Delete: func(ctx context.Context, api client.WithWatch, object client.Object, options ...client.DeleteOption) error {
			return b.write("delete "+object.GetName(), func() error { return api.Delete(ctx, object, options...) })
		},
	}).Build()
	b.r = &reconciler{client: b, live: b, options: Options{Namespace: team, RoleBinding: "binding", Lease: "lease", LeaseNamespace: team}}

	return b
}

func (b *bench) write(what string, write func() error) error {
	b.writes = append(b.writes, what)

	if b.refuse != nil {
		return b.refuse
	}

	return write()
}

// run reconciles, and compares what was written. A second run writes nothing.
func (b *bench) run(ctx context.Context, want ...string) {
	b.t.Helper()

	for _, want := range [][]string{want, nil} {
		b.writes = nil

		result, err := b.r.Reconcile(ctx, reconcile.Request{})
		if err != nil || result.RequeueAfter != lookAgain {
			b.t.Errorf("%+v, %v", result, err)
		}

		if diff := cmp.Diff(want, b.writes); diff != "" {
			b.t.Errorf("written (-want +got):\n%s", diff)
		}
	}
}

// finalizers returns the finalizers of an object; found is whether it exists.
func (b *bench) finalizers(object client.Object, name string) (finalizers []string, found bool) {
	b.t.Helper()

	err := b.Get(b.t.Context(), client.ObjectKey{Namespace: team, Name: name}, object)
	if client.IgnoreNotFound(err) != nil {
		b.t.Fatal(err)
	}

	return object.GetFinalizers(), err == nil
}

func named(name string, finalizers ...string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: team, Name: name, Finalizers: finalizers}
}

func binding(name, account string) *rbacv1.RoleBinding {
	return &rbacv1.RoleBinding{
		ObjectMeta: named(name), RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: "controller"},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: "system", Name: account}},
	}
}

func lease() *coordinationv1.Lease {
	return &coordinationv1.Lease{ObjectMeta: named("lease", "example.com/of-somebody-else")}
}

// With the first object that is to be cleaned up the copy and the lease are kept, with the last they are released.
func TestKeepsWhileNeeded(t *testing.T) {
	t.Parallel()

	cluster := &v1alpha1.OmniCluster{ObjectMeta: named("c", v1alpha1.Finalizer)}
	b := newBench(t, binding("binding", "account"), lease())
	b.run(t.Context())

	if err := b.WithWatch.Create(t.Context(), cluster); err != nil {
		t.Fatal(err)
	}

	b.run(t.Context(), "patch lease", "create binding-deletion")

	kept := &rbacv1.RoleBinding{}
	if got, _ := b.finalizers(kept, "binding-deletion"); !slices.Equal(got, []string{v1alpha1.InUseFinalizer}) || kept.Subjects[0].Name != "account" {
		t.Errorf("%+v", kept)
	}

	if got, _ := b.finalizers(&coordinationv1.Lease{}, "lease"); !slices.Equal(got, []string{"example.com/of-somebody-else", v1alpha1.InUseFinalizer}) {
		t.Errorf("the lease has %q", got)
	}

	if err := b.WithWatch.Patch(t.Context(), cluster, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`))); err != nil {
		t.Fatal(err)
	}

	b.run(t.Context(), "patch lease", "patch binding-deletion", "delete binding-deletion")

	if got, _ := b.finalizers(&coordinationv1.Lease{}, "lease"); !slices.Equal(got, []string{"example.com/of-somebody-else"}) {
		t.Errorf("the lease has %q", got)
	}

	if _, found := b.finalizers(kept, "binding-deletion"); found {
		t.Error("the copy is still there")
	}
}

// One of many is enough, wherever it is among them.
func TestKeepsForOneOfMany(t *testing.T) {
	t.Parallel()

	for _, held := range []string{"a", "b", "c"} {
		objects := []client.Object{binding("binding", "account"), lease()}

		for _, name := range []string{"a", "b", "c"} {
			cluster := &v1alpha1.OmniCluster{ObjectMeta: named(name)}
			if name == held {
				cluster.Finalizers = []string{v1alpha1.Finalizer}
			}

			objects = append(objects, cluster)
		}

		newBench(t, objects...).run(t.Context(), "patch lease", "create binding-deletion")
	}
}

// While it is not known whether anything is to be cleaned up, nothing is released.
func TestReleasesNothingInTheDark(t *testing.T) {
	t.Parallel()

	b := newBench(t, binding("binding", "account"), lease(), &v1alpha1.OmniCluster{ObjectMeta: named("c", v1alpha1.Finalizer)})
	b.run(t.Context(), "patch lease", "create binding-deletion")

	b.writes, b.broken = nil, errors.New("the cache is not there")
	if _, err := b.r.Reconcile(t.Context(), reconcile.Request{}); !errors.Is(err, b.broken) || len(b.writes) > 0 {
		t.Errorf("%v, written %q", err, b.writes)
	}
}

// An upgrade may give the controller another account, or another role.
func TestCopyFollowsTheRoleBinding(t *testing.T) {
	t.Parallel()

	account, role := binding("binding-deletion", "old"), binding("binding-deletion", "new")
	role.RoleRef.Name = "old"

	for name, outdated := range map[string]*rbacv1.RoleBinding{"account": account, "role": role} {
		b := newBench(t, binding("binding", "new"), outdated, &v1alpha1.OmniConnection{ObjectMeta: named("o", v1alpha1.Finalizer)}, lease())
		b.run(t.Context(), "patch lease", "delete binding-deletion", "create binding-deletion")

		kept := &rbacv1.RoleBinding{}
		if b.finalizers(kept, "binding-deletion"); kept.Subjects[0].Name != "new" || kept.RoleRef.Name != "controller" {
			t.Errorf("%s: %+v", name, kept)
		}
	}
}

// While the namespace is being deleted, the RoleBinding is gone, and a Secret of ours may be the last to go.
func TestNamespaceBeingDeleted(t *testing.T) {
	t.Parallel()

	secret := &corev1.Secret{ObjectMeta: named("key", v1alpha1.InUseFinalizer)}
	b := newBench(t, binding("binding", "account"), secret, lease())
	b.run(t.Context(), "patch lease", "create binding-deletion")

	for _, object := range []client.Object{binding("binding", ""), binding("binding-deletion", ""), lease(), secret} {
		if err := b.WithWatch.Delete(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}

	b.run(t.Context())

	if _, found := b.finalizers(&rbacv1.RoleBinding{}, "binding-deletion"); !found {
		t.Fatal("the copy is gone too early")
	}

	if err := b.WithWatch.Patch(t.Context(), secret, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`))); err != nil {
		t.Fatal(err)
	}

	b.run(t.Context(), "patch lease", "patch binding-deletion")

	if _, found := b.finalizers(&rbacv1.RoleBinding{}, "binding-deletion"); found {
		t.Error("the copy is still there")
	}
}

// Without the rights the log has it once, and the controller goes on. A conflict is tried again without a word.
func TestRefused(t *testing.T) {
	t.Parallel()

	told := 0
	ctx := log.IntoContext(t.Context(), funcr.New(func(string, string) { told++ }, funcr.Options{}))
	b := newBench(t, binding("binding", "account"), &v1alpha1.OmniCluster{ObjectMeta: named("c", v1alpha1.Finalizer)}, lease())

	b.refuse = apierrors.NewForbidden(rbacv1.Resource("rolebindings"), "binding-deletion", errors.New("no right"))
	for range 2 {
		if result, err := b.r.Reconcile(ctx, reconcile.Request{}); err != nil || result.RequeueAfter != lookAgain {
			t.Errorf("%+v, %v", result, err)
		}
	}

	if want := []string{"patch lease", "create binding-deletion", "patch lease", "create binding-deletion"}; told != 1 || !slices.Equal(b.writes, want) {
		t.Errorf("told %d times, written %q", told, b.writes)
	}

	b.refuse = apierrors.NewConflict(coordinationv1.Resource("leases"), "lease", errors.New("modified"))
	if result, err := b.r.Reconcile(ctx, reconcile.Request{}); err != nil || result.RequeueAfter != shortPause || told != 1 {
		t.Errorf("%+v, %v, told %d times", result, err, told)
	}

	b.refuse = errors.New("away")
	if _, err := b.r.Reconcile(ctx, reconcile.Request{}); !errors.Is(err, b.refuse) {
		t.Error(err)
	}
}

// Without leader election, or with the lease elsewhere, there is none to keep.
func TestWithoutLease(t *testing.T) {
	t.Parallel()

	b := newBench(t, binding("binding", "account"), &v1alpha1.OmniCluster{ObjectMeta: named("c", v1alpha1.Finalizer)})
	b.r.options.LeaseNamespace = ""
	b.run(t.Context(), "create binding-deletion")
}

// After an installation beside objects that are there already, nobody has led yet.
func TestBeforeTheLease(t *testing.T) {
	t.Parallel()

	b := newBench(t, binding("binding", "account"), &v1alpha1.OmniCluster{ObjectMeta: named("c", v1alpha1.Finalizer)})
	if result, err := b.r.Reconcile(t.Context(), reconcile.Request{}); err != nil || result.RequeueAfter != shortPause || b.r.told {
		t.Errorf("%+v, %v", result, err)
	}

	if err := b.WithWatch.Create(t.Context(), lease()); err != nil {
		t.Fatal(err)
	}

	b.run(t.Context(), "patch lease", "create binding-deletion")
}

func TestHeldOrReleased(t *testing.T) {
	t.Parallel()

	held, free := &v1alpha1.OmniCluster{ObjectMeta: named("c", v1alpha1.Finalizer)}, &v1alpha1.OmniCluster{ObjectMeta: named("c")}
	elsewhere := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "flux-system", Name: "s", Finalizers: []string{v1alpha1.InUseFinalizer}}}
	p, all := heldOrReleased(team), heldOrReleased("")

	for name, test := range map[string]struct{ got, want bool }{
		"made, held":      {p.Create(event.CreateEvent{Object: held}), true},
		"made, free":      {p.Create(event.CreateEvent{Object: free}), false},
		"made, elsewhere": {p.Create(event.CreateEvent{Object: elsewhere}), false},
		"held":            {p.Update(event.UpdateEvent{ObjectOld: free, ObjectNew: held}), true},
		"released":        {p.Update(event.UpdateEvent{ObjectOld: held, ObjectNew: free}), true},
		"still held":      {p.Update(event.UpdateEvent{ObjectOld: held, ObjectNew: held}), false},
		"gone":            {p.Delete(event.DeleteEvent{Object: free}), true},
		"made, in all":    {all.Create(event.CreateEvent{Object: elsewhere}), true},
		"gone, in all":    {all.Delete(event.DeleteEvent{Object: held}), true},
		// A hub has many Secrets that come and go.
		"gone, never held": {all.Delete(event.DeleteEvent{Object: free}), false},
	} {
		if test.got != test.want {
			t.Errorf("%s: %t", name, test.got)
		}
	}
}
