package foreigntest

import (
	"bytes"
	"net/http"
)

// SwitchProtocols answers a request of HTTP/1.1 with 101, which nobody asked for, and then with zeros without end; or with
// nothing, while the client does not go.
func SwitchProtocols(w http.ResponseWriter, endless bool) {
	connection, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return // the client sees no answer, and the test fails
	}
	defer connection.Close()

	_, err = connection.Write([]byte("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n"))

	for zeros := bytes.Repeat([]byte{0}, 1<<20); endless && err == nil; {
		_, err = connection.Write(zeros)
	}

	_, _ = connection.Read(make([]byte, 1)) // until the client closes it
}
