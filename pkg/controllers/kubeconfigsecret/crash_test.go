package kubeconfigsecret

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/index"
)

// Of the Secrets of these tests.
var access = types.NamespacedName{Namespace: "ns", Name: "access"}

const theirs = "example.com/theirs"

// world is an API with Secrets and their users, and what becomes of calls to it.
type world struct {
	client.WithWatch

	writes int
	// fail is what a call ends in. A patch can be carried out before, as when the answer is lost.
	list, patch, namespace error
	carriedOut             bool
}

func newWorld(t *testing.T, objects ...client.Object) *world {
	t.Helper()

	scheme := runtime.NewScheme()
	if err := errors.Join(corev1.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}

	byKubeconfig := func(object client.Object) []string {
		var names []string
		for _, request := range secretOf(context.Background(), object) {
			names = append(names, request.Name)
		}

		return names
	}

	w := &world{}
	w.WithWatch = fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).
		WithIndex(&v1alpha1.OmniSecretSync{}, index.ByKubeconfigSecret, byKubeconfig).
		WithIndex(&v1alpha1.OmniHelmRelease{}, index.ByKubeconfigSecret, byKubeconfig).
		WithInterceptorFuncs(interceptor.Funcs{
			Get: func(ctx context.Context, api client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
				if w.namespace != nil && object.GetObjectKind().GroupVersionKind().Kind == "Namespace" {
					return w.namespace
				}

				return api.Get(ctx, key, object, options...)
			},
			List: func(ctx context.Context, api client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
				if w.list != nil {
					return w.list
				}

				return api.List(ctx, list, options...)
			},
			Patch: func(ctx context.Context, api client.WithWatch, object client.Object, change client.Patch, options ...client.PatchOption) error {
				w.writes++

				if w.patch != nil && !w.carriedOut {
					return w.patch
				}

				return errors.Join(api.Patch(ctx, object, change, options...), w.patch)
			},
		}).Build()

	return w
}

// run is one look at the Secret, at a time after noon.
func (w *world) run(t *testing.T, after time.Duration) (reconcile.Result, error) {
	t.Helper()

	r := &reconciler{client: w, live: w, now: func() time.Time { return noon.Add(after) }}

	return r.Reconcile(t.Context(), reconcile.Request{NamespacedName: access})
}

// finalizers are those of the Secret; nil if there is none.
func (w *world) finalizers(t *testing.T) []string {
	t.Helper()

	secret := &corev1.Secret{}
	if err := w.Get(t.Context(), access, secret); client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}

	return secret.Finalizers
}

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// secret is held by us, and by others; deleted at noon if so.
func secret(deleted bool, finalizers ...string) *corev1.Secret {
	made := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: access.Namespace, Name: access.Name, Finalizers: finalizers}}
	if deleted {
		made.DeletionTimestamp = &metav1.Time{Time: noon}
	}

	return made
}

// namespace is that of the Secret; being deleted if so.
func namespace(deleted bool) *corev1.Namespace {
	made := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: access.Namespace, Finalizers: []string{theirs}}}
	if deleted {
		made.DeletionTimestamp = &metav1.Time{Time: noon}
	}

	return made
}

// sync uses the Secret; release does, too.
func sync(namespace, kubeconfig string, deleted bool, finalizers ...string) client.Object {
	made := &v1alpha1.OmniSecretSync{ObjectMeta: meta(namespace, deleted, finalizers)}
	made.Spec.KubeconfigSecretRef.Name = kubeconfig

	return made
}

func release(namespace, kubeconfig string, deleted bool, finalizers ...string) client.Object {
	made := &v1alpha1.OmniHelmRelease{ObjectMeta: meta(namespace, deleted, finalizers)}
	made.Spec.KubeconfigSecretRef.Name = kubeconfig

	return made
}

func meta(namespace string, deleted bool, finalizers []string) metav1.ObjectMeta {
	made := metav1.ObjectMeta{Namespace: namespace, Name: "user", Finalizers: finalizers}
	if deleted {
		made.DeletionTimestamp = &metav1.Time{Time: noon}
	}

	return made
}

