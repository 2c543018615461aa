package omnisim

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	cosiv1alpha1 "github.com/cosi-project/runtime/api/v1alpha1"
	"github.com/cosi-project/runtime/pkg/resource"
	"github.com/cosi-project/runtime/pkg/state"
	"github.com/cosi-project/runtime/pkg/state/impl/inmem"
	"github.com/cosi-project/runtime/pkg/state/impl/namespaced"
	cosiserver "github.com/cosi-project/runtime/pkg/state/protobuf/server"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	_ "google.golang.org/grpc/encoding/gzip" // the client library compresses its requests
	"google.golang.org/grpc/keepalive"

	"github.com/siderolabs/omni/client/api/omni/management"
	"github.com/siderolabs/omni/client/pkg/compression"
	"github.com/siderolabs/omni/client/pkg/constants"

	operator "omni.texashpc.com/omni-cluster-operator/pkg/omni"
)

// watchHistory is how many events of one resource type a watch may fall behind before it ends with an error. Omni
// itself keeps a few thousand.
const watchHistory = 20000

// pingsAllowed is the shortest time between two pings of a client. Omni serves gRPC from a plain HTTP server, which
// allows any pings. A gRPC server by default closes connections that ping more often than every five minutes, and the
// client library pings every minute.
const pingsAllowed = time.Second

// Server is a running simulator. Its methods may be called from several goroutines.
type Server struct {
	options   Options
	address   string
	identity  *identity
	resources state.State // everything, unchecked
	checked   state.CoreState
	accounts  *accounts
	journal   *journal
	faults    *faults
	engine    *engine
	version   *speaks
	signer    *tokenSigner
	proxy     *kubernetesProxy

	clockAhead atomic.Int64 // see SetClock

	mu      sync.Mutex
	serving *grpc.Server
	stopped chan struct{} // closed when the current grpc.Server has stopped
}

// Start starts a simulator. Close it to free its address.
func Start(options Options) (*Server, error) {
	options, err := options.complete()
	if err != nil {
		return nil, fmt.Errorf("options of the Omni simulator: %w", err)
	}

	s, err := assemble(options)
	if err != nil {
		return nil, err
	}

	if err = s.engine.start(); err != nil {
		return nil, fmt.Errorf("start engine: %w", err)
	}

	if err = s.serve(options.Address); err != nil {
		s.engine.stop()

		return nil, err
	}

	if err = s.proxy.serve(); err != nil {
		s.Close()

		return nil, err
	}

	if _, err = s.AddMachines(options.Machines); err != nil {
		s.Close()

		return nil, fmt.Errorf("add machines: %w", err)
	}

	return s, nil
}

// assemble returns a simulator that is not running yet.
func assemble(options Options) (*Server, error) {
	operator.RegisterTypes()

	// Resource specs compress large texts only after this has been called once in a process.
	if err := compression.InitConfig(true); err != nil {
		return nil, fmt.Errorf("initialize compression: %w", err)
	}

	resources := state.WrapCore(namespaced.NewState(func(ns resource.Namespace) state.CoreState {
		return newIndexedState(inmem.NewStateWithOptions(inmem.WithHistoryMaxCapacity(watchHistory), inmem.WithHistoryGap(watchHistory/100))(ns))
	}))

	if err := options.Catalogue.store(context.Background(), resources); err != nil {
		return nil, fmt.Errorf("store versions: %w", err)
	}

	identity, err := newIdentity()
	if err != nil {
		return nil, fmt.Errorf("create certificates: %w", err)
	}

	signer, err := newTokenSigner(context.Background(), resources)
	if err != nil {
		return nil, fmt.Errorf("create token signing key: %w", err)
	}

	version := &speaks{}
	s := &Server{
		options:   options,
		version:   version,
		identity:  identity,
		resources: resources,
		checked:   newValidatedState(resources, options, version),
		accounts:  newAccounts(),
		journal:   newJournal(),
		faults:    newFaults(),
		engine:    newEngine(resources, options, version),
		signer:    signer,
	}
	s.proxy = newKubernetesProxy(s)

	first, err := releaseOf(options.OmniVersion)
	if err != nil {
		return nil, err
	}

	if err := s.become(context.Background(), first); err != nil {
		return nil, fmt.Errorf("become Omni %s: %w", options.OmniVersion, err)
	}

	return s, nil
}

