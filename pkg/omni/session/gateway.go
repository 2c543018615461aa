package session

import (
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// noGRPC begins what gRPC says of an answer that is not one of gRPC. The HTTP status is behind it.
const noGRPC = "unexpected HTTP status code received from server: "

// notOfOmni returns the error of an answer that something before Omni gave, such as a gateway without a route. gRPC takes HTTP 401,
// 403 and 404 for answers of Omni to the call, and adds the page, which may differ each time.
func notOfOmni(err error) error {
	said, found := strings.CutPrefix(status.Convert(err).Message(), noGRPC)
	if !found {
		return err
	}

	answer, _, _ := strings.Cut(said, ";")

	return status.Errorf(codes.Unavailable, "what answers at the endpoint, such as a gateway before Omni, is not Omni's API: HTTP %s", answer)
}
