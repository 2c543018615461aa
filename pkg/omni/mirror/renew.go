package mirror

import (
	"errors"
	"time"

	"github.com/cosi-project/runtime/pkg/resource"
)

// errRenewed ends a watch that is opened again although no error was reported. A proxy between us and Omni may keep a
// stream open through which no events come any more, and answer its keepalives. Single calls still succeed, so nothing
// else detects this.
var errRenewed = errors.New("opened anew")

// renewals request that watches be opened again, by type.
type renewals map[resource.Type]chan struct{}

func newRenewals(kinds []mirroredKind) renewals {
	asked := renewals{}
	for _, kind := range kinds {
		asked[kind.resourceType] = make(chan struct{}, 1)
	}

	return asked
}

// ask requests that a type's watch be opened again, unless a request is pending.
func (r renewals) ask(resourceType resource.Type) {
	select {
	case r[resourceType] <- struct{}{}:
	default:
	}
}

// renewable reports whether a watch that was opened then is old enough to open again: one that is younger than the
// timeout of a write was opened after that write, and its first contents show it.
func (m *Mirror) renewable(opened time.Time) bool {
	return m.options.Now().Sub(opened) >= m.options.WriteVisibleTimeout
}
