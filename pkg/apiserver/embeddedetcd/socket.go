package embeddedetcd

import (
	"fmt"
	"os"
	"path/filepath"
)

const (
	socketName = "etcd.sock"
	// maxSocketPath is what fits into a sockaddr_un everywhere (104 bytes on BSD, 108 on Linux).
	maxSocketPath = 103
)

// socket is where etcd listens: in the data directory, whose mode keeps other users out, or in a
// private temporary directory where the path of the data directory is too long for a socket.
type socket struct {
	path      string
	temporary string
}

func newSocket(dataDir string) (*socket, error) {
	if path := filepath.Join(dataDir, socketName); len(path) <= maxSocketPath {
		return &socket{path: path}, nil
	}

	dir, err := os.MkdirTemp("", "omni-etcd-")
	if err != nil {
		return nil, fmt.Errorf("make a directory for the socket: %w", err)
	}

	return &socket{path: filepath.Join(dir, socketName), temporary: dir}, nil
}

func (s *socket) remove() error {
	if s == nil || s.temporary == "" {
		return nil
	}

	if err := os.RemoveAll(s.temporary); err != nil {
		return fmt.Errorf("remove the directory of the socket: %w", err)
	}

	return nil
}
