package apiserver

import (
	"context"
	"fmt"
	"time"

	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/klog/v2"

	"omni.texashpc.com/omni-cluster-operator/pkg/registry/quota"
)

// Server is the API server of omni.texashpc.com.
type Server struct {
	// Generic is the server underneath.
	Generic *genericapiserver.GenericAPIServer
	// Ledger counts what is stored; its Collector has the metrics.
	Ledger *quota.Ledger

	requestGracePeriod time.Duration // as in Config
}

// Run serves until the context ends, and then stops in the library's order: /readyz fails, the shutdown delay passes,
// new requests are refused, running requests finish or are ended after requestGracePeriod, the storage is closed. After Run
// returns, nothing uses the storage any more.
func (s *Server) Run(ctx context.Context) error {
	defer context.AfterFunc(ctx, func() {
		klog.InfoS("Stopping: /readyz fails from now on", "servesFor", s.Generic.ShutdownDelayDuration, "thenFinishesWithin", s.requestGracePeriod)
	})()

	if err := s.Generic.PrepareRun().RunWithContext(ctx); err != nil {
		return fmt.Errorf("serve: %w", err)
	}

	return nil
}