// Which Secrets are held on to, in every order of deletion.
func TestHolding(t *testing.T) {
	const inUse, ours = v1alpha1.KubeconfigInUseFinalizer, v1alpha1.Finalizer

	for _, test := range []struct {
		name    string
		objects []client.Object
		after   time.Duration
		want    []string // finalizers left
		again   time.Duration
	}{
		{"no Secret", nil, 0, nil, 0},
		{"not held", []client.Object{secret(false, theirs)}, 0, []string{theirs}, 0},
		{"nobody needs it", []client.Object{secret(false, inUse)}, 0, nil, 0},
		{"somebody else holds it as well", []client.Object{secret(false, theirs, inUse)}, 0, []string{theirs}, 0},
		{"a sync", []client.Object{secret(false, inUse), sync("ns", "access", false)}, 0, []string{inUse}, 0},
		{"a release", []client.Object{secret(false, inUse), release("ns", "access", false)}, 0, []string{inUse}, 0},
		{"of another Secret", []client.Object{secret(false, inUse), sync("ns", "other", false)}, 0, nil, 0},
		{"of another namespace", []client.Object{secret(false, inUse), release("far", "access", false)}, 0, nil, 0},
		{"the sync is leaving", []client.Object{secret(false, inUse), sync("ns", "access", true, ours)}, 0, []string{inUse}, 0},
		{"both are leaving, for however long", []client.Object{secret(true, inUse), sync("ns", "access", true, ours), release("ns", "access", true, ours)}, 5 * time.Hour, []string{inUse}, 0},
		{"the release has cleaned up and is held by others", []client.Object{secret(true, inUse, theirs), release("ns", "access", true, theirs)}, time.Minute, []string{theirs}, 0},
		{"deleted a moment ago, the sync may follow", []client.Object{secret(true, inUse), sync("ns", "access", false, ours)}, 10 * time.Second, []string{inUse}, 20 * time.Second},
		{"the namespace goes", []client.Object{namespace(true), secret(true, inUse), sync("ns", "access", false, ours)}, time.Hour, []string{inUse}, grace},
		{"the namespace stays", []client.Object{namespace(false), secret(true, inUse, theirs), sync("ns", "access", false, ours)}, time.Hour, []string{theirs}, 0},
		{"deleted alone", []client.Object{secret(true, inUse, theirs), sync("ns", "access", false, ours)}, 30 * time.Second, []string{theirs}, 0},
		{"the clock of the server is ahead", []client.Object{secret(true, inUse), sync("ns", "access", false, ours)}, -5 * time.Second, []string{inUse}, 35 * time.Second},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t, test.objects...)

			result, err := w.run(t, test.after)
			if err != nil || result.RequeueAfter != test.again {
				t.Errorf("again in %s, want %s; %v", result.RequeueAfter, test.again, err)
			}

			if diff := cmp.Diff(test.want, w.finalizers(t)); diff != "" {
				t.Errorf("finalizers (-want +got):\n%s", diff)
			}

			writes := w.writes
			if _, err := w.run(t, test.after); err != nil || w.writes != writes {
				t.Errorf("a second look: %d writes, %v", w.writes-writes, err)
			}
		})
	}
}

// omni-apiserver is away when the namespace is deleted, so the users are not. Nobody knows that of a controller which may not get the
// Namespace: the Secret stays until nobody uses it.
func TestNamespaceThatCannotBeRead(t *testing.T) {
	w := newWorld(t, namespace(true), secret(true, v1alpha1.KubeconfigInUseFinalizer), sync("ns", "access", false, v1alpha1.Finalizer))
	w.namespace = apierrors.NewForbidden(corev1.Resource("namespaces"), "ns", errors.New("no rights"))

	if result, err := w.run(t, time.Hour); err != nil || result.RequeueAfter != grace || len(w.finalizers(t)) != 1 {
		t.Errorf("again in %s, finalizers %v: %v", result.RequeueAfter, w.finalizers(t), err)
	}

	user := &v1alpha1.OmniSecretSync{}
	if err := w.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "user"}, user); err != nil {
		t.Fatal(err)
	}

	user.Finalizers = nil
	if err := errors.Join(w.Update(t.Context(), user), w.Delete(t.Context(), user)); err != nil {
		t.Fatal(err)
	}

	if _, err := w.run(t, time.Hour); err != nil || w.finalizers(t) != nil {
		t.Errorf("still held by %v: %v", w.finalizers(t), err)
	}
}

