package env

import (
	"context"
	"errors"
	"net"
	"path/filepath"
	"strconv"
	"testing"
	"time"
)

func TestReservePort(t *testing.T) {
	seen := map[int]bool{}

	for range 50 {
		p, err := reservePort()
		if err != nil {
			t.Fatal(err)
		}
		defer p.release()

		if p.number < 20000 || p.number >= 32000 {
			t.Errorf("port %d may be taken by an outgoing connection", p.number)
		}

		if seen[p.number] {
			t.Errorf("port %d was reserved twice", p.number)
		}

		seen[p.number] = true

		if want := "127.0.0.1:" + strconv.Itoa(p.number); p.address() != want {
			t.Errorf("address %q, want %q", p.address(), want)
		}
	}
}

func TestCanListen(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}

	number := listener.Addr().(*net.TCPAddr).Port
	if canListen(number) {
		t.Errorf("port %d looks free while something listens there", number)
	}

	listener.Close()

	if !canListen(number) {
		t.Errorf("port %d looks taken after its listener went", number)
	}
}

func TestFileLock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")

	first, err := tryLockFile(path)
	if err != nil {
		t.Fatal(err)
	}

	if _, err := tryLockFile(path); !errors.Is(err, errLocked) {
		t.Errorf("second lock: %v, want errLocked", err)
	}

	short, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()

	told := 0
	if _, err := lockFile(short, path, func() { told++ }); !errors.Is(err, context.DeadlineExceeded) || told != 1 {
		t.Errorf("waiting for a held lock: %v, told %d times; want a deadline and once", err, told)
	}

	time.AfterFunc(50*time.Millisecond, first.release)

	second, err := lockFile(t.Context(), path, nil)
	if err != nil {
		t.Fatal(err)
	}

	second.release()
}
