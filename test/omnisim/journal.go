package omnisim

import (
	"context"
	"maps"
	"path"
	"slices"
	"sync"
	"time"

	"github.com/cosi-project/runtime/pkg/resource"
	"google.golang.org/grpc"

	"github.com/siderolabs/omni/client/api/omni/management"
)

// MethodKubeconfigForPeople is the method Kubeconfig without a service account, which issues no token.
const MethodKubeconfigForPeople = "Kubeconfig for people"

// Request is a kind of request for counting: the method, such as List, Kubeconfig or MethodKubeconfigForPeople, and the
// resource type, which is empty for the management service.
type Request struct {
	Method string
	Type   resource.Type
}

// Write is one write by a client that the server accepted.
type Write struct {
	Time time.Time
	// Who is the service account, name@serviceaccount.omni.sidero.dev.
	Who string
	// Verb is Create, Update, Teardown or Destroy. An update that tears down counts as Teardown.
	Verb string
	Type resource.Type
	ID   resource.ID
}

// journal counts requests and keeps the writes of clients.
type journal struct {
	mu       sync.Mutex
	requests map[Request]int
	writes   []Write
}

func newJournal() *journal { return &journal{requests: map[Request]int{}} }

// Requests returns how many requests of each kind clients with an accepted signature have made, whatever the answer. A
// watch counts once, when it begins.
func (s *Server) Requests() map[Request]int {
	s.journal.mu.Lock()
	defer s.journal.mu.Unlock()

	return maps.Clone(s.journal.requests)
}

// Writes returns the accepted writes of clients, oldest first.
func (s *Server) Writes() []Write {
	s.journal.mu.Lock()
	defer s.journal.mu.Unlock()

	return slices.Clone(s.journal.writes)
}

// ForgetRequests clears what Requests and Writes return.
func (s *Server) ForgetRequests() {
	s.journal.mu.Lock()
	defer s.journal.mu.Unlock()

	s.journal.requests, s.journal.writes = map[Request]int{}, nil
}

func (j *journal) count(request Request) {
	j.mu.Lock()
	defer j.mu.Unlock()

	j.requests[request]++
}

// write records an accepted write and returns the error.
func (j *journal) write(ctx context.Context, verb string, ptr resource.Pointer, err error) error {
	if err != nil {
		return err
	}

	who, _ := callerFrom(ctx)

	j.mu.Lock()
	defer j.mu.Unlock()

	j.writes = append(j.writes, Write{Time: time.Now(), Who: who.identity, Verb: verb, Type: ptr.Type(), ID: ptr.ID()})

	return nil
}

func (j *journal) unary(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	method := path.Base(info.FullMethod)
	if kubeconfig, is := req.(*management.KubeconfigRequest); is && !kubeconfig.GetServiceAccount() {
		method = MethodKubeconfigForPeople
	}

	j.count(Request{Method: method, Type: typeOf(req)})

	return handler(ctx, req)
}

func (j *journal) stream(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
	return handler(srv, &countingStream{ServerStream: stream, journal: j, method: path.Base(info.FullMethod)})
}

// countingStream counts when the request arrives, because its type is unknown before.
type countingStream struct {
	grpc.ServerStream
	journal *journal
	method  string
}

// RecvMsg reads the request.
func (s *countingStream) RecvMsg(m any) error {
	if err := s.ServerStream.RecvMsg(m); err != nil {
		return err
	}

	s.journal.count(Request{Method: s.method, Type: typeOf(m)})

	return nil
}