// serve listens on the address and answers in the background until GoDown.
func (s *Server) serve(address string) error {
	listener, err := listen(address)
	if err != nil {
		return fmt.Errorf("listen on %s: %w", address, err)
	}

	options := []grpc.ServerOption{
		grpc.MaxRecvMsgSize(constants.GRPCMaxMessageSize),
		grpc.MaxSendMsgSize(constants.GRPCMaxMessageSize),
		grpc.WaitForHandlers(true),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: pingsAllowed, PermitWithoutStream: true}),
		grpc.ChainUnaryInterceptor(s.faults.unary, s.authenticateUnary, s.journal.unary),
		grpc.ChainStreamInterceptor(s.faults.stream, s.authenticateStream, s.journal.stream),
	}

	if !s.options.Plaintext {
		options = append(options, grpc.Creds(credentials.NewTLS(&tls.Config{
			Certificates: []tls.Certificate{s.identity.server},
			MinVersion:   tls.VersionTLS12,
		})))
	}

	serving := grpc.NewServer(options...)
	cosiv1alpha1.RegisterStateServer(serving, cosiserver.NewState(&guardedState{state: s.checked, journal: s.journal, version: s.version}))
	management.RegisterManagementServiceServer(serving, &managementServer{sim: s})

	stopped := make(chan struct{})

	s.mu.Lock()
	s.address, s.serving, s.stopped = listener.Addr().String(), serving, stopped
	s.mu.Unlock()

	go func() {
		defer close(stopped)

		// Serve ends when the server is stopped; other errors have no receiver.
		_ = serving.Serve(listener)
	}()

	return nil
}

// Endpoint returns the URL for client.New: https:// or, for plaintext, grpc://. The client library has no option for a
// CA, so a client that verifies TLS connects to the same address as grpc:// with a TLS dialer.
func (s *Server) Endpoint() string {
	if s.options.Plaintext {
		return "grpc://" + s.Address()
	}

	return "https://" + s.Address()
}

// Address returns the host:port of the server.
func (s *Server) Address() string {
	s.mu.Lock()
	defer s.mu.Unlock()

	return s.address
}

// CAPEM returns the certificate authority of the endpoint, PEM encoded; empty for plaintext.
func (s *Server) CAPEM() []byte {
	if s.options.Plaintext {
		return nil
	}

	return s.identity.caPEM
}

// State returns all resources as an administrator in the web interface sees them: writes are validated, but no role is
// checked, no fault is injected, and nothing is counted or recorded in the journal.
func (s *Server) State() state.State { return state.WrapCore(s.checked) }

// Unchecked returns all resources without validation, to write what Omni would not accept. The engine overwrites what
// it owns; see Pause.
func (s *Server) Unchecked() state.State { return s.resources }

// GoDown closes all connections, including those of the Kubernetes proxy, and stops listening, as a crashed server
// does. Resources stay, and the engine goes on. GoDown returns when no request is under way any more: a request that is
// counted afterwards was sent afterwards. It does nothing if the server is already down.
func (s *Server) GoDown() {
	s.mu.Lock()
	serving, stopped := s.serving, s.stopped
	s.serving = nil
	s.mu.Unlock()

	if serving == nil {
		return
	}

	s.proxy.shut()
	s.faults.releaseAll()
	serving.Stop()
	<-stopped
}

// ComeBack serves again on the same address after GoDown.
func (s *Server) ComeBack() error {
	s.mu.Lock()
	up, address := s.serving != nil, s.address
	s.mu.Unlock()

	if up {
		return errors.New("the simulator is not down")
	}

	if err := s.serve(address); err != nil {
		return err
	}

	return s.proxy.serve()
}

// Close stops serving and the engine. The server cannot be used afterwards.
func (s *Server) Close() {
	s.GoDown()
	s.engine.stop()
}
