package dialguard

import (
	"fmt"
	"net/netip"
	"slices"
)

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
