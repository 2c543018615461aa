package answer

import (
	"errors"
	"net/http"
)

// ErrProtocol is the error for an answer that switches to another protocol.
var ErrProtocol = errors.New("the server switches to another protocol, which nobody asked for")

// CheckProtocol refuses an answer that switches to another protocol (101), and closes it. Its body is the bare connection:
// no length bounds it, and the end of the request's context does not close it. The error is ErrProtocol.
func CheckProtocol(response *http.Response) error {
	if response.StatusCode != http.StatusSwitchingProtocols {
		return nil
	}

	_ = response.Body.Close()

	return ErrProtocol
}
