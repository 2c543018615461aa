package env

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
)

// Ports are taken from below the range that Linux hands out to outgoing connections
// (32768 and up), so that no client connection can sit on a port between its reservation
// and the child's bind, or while a child restarts.
const (
	firstPort    = 20000
	portCount    = 12000
	portAttempts = 200
)

// port is a loopback TCP port that this program has reserved against every other program
// using this package. The reservation ends with release or with the program.
type port struct {
	number int
	lock   *fileLock
}

// reservePort finds a port on which nothing listens and reserves it.
func reservePort() (*port, error) {
	// A directory per user: another user's files could not be locked.
	dir := filepath.Join(os.TempDir(), fmt.Sprintf("omni-cluster-operator-ports-%d", os.Getuid()))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("reserve port: %w", err)
	}

	for range portAttempts {
		number := firstPort + rand.IntN(portCount)

		lock, err := tryLockFile(filepath.Join(dir, strconv.Itoa(number)))
		if errors.Is(err, errLocked) {
			continue
		}

		if err != nil {
			return nil, fmt.Errorf("reserve port: %w", err)
		}

		if !canListen(number) {
			lock.release()

			continue
		}

		return &port{number: number, lock: lock}, nil
	}

	return nil, fmt.Errorf("reserve port: %d tries found none free", portAttempts)
}

func (p *port) release() { p.lock.release() }

// address is host and port as a listener wants them.
func (p *port) address() string { return net.JoinHostPort(loopback, strconv.Itoa(p.number)) }

func canListen(number int) bool {
	listener, err := net.Listen("tcp", net.JoinHostPort(loopback, strconv.Itoa(number)))
	if err != nil {
		return false
	}

	return listener.Close() == nil
}
