package mirror

import (
	"errors"
	"time"

	"github.com/cosi-project/runtime/pkg/resource"
)

// errRenewed ends a watch that is opened anew although nobody has said that it was lost. Whatever stands between us and
// Omni may keep a stream open that nothing comes through any more, and answer its keepalive; single calls go through all
// the same, so nothing else notices.
var errRenewed = errors.New("opened anew")

// renewals ask watches to be opened anew, by type.
type renewals map[resource.Type]chan struct{}

func newRenewals(kinds []mirroredKind) renewals {
	asked := renewals{}
	for _, kind := range kinds {
		asked[kind.resourceType] = make(chan struct{}, 1)
	}

	return asked
}

// ask has a type's watch opened anew, unless that was asked for already.
func (r renewals) ask(resourceType resource.Type) {
	select {
	case r[resourceType] <- struct{}{}:
	default:
	}
}

// renewable reports whether a watch that was opened then is worth opening anew: one that is younger than our timeout for
// a write has shown more than the watch that is complained of.
func (m *Mirror) renewable(opened time.Time) bool {
	return m.options.Now().Sub(opened) >= m.options.WriteVisibleTimeout
}