// The process dies, or the API fails, at each of its calls: the Secret is never let go of while somebody needs
// it, and the next look finishes.
func TestNextLookFinishes(t *testing.T) {
	failure := apierrors.NewServiceUnavailable("not now")

	for _, test := range []struct {
		name string
		make func(*world)
		held bool // after the failure
	}{
		{"before the users are known", func(w *world) { w.list = failure }, true},
		{"before the patch", func(w *world) { w.patch = failure }, true},
		{"after the patch", func(w *world) { w.patch, w.carriedOut = failure, true }, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t, secret(true, v1alpha1.KubeconfigInUseFinalizer, theirs))
			test.make(w)

			if _, err := w.run(t, 0); !errors.Is(err, failure) {
				t.Errorf("got %v, want the failure, so that it is tried again", err)
			}

			if held := len(w.finalizers(t)) == 2; held != test.held {
				t.Errorf("held: %v, want %v", held, test.held)
			}

			w.list, w.patch = nil, nil

			if result, err := w.run(t, 0); err != nil || result != (reconcile.Result{}) {
				t.Errorf("the next look: %+v, %v", result, err)
			}

			if diff := cmp.Diff([]string{theirs}, w.finalizers(t)); diff != "" {
				t.Errorf("finalizers (-want +got):\n%s", diff)
			}
		})
	}
}

// A namespace goes at once, and the process dies after every look: the Secret goes last.
func TestNamespaceGoesAtOnce(t *testing.T) {
	using := []client.Object{sync("ns", "access", true, v1alpha1.Finalizer), release("ns", "access", true, v1alpha1.Finalizer)}
	w := newWorld(t, append(using, secret(true, v1alpha1.KubeconfigInUseFinalizer))...)

	for _, user := range using {
		if _, err := w.run(t, time.Hour); err != nil || len(w.finalizers(t)) != 1 {
			t.Fatalf("let go before %T has cleaned up: %v", user, err)
		}

		// It has cleaned up: without its finalizer it is gone.
		user.SetFinalizers(nil)

		current, ok := user.DeepCopyObject().(client.Object)
		if !ok {
			t.Fatal("no object")
		}

		if err := w.Get(t.Context(), client.ObjectKeyFromObject(user), current); err != nil {
			t.Fatal(err)
		}

		current.SetFinalizers(nil)

		if err := w.Update(t.Context(), current); err != nil {
			t.Fatal(err)
		}
	}

	if _, err := w.run(t, time.Hour); err != nil || w.finalizers(t) != nil {
		t.Errorf("still held by %v, %v", w.finalizers(t), err)
	}
}

// A user that appears between the look and the patch has written the Secret, so the patch is a conflict.
func TestUserAppearsMeanwhile(t *testing.T) {
	w := newWorld(t, secret(false, v1alpha1.KubeconfigInUseFinalizer))
	stale := secret(false, v1alpha1.KubeconfigInUseFinalizer)

	if err := w.Get(t.Context(), access, stale); err != nil {
		t.Fatal(err)
	}

	fresh := stale.DeepCopy()
	fresh.Annotations = map[string]string{"written": "meanwhile"}

	if err := errors.Join(w.Update(t.Context(), fresh), w.Create(t.Context(), sync("ns", "access", false))); err != nil {
		t.Fatal(err)
	}

	// As the cache had it.
	r := &reconciler{client: &behind{world: w, resourceVersion: stale.ResourceVersion}, live: w, now: time.Now}

	result, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: access})
	if err != nil || result.RequeueAfter != time.Second || len(w.finalizers(t)) != 1 {
		t.Errorf("%+v, %v, finalizers %v", result, err, w.finalizers(t))
	}

	if _, err := w.run(t, 0); err != nil || len(w.finalizers(t)) != 1 {
		t.Errorf("the next look: %v, finalizers %v", err, w.finalizers(t))
	}
}

// behind is a cache that knows an older Secret and no user.
type behind struct {
	*world

	resourceVersion string
}

// Get reads the Secret as it was.
func (b *behind) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	err := b.world.Get(ctx, key, object, options...)
	object.SetResourceVersion(b.resourceVersion)

	return err
}

// List knows of nobody.
func (b *behind) List(context.Context, client.ObjectList, ...client.ListOption) error { return nil }

// Objects of other kinds and without a kubeconfig name no Secret.
func TestSecretOf(t *testing.T) {
	for _, test := range []struct {
		name   string
		object client.Object
		want   []reconcile.Request
	}{
		{"sync", sync("ns", "access", false), []reconcile.Request{{NamespacedName: access}}},
		{"release", release("ns", "access", true), []reconcile.Request{{NamespacedName: access}}},
		{"no name", sync("ns", "", false), nil},
		{"another kind", &v1alpha1.OmniCluster{}, nil},
	} {
		if diff := cmp.Diff(test.want, secretOf(t.Context(), test.object)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
	}
}
