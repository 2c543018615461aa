package app

import (
	"time"

	"github.com/spf13/pflag"
)

const (
	// shutdownDelayFlag is a flag of the library.
	shutdownDelayFlag = "shutdown-delay-duration"

	// replicaShutdownDelay is how long one of several replicas goes on serving after /readyz fails, by default. In
	// the first half load balancers notice that; in the second half clients are sent to other replicas.
	replicaShutdownDelay = 10 * time.Second
)

// addServerFlags adds the library's flags about serving, with help texts that say what is different here.
func (o *Options) addServerFlags(flags *pflag.FlagSet) {
	o.Server.AddUniversalFlags(flags)

	flags.Lookup(shutdownDelayFlag).Usage = "How long to go on serving after SIGTERM while /readyz fails. In the first half " +
		"of it load balancers notice; in the second half clients are asked to take their connections to another replica. " +
		"Default: 10s with --etcd-servers, none with --etcd-data-dir, where there is no other replica."
	o.shutdownDelayGiven = func() bool { return flags.Changed(shutdownDelayFlag) }
}

// completeShutdown sets the default shutdown delay. With an external etcd there can be other replicas, which take
// over during the delay. With the embedded etcd there are none, and a delay would only make the interruption longer.
func (o *Options) completeShutdown() {
	if o.shutdownDelayGiven != nil && o.shutdownDelayGiven() {
		return
	}

	if len(o.Storage.StorageConfig.Transport.ServerList) > 0 {
		o.Server.ShutdownDelayDuration = replicaShutdownDelay
	}
}
