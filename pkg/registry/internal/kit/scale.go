package kit

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apimachinery/pkg/util/validation/field"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/registry/memory"
	"omni.texashpc.com/omni-cluster-operator/pkg/registry/quota"
)

// Scale holds how the scale subresource reads and writes a kind.
type Scale[T Object] struct {
	// Machines returns the field that says where the machines of the set come from.
	Machines func(T) *v1alpha1.MachineSetMachines
	// Status returns the counters.
	Status func(T) *v1alpha1.MachineSetStatusFields
	// Validate checks whether the set may have the given number of machines; its errors are at spec.replicas.
	Validate func(obj T, replicas int32) field.ErrorList
}

// scaleREST serves the scale subresource: the size of a set that takes its machines from a machine
// class.
type scaleREST[T Object] struct {
	store      *genericregistry.Store
	descriptor *Descriptor[T]
	ledger     *quota.Ledger
}

func (r *scaleREST[T]) limitBy(ledger *quota.Ledger) { r.ledger = ledger }

var (
	_ rest.Patcher                  = &scaleREST[Object]{}
	_ rest.GroupVersionKindProvider = &scaleREST[Object]{}
)

// GroupVersionKind says that the subresource has the type every autoscaler knows.
func (r *scaleREST[T]) GroupVersionKind(schema.GroupVersion) schema.GroupVersionKind {
	return autoscalingv1.SchemeGroupVersion.WithKind("Scale")
}

// New makes an empty Scale.
func (r *scaleREST[T]) New() runtime.Object { return &autoscalingv1.Scale{} }

// Destroy does nothing: the store belongs to the main resource.
func (r *scaleREST[T]) Destroy() {}

// Get returns the scale of any set, also of one with listed machines.
func (r *scaleREST[T]) Get(ctx context.Context, name string, options *metav1.GetOptions) (runtime.Object, error) {
	obj, err := r.store.Get(ctx, name, options)
	if err != nil {
		return nil, err
	}

	return r.descriptor.Scale.of(obj.(T)), nil
}

// Update changes the size. For a set with listed machines or an unlimited size it returns an Invalid error.
func (r *scaleREST[T]) Update(ctx context.Context, name string, info rest.UpdatedObjectInfo,
	validateCreate rest.ValidateObjectFunc, validateUpdate rest.ValidateObjectUpdateFunc, _ bool,
	options *metav1.UpdateOptions,
) (runtime.Object, bool, error) {
	release, err := memory.Retain(ctx)
	if err != nil {
		return nil, false, err
	}
	defer release()

	scale := r.descriptor.Scale
	room := r.ledger.Begin(r.descriptor.Resource(), len(options.DryRun) > 0)

	bounded := &weighed{UpdatedObjectInfo: &scaledObject[T]{UpdatedObjectInfo: info, descriptor: r.descriptor}}
	defer bounded.release()

	obj, _, err := r.store.Update(ctx, name, bounded,
		func(ctx context.Context, obj runtime.Object) error { return validateCreate(ctx, scale.of(obj.(T))) },
		room.Updated(func(ctx context.Context, obj, old runtime.Object) error {
			return validateUpdate(ctx, scale.of(obj.(T)), scale.of(old.(T)))
		}), false, options)
	room.Done(obj, err)

	if err != nil {
		return nil, false, explainTooLarge(err)
	}

	return scale.of(obj.(T)), false, nil
}

// ConvertToTable prints the scale as the main resource's default does.
func (r *scaleREST[T]) ConvertToTable(ctx context.Context, obj, options runtime.Object) (*metav1.Table, error) {
	return rest.NewDefaultTableConvertor(r.descriptor.Resource()).ConvertToTable(ctx, obj, options)
}

// of is the scale that an object stands for.
func (s *Scale[T]) of(obj T) *autoscalingv1.Scale {
	status := s.Status(obj)

	return &autoscalingv1.Scale{
		ObjectMeta: metav1.ObjectMeta{
			Name:              obj.GetName(),
			Namespace:         obj.GetNamespace(),
			UID:               obj.GetUID(),
			ResourceVersion:   obj.GetResourceVersion(),
			CreationTimestamp: obj.GetCreationTimestamp(),
		},
		Spec:   autoscalingv1.ScaleSpec{Replicas: s.replicas(obj)},
		Status: autoscalingv1.ScaleStatus{Replicas: status.Replicas, Selector: status.Selector},
	}
}

// replicas returns the requested size. For an unlimited class that is the current size.
func (s *Scale[T]) replicas(obj T) int32 {
	count, unlimited := askedFor(s.Machines(obj))
	if unlimited {
		return s.Status(obj).Replicas
	}

	return count
}

