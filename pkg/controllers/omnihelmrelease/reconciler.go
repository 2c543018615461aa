package omnihelmrelease

import (
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// reconciler holds what the phases need.
type reconciler struct {
	live client.Reader
}
