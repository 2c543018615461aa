package omnihelmrelease

import (
	"fmt"

	"omni.texashpc.com/omni-cluster-operator/pkg/helm"
)

// sheltered makes an error of a panic: what one release makes fail must not end
// the controller with all others. The text of a panic may hold anything.
func sheltered(do func() error) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = &helm.Error{Reason: helm.ReasonFailed, Message: fmt.Sprintf("a fault of the controller stopped this (panic of type %T)", cause)}
		}
	}()

	return do()
}
