// Package dialguard decides to which addresses the controller connects: users name
// endpoints of Omni, workload clusters, proxies and chart repositories, and must not
// reach through it what only its own machine or its own network may reach.
//
// What counts is the address of a connection when it is made. A name that leads
// elsewhere at the next look, and a redirect, change nothing.
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

// special is the kind of an address that has nothing to do with a service on a
// network; empty for all others, private ones included.
func special(address netip.Addr) string {
	switch {
	case slices.Contains(metadata(), address):
		return kindMetadata
	case address.IsLoopback():
		return kindLoopback
	case address.IsLinkLocalUnicast():
		return kindLinkLocal
	case address.IsMulticast():
		return kindMulticast
	case address.IsUnspecified(), netip.MustParsePrefix("0.0.0.0/8").Contains(address):
		return kindUnspecified
	case address == netip.AddrFrom4([4]byte{255, 255, 255, 255}):
		return kindBroadcast
	default:
		return ""
	}
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

// embeddedIPv4 finds the IPv4 address in an IPv6 address that leads to one.
func embeddedIPv4(address netip.Addr) (netip.Addr, bool) {
	if !address.Is6() {
		return netip.Addr{}, false
	}

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

// ParseNetworks reads networks in CIDR notation, such as 10.0.0.0/8. The error names
// the text that is none.
func ParseNetworks(texts []string) ([]netip.Prefix, error) {
	networks := make([]netip.Prefix, 0, len(texts))

	for _, text := range texts {
		network, err := netip.ParsePrefix(text)
		if err != nil {
			return nil, fmt.Errorf("%q is not a network such as 10.0.0.0/8, or 10.1.2.3/32 for one address", text)
		}

		// Addresses are compared in their own form: an IPv4 network in IPv6 form would match nothing.
		if address := network.Addr(); address.Is4In6() && network.Bits() >= 96 {
			network = netip.PrefixFrom(address.Unmap(), network.Bits()-96)
		}

		networks = append(networks, network.Masked())
	}

	return networks, nil
}
