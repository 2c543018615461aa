package kit

import (
	"context"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/warning"
	"k8s.io/klog/v2"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// Deletion is what deleting an object does, in words for warnings and refusals.
type Deletion struct {
	// Does begins with a verb, such as `uninstalls release "web"`. Empty if everything stays as it is.
	Does string
	// Keep says how it is avoided, such as `set spec.deletionPolicy: Orphan first to keep it`.
	Keep string
}

// guard refuses deletions.
type guard func(context.Context, runtime.Object, *metav1.DeleteOptions) error

// guardOf returns the guard of a kind, which also warns of what the deletion does, refused or not. It allows objects that are being deleted
// already: a finalizer holds them, and refusing a second DELETE would help nobody.
func guardOf[T Object](d *Descriptor[T]) guard {
	refused := &refusals{}

	return func(ctx context.Context, obj runtime.Object, options *metav1.DeleteOptions) error {
		object, ok := obj.(T)
		if !ok || object.GetDeletionTimestamp() != nil {
			return nil
		}

		deletion := d.deletionOf(object)
		if deletion.Does != "" {
			warning.AddWarning(ctx, "", fmt.Sprintf("deleting %s %q %s; %s", d.Kind, object.GetName(), deletion.Does, deletion.Keep))
		}

		if byGarbageCollector(ctx) && !v1alpha1.IsDeletionConfirmed(object) {
			refused.tell(ctx, d.Plural, object)

			return refuseGarbageCollector(d.Plural, object.GetName(), deletion)
		}

		return d.refusal(ctx, object, deletion, options)
	}
}

func (d *Descriptor[T]) deletionOf(object T) Deletion {
	if d.Deletion == nil {
		return Deletion{}
	}

	return d.Deletion(object)
}

// refusal returns the error that a deletion is refused with, nil if it is allowed.
func (d *Descriptor[T]) refusal(ctx context.Context, object T, deletion Deletion, options *metav1.DeleteOptions) error {
	if d.DeleteGuard != nil {
		if err := d.DeleteGuard(ctx, object); err != nil {
			return err
		}
	}

	if !v1alpha1.IsDeletionConfirmed(object) && deletion.Does != "" && orphans(options) {
		return refuseOrphan(d.Plural, object.GetName(), deletion)
	}

	return nil
}

// Clusters lists the OmniClusters in the namespace of a request, for guards of other kinds.
type Clusters interface {
	List(ctx context.Context, options *metainternalversion.ListOptions) (runtime.Object, error)
}

// ListClusters returns the OmniClusters in the namespace of a request. Its errors are answers to the client.
func ListClusters(ctx context.Context, clusters Clusters, options *metainternalversion.ListOptions) ([]v1alpha1.OmniCluster, error) {
	found, err := clusters.List(ctx, options)
	if err != nil {
		return nil, err
	}

	list, ok := found.(*v1alpha1.OmniClusterList)
	if !ok {
		return nil, apierrors.NewInternalError(fmt.Errorf("read %T for a list of OmniClusters", found))
	}

	return list.Items, nil
}

// Users of kube-controller-manager. Where its controllers have no accounts of their own, all of them are
// user.KubeControllerManager.
const (
	garbageCollector    = "system:serviceaccount:kube-system:generic-garbage-collector"
	namespaceController = "system:serviceaccount:kube-system:namespace-controller"
)

// byGarbageCollector reports whether the hub's garbage collector deletes the object of a request.
func byGarbageCollector(ctx context.Context) bool {
	name := userOf(ctx)

	return name == garbageCollector || name == user.KubeControllerManager && !ofCollection(ctx)
}

// ByNamespaceController reports whether a request deletes what is in a namespace that is being deleted.
func ByNamespaceController(ctx context.Context) bool {
	name := userOf(ctx)

	return name == namespaceController || name == user.KubeControllerManager && ofCollection(ctx)
}

func userOf(ctx context.Context) string {
	if known, ok := request.UserFrom(ctx); ok {
		return known.GetName()
	}

	return ""
}

// ofCollection reports whether a request deletes a collection. The garbage collector deletes objects one by one, and the
// namespace controller collections.
func ofCollection(ctx context.Context) bool {
	info, known := request.RequestInfoFrom(ctx)

	return known && info.Verb == "deletecollection"
}

// refuseGarbageCollector refuses a deletion that nobody asked for in so many words. A patch of metadata.ownerReferences is
// enough to have the garbage collector delete an object, and so is the deletion of its owner.
func refuseGarbageCollector(plural, name string, deletion Deletion) error {
	what := ""
	if deletion.Does != "" {
		what = ", which " + deletion.Does
	}

	return apierrors.NewForbidden(v1alpha1.Resource(plural), name, fmt.Errorf(
		"its owner (metadata.ownerReferences) is gone or is being deleted; the garbage collector may delete it%s, only when that is confirmed: "+
			"annotate it with %s=%s, and it goes at the next attempt, within a quarter of an hour; or remove metadata.ownerReferences to keep it",
		what, v1alpha1.AnnotationConfirmDeletion, name))
}

// refusedTold is how often the log says that the garbage collector was refused: it tries each object again and again.
const refusedTold = time.Minute

// refusals are those of the garbage collector for a kind. Nobody else is told of them: no person has sent the request.
type refusals struct {
	mu    sync.Mutex
	count int // since the log said so
	told  time.Time
}

func (r *refusals) tell(ctx context.Context, plural string, object metav1.Object) {
	r.mu.Lock()
	defer r.mu.Unlock()

	if r.count++; time.Since(r.told) < refusedTold {
		return
	}

	klog.FromContext(ctx).Info("Refused a deletion by the garbage collector. If the object is to go, annotate it; if not, remove its metadata.ownerReferences",
		"resource", plural, "object", klog.KObj(object), "annotation", v1alpha1.AnnotationConfirmDeletion+"="+object.GetName(), "refused", r.count)

	r.count, r.told = 0, time.Now()
}

// orphans reports whether a deletion asks to keep what the object owns.
func orphans(options *metav1.DeleteOptions) bool {
	if options == nil {
		return false
	}

	return options.PropagationPolicy != nil && *options.PropagationPolicy == metav1.DeletePropagationOrphan ||
		options.OrphanDependents != nil && *options.OrphanDependents //nolint:staticcheck // clients still send it
}

// refuseOrphan refuses a deletion with the policy Orphan, which keeps nothing but objects with an ownerReference, if something
// else would go with the object. Whoever writes orphan there means to keep it.
func refuseOrphan(plural, name string, deletion Deletion) error {
	return apierrors.NewForbidden(v1alpha1.Resource(plural), name, fmt.Errorf(
		"propagationPolicy Orphan (kubectl --cascade=orphan, Argo CD's non-cascading deletion) keeps only objects with an ownerReference: deleting it %s; "+
			"%s. To delete it all the same, annotate it with %s=%s first", deletion.Does, deletion.Keep, v1alpha1.AnnotationConfirmDeletion, name))
}
