package embeddedetcd

import (
	"context"
	"errors"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc"
	"google.golang.org/grpc/status"
)

// noSpaceRemedy follows etcd's own words, which clients look for.
const noSpaceRemedy = ": the database of omni-apiserver is full. Reading works, and so does deleting objects without " +
	"finalizers; free space comes back by itself, mostly within a minute. To write again at once, start omni-apiserver with a " +
	"higher --etcd-quota-backend-bytes"

// explainNoSpace adds the remedy to the error that every refused write returns, since it goes
// through to the user's terminal as it is.
func explainNoSpace(ctx context.Context, request any, _ *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
	response, err := handle(ctx, request)
	if err == nil || !errors.Is(rpctypes.Error(err), rpctypes.ErrNoSpace) {
		return response, err
	}

	known := status.Convert(err)

	return response, status.Error(known.Code(), known.Message()+noSpaceRemedy) // gRPC's own error
}
