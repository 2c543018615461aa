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

// socket is where etcd listens. It lies in the data directory, whose mode keeps other users out. If the path would be
// too long for a socket, it lies in a private temporary directory, and a link in the data directory leads other
// processes there.
type socket struct {
	path      string
	link      string
	temporary string
}

func newSocket(dataDir string) (*socket, error) {
	path := filepath.Join(dataDir, socketName)

	// A killed process left this socket. Nobody listens on it: the directory is locked.
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("remove an old socket: %w", err)
	}

	if len(path) <= maxSocketPath {
		return &socket{path: path}, nil
	}

	dir, err := os.MkdirTemp("", "omni-etcd-")
	if err != nil {
		return nil, fmt.Errorf("make a directory for the socket: %w", err)
	}

	s := &socket{path: filepath.Join(dir, socketName), temporary: dir}
	if err := os.Symlink(s.path, path); err != nil {
		return s, fmt.Errorf("link the socket into the data directory: %w", err)
	}

	s.link = path

	return s, nil
}

func (s *socket) remove() error {
	if s == nil || s.temporary == "" {
		return nil
	}

	if err := os.RemoveAll(s.temporary); err != nil {
		return fmt.Errorf("remove the directory of the socket: %w", err)
	}

	if err := os.Remove(s.link); err != nil && s.link != "" && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("remove the link to the socket: %w", err)
	}

	return nil
}

// EndpointOf returns the endpoint by which another process reaches the server that runs on the directory. It fails if
// no server was ever started there; that a server was killed shows only when the endpoint is dialed. The process must
// run as the same user, or as root.
func EndpointOf(dataDir string) (string, error) {
	path, err := filepath.Abs(filepath.Join(dataDir, socketName))
	if err != nil {
		return "", fmt.Errorf("find the etcd data directory: %w", err)
	}

	target, err := filepath.EvalSymlinks(path)

	switch {
	case errors.Is(err, os.ErrNotExist):
		return "", fmt.Errorf("no omni-apiserver runs with --etcd-data-dir=%s: give the directory of the running "+
			"one, in the same container", dataDir)
	case err != nil:
		return "", fmt.Errorf("find the socket of etcd: %w", err)
	case len(path) <= maxSocketPath:
		return endpointStart + path, nil
	}

	return endpointStart + target, nil
}
