package omnisecretsync

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// replacements has what this process has deleted to make it again, until it has: by object, the last. It is safe for concurrent use.
type replacements struct{ known sync.Map }

// replacement is a Secret that was deleted to be made again.
type replacement struct {
	uid   types.UID // of the object
	where location
	at    time.Time
}

// begin is called before the Secret is deleted.
func (r *replacements) begin(s *scope, where location, now time.Time) {
	r.known.Store(client.ObjectKeyFromObject(s.sync), replacement{uid: s.sync.UID, where: where, at: now})
}

// of returns the replacement of the Secret at a location; nil if none is under way.
func (r *replacements) of(s *scope, where location) *replacement {
	known, _ := r.known.Load(client.ObjectKeyFromObject(s.sync))

	found, ok := known.(replacement)
	if !ok || found.uid != s.sync.UID || found.where != where {
		return nil
	}

	return &found
}

// over is called when the Secret is there.
func (r *replacements) over(name types.NamespacedName) { r.known.Delete(name) }

// isFresh reports whether the replacement began so short a time ago that the Secret may be made again without another look at Omni.
func (r *replacement) isFresh(now time.Time) bool { return r != nil && now.Sub(r.at) < locationTimeout }
