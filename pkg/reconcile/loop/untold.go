package loop

import (
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// maxUntold is of how many objects is kept what users were told last: one takes up to some 100 KiB, and while the API is away all of
// them may have something new. Of further ones the events are missing.
const maxUntold = 500

// untold keeps what users were told of last, for objects of which it is not known whether their status was written: the API may have
// taken a write whose answer was lost. The next write then tells of all that is new since.
type untold[O Object] struct {
	mu   sync.Mutex
	kept map[types.NamespacedName]O
}

func newUntold[O Object]() *untold[O] { return &untold[O]{kept: map[types.NamespacedName]O{}} }

// keep records that a write had no answer. The object is as users were told of it last.
func (u *untold[O]) keep(object O) {
	u.mu.Lock()
	defer u.mu.Unlock()

	name := client.ObjectKeyFromObject(object)
	if _, known := u.kept[name]; known || len(u.kept) < maxUntold {
		u.kept[name] = object
	}
}

// find returns an object as users were told of it last, and whether that is not the state that the API has.
func (u *untold[O]) find(stored O) (told O, differs bool) {
	u.mu.Lock()
	defer u.mu.Unlock()

	kept, found := u.kept[client.ObjectKeyFromObject(stored)]
	if !found || kept.GetUID() != stored.GetUID() {
		return stored, false
	}

	return kept, true
}

// forget removes what is kept about an object: users were told, or it no longer exists.
func (u *untold[O]) forget(name types.NamespacedName) {
	u.mu.Lock()
	defer u.mu.Unlock()

	delete(u.kept, name)
}

// mayBeWritten reports whether a write may have taken effect although it failed.
func mayBeWritten(err error) bool {
	return !apierrors.IsConflict(err) && !apierrors.IsInvalid(err) && !apierrors.IsForbidden(err)
}
