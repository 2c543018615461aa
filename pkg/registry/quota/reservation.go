package quota

import (
	"context"
	"fmt"
	"maps"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/registry/rest"
)

const (
	// countTimeout is how long a write after a start waits until everything stored has been counted.
	countTimeout = 10 * time.Second

	// smallUpdate is how many bytes a suspension, an approval or the confirmation of a deletion may add, with the ownership
	// of its fields. Such updates may go a tenth above a limit: what others have stored must not keep a user from them.
	smallUpdate         = 4 << 10
	smallUpdateInTenths = 1
	// upkeepInTenths is how far above a limit, in tenths of it, updates may go that change neither spec, labels nor
	// annotations: controllers add finalizers and field ownership, and must not be stuck in a full namespace.
	upkeepInTenths = 2
)

// Reservation is the room that is reserved for one write. A nil Reservation limits nothing.
type Reservation struct {
	ledger *Ledger
	kind   schema.GroupResource
	dryRun bool

	key   key
	bytes int64 // of the object as it will be
	held  Use
}

// Begin starts a write. A dry run gets the same answers and reserves nothing.
func (l *Ledger) Begin(kind schema.GroupResource, dryRun bool) *Reservation {
	if l == nil {
		return nil
	}

	return &Reservation{ledger: l, kind: kind, dryRun: dryRun}
}

// Created reserves room for a new object, after all other validation.
func (r *Reservation) Created(validate rest.ValidateObjectFunc) rest.ValidateObjectFunc {
	if r == nil {
		return validate
	}

	return func(ctx context.Context, obj runtime.Object) error {
		if err := validate(ctx, obj); err != nil {
			return err
		}

		accessor, err := meta.Accessor(obj)
		if err != nil {
			return apierrors.NewInternalError(err)
		}

		return r.reserve(ctx, accessor, obj, Use{Objects: 1}, noOverdraft)
	}
}

// Updated reserves room for a change, after all other validation. A change that does not make the object larger needs
// none.
func (r *Reservation) Updated(validate rest.ValidateObjectUpdateFunc) rest.ValidateObjectUpdateFunc {
	if r == nil {
		return validate
	}

	return func(ctx context.Context, obj, old runtime.Object) error {
		if err := validate(ctx, obj, old); err != nil {
			return err
		}

		updated, err := meta.Accessor(obj)
		if err != nil {
			return apierrors.NewInternalError(err)
		}

		previous, err := meta.Accessor(old)
		if err != nil {
			return apierrors.NewInternalError(err)
		}

		before, err := r.before(previous, old)
		if err != nil {
			return apierrors.NewInternalError(err)
		}

		return r.reserve(ctx, updated, obj, Use{Bytes: -before}, overdraft(isMetadataOnly(updated, previous)))
	}
}

// isMetadataOnly reports whether an update changes only finalizers, owners and field ownership.
func isMetadataOnly(updated, previous metav1.Object) bool {
	return updated.GetGeneration() == previous.GetGeneration() &&
		maps.Equal(updated.GetLabels(), previous.GetLabels()) && maps.Equal(updated.GetAnnotations(), previous.GetAnnotations())
}

// overdraft returns how far above a limit an update may go that adds so many bytes, in tenths of the limit.
func overdraft(upkeep bool) func(added int64) int64 {
	return func(added int64) int64 {
		switch {
		case upkeep:
			return upkeepInTenths
		case added <= smallUpdate:
			return smallUpdateInTenths
		default:
			return 0
		}
	}
}

func noOverdraft(int64) int64 { return 0 }

// before is the size of the object as it is stored.
func (r *Reservation) before(previous metav1.Object, old runtime.Object) (int64, error) {
	if bytes, counted := r.ledger.bytesAt(keyOf(r.kind.Resource, previous), versionOf(previous.GetResourceVersion())); counted {
		return bytes, nil
	}

	return r.ledger.size(old)
}

// reserve reserves room for the object, or returns an error that explains why there is none. change is what the write
// adds besides the object's own size.
func (r *Reservation) reserve(ctx context.Context, accessor metav1.Object, obj runtime.Object, change Use, overdraft func(added int64) int64) error {
	bytes, err := r.ledger.size(obj)
	if err != nil {
		return apierrors.NewInternalError(err)
	}

	change.Bytes += bytes
	r.release() // an update is tried again if the object has changed meanwhile
	r.key, r.bytes = keyOf(r.kind.Resource, accessor), bytes

	if change.Objects <= 0 && change.Bytes <= 0 {
		return nil
	}

	if err := r.ledger.waitUntilCounted(ctx); err != nil {
		return err
	}

	r.ledger.mu.Lock()
	defer r.ledger.mu.Unlock()

	if refusal := r.ledger.refusal(r.key.namespace, change, overdraft(change.Bytes)); refusal != "" {
		return apierrors.NewForbidden(r.kind, r.key.name, fmt.Errorf("%s", refusal))
	}

	if !r.dryRun {
		r.held = change
		r.ledger.hold(r.key.namespace, change)
	}

	return nil
}

// waitUntilCounted waits until the ledger knows what a limit may be compared with. Clients retry after its error by themselves.
func (l *Ledger) waitUntilCounted(ctx context.Context) error {
	if l.limits == (Limits{}) {
		return nil
	}

	ctx, cancel := context.WithTimeout(ctx, countTimeout)
	defer cancel()

	if err := l.WaitForAll(ctx); err != nil {
		return apierrors.NewTooManyRequests(err.Error(), 1)
	}

	return nil
}

// refusal names the limit that the change would exceed, and counts that; empty if there is none. The caller holds the lock.
func (l *Ledger) refusal(namespace string, change Use, tenths int64) string {
	for _, bound := range l.limits.Each() {
		at, where := l.total, "all namespaces"
		if bound.perNamespace {
			at, where = l.namespaces[namespace], "namespace "+namespace
		}

		requested, used := bound.of(change), bound.of(at.used.plus(at.held))
		if bound.Value == 0 || requested <= 0 || used+requested <= bound.Value+bound.Value/10*tenths {
			continue
		}

		l.refused[bound.Flag]++

		remedy := bound.Flag + " of omni-apiserver raised"
		if bound.Flag == etcdQuotaFlag {
			remedy += ", half of which is the limit"
		}

		return fmt.Sprintf("exceeded quota: %s, requested: %s=%d, used: %[2]s=%[4]d, limited: %[2]s=%[5]d: delete objects that nobody "+
			"needs, or have %[6]s", where, bound.unit, requested, used, bound.Value, remedy)
	}

	return ""
}

// Done ends the write. Without an error the stored object counts from now on.
func (r *Reservation) Done(stored runtime.Object, err error) {
	if r == nil {
		return
	}

	r.ledger.mu.Lock()
	defer r.ledger.mu.Unlock()

	r.give()

	if err != nil || r.dryRun || r.bytes == 0 {
		return
	}

	// If the watch is beyond this version, it has counted the write already, and any later write too.
	accessor, err := meta.Accessor(stored)
	if err != nil {
		return
	}

	if version := versionOf(accessor.GetResourceVersion()); version > r.ledger.seen[r.key.resource] {
		r.ledger.set(r.key, r.bytes, version)
	}
}

func (r *Reservation) release() {
	r.ledger.mu.Lock()
	defer r.ledger.mu.Unlock()

	r.give()
}

// give releases the reservation. The caller holds the lock.
func (r *Reservation) give() {
	if r.held != (Use{}) {
		r.ledger.hold(r.key.namespace, Use{}.minus(r.held))
		r.held = Use{}
	}
}
