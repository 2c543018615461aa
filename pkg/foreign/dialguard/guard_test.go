package dialguard_test

import (
	"errors"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"testing"
	"time"

	"omni.texashpc.com/omni-cluster-operator/pkg/foreign/dialguard"
)

func TestGuard(t *testing.T) {
	loopback := []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}

	private := networks(t, "10.0.0.0/8", "fd00::/8", "::ffff:172.16.0.0/108")
	one := networks(t, "10.1.2.3/32")

	for _, test := range []struct {
		address         string
		allowed, denied []netip.Prefix
		kind            string // empty: may be dialled
	}{
		{address: "192.0.2.10"},
		{address: "10.1.2.3"},
		{address: "192.168.0.1"},
		{address: "2001:db8::1"},
		{address: "fd12:3456::1"},
		{address: "127.0.0.1", kind: "loopback"},
		{address: "127.255.0.3", kind: "loopback"},
		{address: "::1", kind: "loopback"},
		{address: "::ffff:127.0.0.1", kind: "loopback"},
		{address: "::127.0.0.1", kind: "loopback"},
		{address: "169.254.169.254", kind: "link-local"},
		{address: "::ffff:169.254.169.254", kind: "link-local"},
		{address: "64:ff9b::169.254.169.254", kind: "link-local"},
		{address: "2002:a9fe:a9fe::1", kind: "link-local"},
		{address: "fe80::1%eth0", kind: "link-local"},
		{address: "fd00:ec2::254", kind: "metadata"},
		{address: "fd00:ec2::23", kind: "metadata"},
		{address: "fd20:ce::254", kind: "metadata"},
		{address: "168.63.129.16", kind: "metadata"},
		{address: "100.100.100.200", kind: "metadata"},
		{address: "0.0.0.0", kind: "unspecified"},
		{address: "0.1.2.3", kind: "unspecified"},
		{address: "::", kind: "unspecified"},
		{address: "224.0.0.1", kind: "multicast"},
		{address: "ff02::1", kind: "multicast"},
		{address: "255.255.255.255", kind: "broadcast"},
		{address: "127.0.0.1", allowed: loopback},
		{address: "::1", allowed: loopback},
		{address: "::ffff:127.0.0.1", allowed: loopback},
		{address: "169.254.169.254", allowed: loopback, kind: "link-local"},
		{address: "10.1.2.3", denied: private, kind: "denied"},
		{address: "::ffff:10.1.2.3", denied: private, kind: "denied"},
		{address: "64:ff9b::10.1.2.3", denied: private, kind: "denied"},
		{address: "fd12:3456::1", denied: private, kind: "denied"},
		{address: "172.16.0.1", denied: private, kind: "denied"},
		{address: "172.32.0.1", denied: private},
		{address: "127.0.0.1", denied: private, kind: "loopback"},
		{address: "10.1.2.3", allowed: one, denied: private},
		{address: "10.1.2.4", allowed: one, denied: private, kind: "denied"},
	} {
		t.Run(test.address, func(t *testing.T) {
			guard := dialguard.Guard{Allowed: test.allowed, Denied: test.denied}
			err := guard.Check(netip.MustParseAddr(test.address))

			var forbidden *dialguard.ForbiddenError

			switch {
			case test.kind == "" && err != nil:
				t.Errorf("refused: %v", err)
			case test.kind != "" && !errors.As(err, &forbidden):
				t.Errorf("got %v, want a refusal", err)
			case test.kind != "" && forbidden.Kind != test.kind:
				t.Errorf("refused as %s, want %s", forbidden.Kind, test.kind)
			}

			if host := guard.CheckHost(test.address); (host == nil) != (err == nil) {
				t.Errorf("as a host of a URL: %v", host)
			}
		})
	}
}

func networks(t *testing.T, texts ...string) []netip.Prefix {
	t.Helper()

	found, err := dialguard.ParseNetworks(texts)
	if err != nil {
		t.Fatal(err)
	}

	return found
}

// A name is decided about when it is dialled, by the address it leads to then.
func TestDialerLooksAtTheAddressThatIsDialled(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() { _ = listener.Close() })

	_, port, _ := net.SplitHostPort(listener.Addr().String())
	if err := (dialguard.Guard{}).CheckHost("localhost"); err != nil {
		t.Errorf("a name: %v", err)
	}

	var forbidden *dialguard.ForbiddenError

	_, err = dialguard.Guard{}.Dialer(time.Minute).DialContext(t.Context(), "tcp", net.JoinHostPort("localhost", port))
	if !errors.As(err, &forbidden) || forbidden.Kind != "loopback" || !strings.Contains(err.Error(), "--allowed-networks") {
		t.Errorf("got %v, want a refusal that names the flag", err)
	}

	_, err = dialguard.Guard{Denied: networks(t, "127.0.0.1/32")}.Dialer(time.Minute).DialContext(t.Context(), "tcp", net.JoinHostPort("127.0.0.1", port))
	if err == nil || !strings.Contains(err.Error(), "--denied-networks") {
		t.Errorf("got %v, want a refusal that names the flag", err)
	}

	connection, err := dialguard.Guard{Allowed: networks(t, "127.0.0.0/8")}.Dialer(time.Minute).DialContext(t.Context(), "tcp", net.JoinHostPort("127.0.0.1", port))
	if err != nil {
		t.Fatalf("an exception: %v", err)
	}

	_ = connection.Close()
}

func TestParseNetworksNamesWhatIsNone(t *testing.T) {
	for _, text := range []string{"10.1.2.3", "10.0.0.0/33", "private", ""} {
		if _, err := dialguard.ParseNetworks([]string{"10.0.0.0/8", text}); err == nil || !strings.Contains(err.Error(), strconv.Quote(text)) {
			t.Errorf("%q: got %v", text, err)
		}
	}
}
