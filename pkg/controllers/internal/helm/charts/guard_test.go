package charts

import (
	"errors"
	"net/netip"
	"testing"
)

func TestGuard(t *testing.T) {
	loopback := []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}

	for _, test := range []struct {
		address string
		allowed []netip.Prefix
		kind    string // empty: may be dialled
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
	} {
		t.Run(test.address, func(t *testing.T) {
			err := guard{allowed: test.allowed}.check(netip.MustParseAddr(test.address))

			var forbidden *forbiddenAddressError

			switch {
			case test.kind == "" && err != nil:
				t.Errorf("refused: %v", err)
			case test.kind != "" && !errors.As(err, &forbidden):
				t.Errorf("got %v, want a refusal", err)
			case test.kind != "" && forbidden.kind != test.kind:
				t.Errorf("refused as %s, want %s", forbidden.kind, test.kind)
			}
		})
	}
}