// scaledObject turns the update of a scale into the update of the object behind it.
type scaledObject[T Object] struct {
	rest.UpdatedObjectInfo

	descriptor *Descriptor[T]
}

// UpdatedObject applies the client's change to the scale, and copies the result, with its field ownership, to the
// object.
func (s *scaledObject[T]) UpdatedObject(ctx context.Context, old runtime.Object) (runtime.Object, error) {
	updated, ok := old.DeepCopyObject().(T)
	if !ok {
		return nil, apierrors.NewInternalError(fmt.Errorf("%T is not an %s", old, s.descriptor.Kind))
	}

	ownership := managedfields.NewScaleHandler(updated.GetManagedFields(), v1alpha1.SchemeGroupVersion,
		managedfields.ResourcePathMappings{
			v1alpha1.SchemeGroupVersion.String(): fieldpath.MakePathOrDie("spec", "machineClass", "size"),
		})

	before := s.descriptor.Scale.of(updated)

	var err error
	if before.ManagedFields, err = ownership.ToSubresource(); err != nil {
		return nil, fmt.Errorf("read field ownership: %w", err)
	}

	wanted, err := s.UpdatedObjectInfo.UpdatedObject(ctx, before)
	if err != nil {
		return nil, err
	}

	scale, ok := wanted.(*autoscalingv1.Scale)
	if !ok {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("expected a Scale, got %T", wanted))
	}

	if err := s.apply(updated, scale); err != nil {
		return nil, err
	}

	entries, err := ownership.ToParent(scale.ManagedFields)
	if err != nil {
		return nil, fmt.Errorf("write field ownership: %w", err)
	}

	updated.SetManagedFields(entries)

	return updated, nil
}

func (s *scaledObject[T]) apply(obj T, scale *autoscalingv1.Scale) error {
	if scale.UID != "" && scale.UID != obj.GetUID() {
		return apierrors.NewConflict(s.descriptor.Resource(), obj.GetName(),
			errors.New("the object was deleted and made again: its UID is another one now"))
	}

	// A scale without a resource version changes the object whatever its version.
	if scale.ResourceVersion != "" {
		obj.SetResourceVersion(scale.ResourceVersion)
	}

	// A scale that was read and written back changes nothing, so every set accepts it.
	if scale.Spec.Replicas == s.descriptor.Scale.replicas(obj) {
		return nil
	}

	if errs := s.descriptor.Scale.Validate(obj, scale.Spec.Replicas); len(errs) > 0 {
		return apierrors.NewInvalid(autoscalingv1.SchemeGroupVersion.WithKind("Scale").GroupKind(), obj.GetName(), errs)
	}

	s.descriptor.Scale.Machines(obj).MachineClass.Size = &intstr.IntOrString{Type: intstr.Int, IntVal: scale.Spec.Replicas}

	return nil
}

// MachineSetColumns are the columns that only the kinds that stand for a machine set have.
func MachineSetColumns[T Object](scale *Scale[T]) []Column[T] {
	return []Column[T]{
		ClusterColumn[T](),
		{
			Name:        "Desired",
			Description: "Number of machines asked for.",
			Cell:        func(obj T) any { return desired(scale.Machines(obj)) },
		},
		{
			Name:        "Ready Machines",
			Type:        "integer",
			Description: "Number of machines that are ready.",
			Cell:        func(obj T) any { return int64(scale.Status(obj).ReadyReplicas) },
		},
		{
			Name:        "Class",
			Description: "Machine class that the machines come from; none where they are listed.",
			Cell:        func(obj T) any { return className(scale.Machines(obj)) },
		},
	}
}

// askedFor is how many machines a set asks for: the size of its machine class, or the number of listed machines. A size that cannot
// be read is 0.
func askedFor(machines *v1alpha1.MachineSetMachines) (count int32, unlimited bool) {
	if machines.MachineClass == nil {
		return int32(len(machines.Machines)), false //nolint:gosec // validation bounds the list
	}

	count, unlimited, _ = machines.MachineClass.Count()

	return count, unlimited
}

func desired(machines *v1alpha1.MachineSetMachines) string {
	count, unlimited := askedFor(machines)
	if unlimited {
		return v1alpha1.UnlimitedSize
	}

	return strconv.Itoa(int(count))
}

func className(machines *v1alpha1.MachineSetMachines) string {
	if machines.MachineClass == nil {
		return none
	}

	return machines.MachineClass.Name
}
