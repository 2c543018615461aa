package omnisim

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"strconv"
	"syscall"
)

// Free ports are below the range from which systems choose ports for outgoing connections and for listeners on port 0
// (32768 and up), so that no other program gets the port of a server that is down and will come back.
const (
	firstPort    = 20000
	portCount    = 12000
	portAttempts = 200
)

// listen listens on the address. Port 0 stands for a free one.
func listen(address string) (net.Listener, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}

	config := &net.ListenConfig{}
	if port != "0" {
		return config.Listen(context.Background(), "tcp", address)
	}

	for range portAttempts {
		number := firstPort + rand.IntN(portCount)

		var listener net.Listener

		listener, err = config.Listen(context.Background(), "tcp", net.JoinHostPort(host, strconv.Itoa(number)))
		if !errors.Is(err, syscall.EADDRINUSE) {
			return listener, err
		}
	}

	return nil, err
}
