package embeddedetcd

import (
	"errors"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/status"
)

// noSpaceRemedy is added after etcd's own text, which clients search for.
const noSpaceRemedy = ": the database of omni-apiserver is full. Reading works, and so does deleting objects without " +
	"finalizers; free space comes back by itself, mostly within a minute. To write again at once, start omni-apiserver with a " +
	"higher --etcd-quota-backend-bytes"

// withRemedy adds the remedy to the error of a write that was refused for space, because users see that error unchanged.
// It returns other errors as they are.
func withRemedy(err error) error {
	if err == nil || !errors.Is(rpctypes.Error(err), rpctypes.ErrNoSpace) {
		return err
	}

	known := status.Convert(err)

	return status.Error(known.Code(), known.Message()+noSpaceRemedy) // gRPC's own error
}
