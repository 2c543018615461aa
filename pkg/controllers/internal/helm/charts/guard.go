package charts

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"syscall"
	"time"
)

// dialTimeout bounds one connection attempt.
const dialTimeout = 10 * time.Second

// forbiddenAddressError is an address that may not be dialled.
type forbiddenAddressError struct {
	address netip.Addr
	kind    string
}

// Error names the address and why it is refused.
func (e *forbiddenAddressError) Error() string {
	return fmt.Sprintf("leads to the %s address %s, which charts may not come from", e.kind, e.address)
}

// guard decides which addresses may be dialled.
type guard struct {
	allowed []netip.Prefix
}

// metadata lists the addresses under which clouds tell a machine its own
// credentials, as far as they are not link-local: AWS (IPv6; of a machine, of a pod in EKS), Google (IPv6),
// Azure, Alibaba, Oracle.
func metadata() []netip.Addr {
	return []netip.Addr{
		netip.MustParseAddr("fd00:ec2::254"),
		netip.MustParseAddr("fd00:ec2::23"),
		netip.MustParseAddr("fd20:ce::254"),
		netip.MustParseAddr("168.63.129.16"),
		netip.MustParseAddr("100.100.100.200"),
		netip.MustParseAddr("192.0.0.192"),
	}
}

// embedded are IPv6 prefixes whose last or middle bits are an IPv4 address.
func embeddedIPv4(address netip.Addr) (netip.Addr, bool) {
	bytes := address.As16()

	switch {
	case netip.MustParsePrefix("64:ff9b::/96").Contains(address): // NAT64
		return netip.AddrFrom4([4]byte(bytes[12:16])), true
	case netip.MustParsePrefix("2002::/16").Contains(address): // 6to4
		return netip.AddrFrom4([4]byte(bytes[2:6])), true
	case netip.MustParsePrefix("::/96").Contains(address) && !address.IsUnspecified() && !address.IsLoopback(): // IPv4-compatible
		return netip.AddrFrom4([4]byte(bytes[12:16])), true
	default:
		return netip.Addr{}, false
	}
}

// check returns a *forbiddenAddressError for an address that may not be dialled.
func (g guard) check(address netip.Addr) error {
	address = address.Unmap().WithZone("")

	if slices.ContainsFunc(g.allowed, func(p netip.Prefix) bool { return p.Contains(address) }) {
		return nil
	}

	if address.Is6() {
		if inner, ok := embeddedIPv4(address); ok {
			return g.check(inner)
		}
	}

	var kind string

	switch {
	case slices.Contains(metadata(), address):
		kind = "metadata"
	case address.IsLoopback():
		kind = "loopback"
	case address.IsLinkLocalUnicast():
		kind = "link-local"
	case address.IsMulticast():
		kind = "multicast"
	case address.IsUnspecified(), netip.MustParsePrefix("0.0.0.0/8").Contains(address):
		kind = "unspecified"
	case address == netip.AddrFrom4([4]byte{255, 255, 255, 255}):
		kind = "broadcast"
	default:
		return nil
	}

	return &forbiddenAddressError{address: address, kind: kind}
}

// control is called with the resolved address of each connection, before the
// first packet. What it refuses is not dialled.
func (g guard) control(_, address string, _ syscall.RawConn) error {
	parsed, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("read the address to dial: %w", err)
	}

	return g.check(parsed.Addr())
}

// dialer returns a dialer that refuses what the guard refuses.
func (g guard) dialer() *net.Dialer {
	return &net.Dialer{Timeout: dialTimeout, Control: g.control}
}
