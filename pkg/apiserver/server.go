package apiserver

import (
	"context"
	"fmt"

	genericapiserver "k8s.io/apiserver/pkg/server"
)

// Server is the API server of omni.texashpc.com.
type Server struct {
	// Generic is the server underneath.
	Generic *genericapiserver.GenericAPIServer
}

// Run serves until the context ends, and then stops in the library's order: not ready, the shutdown
// delay, no new requests, running requests finished, storage closed. When it returns, nothing uses
// the storage any more.
func (s *Server) Run(ctx context.Context) error {
	if err := s.Generic.PrepareRun().RunWithContext(ctx); err != nil {
		return fmt.Errorf("serve: %w", err)
	}

	return nil
}
