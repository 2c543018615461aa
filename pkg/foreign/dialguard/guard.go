package dialguard

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"syscall"
	"time"
)

// keepAlive is how often a connection that is silent is checked.
const keepAlive = 30 * time.Second

// The kinds of addresses that are refused.
const (
	kindMetadata    = "metadata"
	kindLoopback    = "loopback"
	kindLinkLocal   = "link-local"
	kindMulticast   = "multicast"
	kindUnspecified = "unspecified"
	kindBroadcast   = "broadcast"
	kindDenied      = "denied"
)

// ForbiddenError is an address that may not be dialled.
type ForbiddenError struct {
	// Address is the address; one that stands inside an IPv6 address is shown by itself.
	Address netip.Addr
	// Kind says why: loopback, link-local, metadata, multicast, unspecified, broadcast or denied.
	Kind string
}

// Error names the address, why it is refused, and the flag that decides.
func (e *ForbiddenError) Error() string {
	if e.Kind == kindDenied {
		return fmt.Sprintf("leads to the address %s, to which the controller does not connect: its flag --denied-networks names it", e.Address)
	}

	return fmt.Sprintf("leads to the %s address %s, to which the controller does not connect: its flag --allowed-networks names exceptions", e.Kind, e.Address)
}

// Guard decides which addresses may be dialled. The zero value refuses loopback,
// link-local, multicast, unspecified, broadcast and cloud metadata addresses. It must
// not be changed while it is in use.
type Guard struct {
	// Allowed are exceptions: they may be dialled, whatever else says no.
	Allowed []netip.Prefix
	// Denied are refused besides what is always refused.
	Denied []netip.Prefix
}

// Check returns a *ForbiddenError for an address that may not be dialled.
func (g Guard) Check(address netip.Addr) error {
	address = address.Unmap().WithZone("")

	if within(g.Allowed, address) {
		return nil
	}

	if within(g.Denied, address) {
		return &ForbiddenError{Address: address, Kind: kindDenied}
	}

	if inner, ok := embeddedIPv4(address); ok {
		return g.Check(inner)
	}

	if kind := special(address); kind != "" {
		return &ForbiddenError{Address: address, Kind: kind}
	}

	return nil
}

// CheckHost is Check for a host of a URL if it is an address; nil for a name, which
// is decided about when it is dialled. It is for what a proxy will connect to.
func (g Guard) CheckHost(host string) error {
	address, err := netip.ParseAddr(host)
	if err != nil {
		return nil // a name
	}

	return g.Check(address)
}

// Dialer returns a dialer whose attempts end after the timeout, and which refuses
// what Check refuses, for each address that a name leads to. Its errors then wrap a
// *ForbiddenError.
func (g Guard) Dialer(timeout time.Duration) *net.Dialer {
	return &net.Dialer{Timeout: timeout, KeepAlive: keepAlive, Control: g.control}
}

// control is called with the resolved address of each connection, before the
// first packet. What it refuses is not dialled.
func (g Guard) control(_, address string, _ syscall.RawConn) error {
	parsed, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("read the address to dial: %w", err)
	}

	return g.Check(parsed.Addr())
}

func within(networks []netip.Prefix, address netip.Addr) bool {
	return slices.ContainsFunc(networks, func(p netip.Prefix) bool { return p.Contains(address) })
}
