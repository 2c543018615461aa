package omnisim

import (
	"errors"
	"fmt"
	"net"
	"time"
)

// DefaultPhase is how long one step of the engine takes unless Options.Phase is set: a machine needs four steps from
// nothing to running.
const DefaultPhase = 200 * time.Millisecond

// Options configure a Server. The zero value serves TLS on a free loopback port, with the versions and extensions of
// DefaultCatalogue and an engine that steps by itself.
type Options struct {
	// Address is the loopback address to serve on, host:port. Default: 127.0.0.1 and a free port.
	Address string
	// Plaintext serves gRPC without TLS; the endpoint is then a grpc:// URL.
	Plaintext bool
	// Phase is the time of one engine step. Default: DefaultPhase.
	Phase time.Duration
	// Manual stops the engine's clock: time passes only with Server.Step. Work that needs no time, such as finalizers, is
	// still done at once.
	Manual bool
	// Machines is the number of connected machines to begin with; see Server.AddMachines.
	Machines int
	// Catalogue holds the versions and extensions that exist. Default: DefaultCatalogue.
	Catalogue *Catalogue
	// KubernetesProxyURL is the server in service-account kubeconfigs. Default: the simulator's own
	// Kubernetes proxy; see Server.AttachWorkload.
	KubernetesProxyURL string
	// Logf receives the errors that the engine will retry, such as testing.T.Logf. Default: errors are dropped.
	Logf func(format string, args ...any)
	// AccountName is the name of the Omni account, part of the names in kubeconfigs. Default: omni.
	AccountName string
	// OmniVersion is the version of Omni that is spoken: 1.8, 1.9, 1.11 or 1.14. Default: DefaultVersion. See Server.Upgrade.
	OmniVersion string
	// RefuseConcurrentUpgrades refuses a version of Talos or Kubernetes that changes together with the other one, or while
	// the upgrade of the other one is on its way. Releases of Omni after 1.9.3 do that; which is the first is
	// not known. A simulator of 1.14 always does.
	RefuseConcurrentUpgrades bool
	// EmbeddedDiscovery runs the embedded discovery service, which a cluster may then use.
	EmbeddedDiscovery bool
	// NewerTalos makes Omni know every kind of Talos document that this build does not know, and the kinds of Talos 1.14,
	// which Omni 1.9.3 refuses. It stands for a server that is built with a later Talos than this repository.
	NewerTalos bool
}

func (o Options) complete() (Options, error) {
	if o.Address == "" {
		o.Address = "127.0.0.1:0"
	}

	host, _, err := net.SplitHostPort(o.Address)
	if err != nil {
		return o, fmt.Errorf("address %q: %w", o.Address, err)
	}

	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return o, errors.New("the simulator serves on loopback addresses only")
	}

	if o.Phase < 0 {
		return o, errors.New("phase must not be negative")
	}

	if o.Phase == 0 {
		o.Phase = DefaultPhase
	}

	if o.Catalogue == nil {
		catalogue := DefaultCatalogue()
		o.Catalogue = &catalogue
	}

	if o.Logf == nil {
		o.Logf = func(string, ...any) {}
	}

	if o.OmniVersion == "" {
		o.OmniVersion = DefaultVersion
	}

	if _, err := releaseOf(o.OmniVersion); err != nil {
		return o, err
	}

	if o.AccountName == "" {
		o.AccountName = "omni"
	}

	return o, nil
}
