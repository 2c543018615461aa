package embeddedetcd

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

const (
	socketName = "etcd.sock"
	// maxSocketPath is what fits into a sockaddr_un everywhere (104 bytes on BSD, 108 on Linux).
	maxSocketPath = 103
	endpointStart = "unix://"
)

// newSocket returns the path at which etcd listens. It lies in the data directory, whose mode keeps other users out.
func newSocket(dataDir string) (string, error) {
	path := filepath.Join(dataDir, socketName)
	if len(path) > maxSocketPath {
		return "", fmt.Errorf("%s is too long for a socket: give an --etcd-data-dir of at most %d bytes", path, maxSocketPath-len("/"+socketName))
	}

	// A killed process left this socket. Nobody listens on it: the directory is locked.
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", fmt.Errorf("remove an old socket: %w", err)
	}

	return path, nil
}

// EndpointOf returns the endpoint by which another process reaches the server that runs on the directory. It fails if
// no server was ever started there; that a server was killed shows only when the endpoint is dialed. The process must
// run as the same user, or as root.
func EndpointOf(dataDir string) (string, error) {
	path, err := filepath.Abs(filepath.Join(dataDir, socketName))
	if err != nil {
		return "", fmt.Errorf("find the etcd data directory: %w", err)
	}

	switch _, err := os.Stat(path); {
	case errors.Is(err, os.ErrNotExist):
		return "", fmt.Errorf("no omni-apiserver runs with --etcd-data-dir=%s: give the directory of the running "+
			"one, in the same container", dataDir)
	case err != nil:
		return "", fmt.Errorf("find the socket of etcd: %w", err)
	}

	return endpointStart + path, nil
}
