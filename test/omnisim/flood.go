package omnisim

import (
	"context"
	"sync"

	cosiv1alpha1 "github.com/cosi-project/runtime/api/v1alpha1"
	"github.com/cosi-project/runtime/pkg/resource"
)

// Flood makes watches report invented resources, as a hostile or broken Omni could: after a watch is opened, it sends
// the answers of next without end, until next returns nil, the watch ends or the flood is removed. Then the watch goes
// on with the real resources. An empty type floods the watches of all types. A server has one flood at a time. Several
// goroutines may call next.
func (s *Server) Flood(resourceType resource.Type, next func(number int) *cosiv1alpha1.WatchResponse) (remove func()) {
	ctx, cancel := context.WithCancel(context.Background())

	s.faults.mu.Lock()
	defer s.faults.mu.Unlock()

	s.faults.flood = &flood{ctx: ctx, resourceType: resourceType, next: next}

	return sync.OnceFunc(func() {
		cancel()

		s.faults.mu.Lock()
		defer s.faults.mu.Unlock()

		s.faults.flood = nil
	})
}

// flood is a flood of watches.
type flood struct {
	ctx          context.Context // the life of the flood
	resourceType resource.Type
	next         func(number int) *cosiv1alpha1.WatchResponse
}

// floodOf returns the flood of a request, if it is a watch that is flooded.
func (f *faults) floodOf(request any) *flood {
	watch, ok := request.(*cosiv1alpha1.WatchRequest)
	if !ok {
		return nil
	}

	f.mu.Lock()
	defer f.mu.Unlock()

	if f.flood == nil || f.flood.resourceType != "" && f.flood.resourceType != watch.GetType() {
		return nil
	}

	return f.flood
}

// pour sends the flood.
func (s *resettableStream) pour(flood *flood) error {
	for number := 0; s.ctx.Err() == nil && flood.ctx.Err() == nil; number++ {
		answer := flood.next(number)
		if answer == nil {
			return nil
		}

		if err := s.ServerStream.SendMsg(answer); err != nil {
			return err
		}
	}

	return nil
}

// SendMsg sends an answer. The first answer of a watch marks it as open; the flood follows.
func (s *resettableStream) SendMsg(m any) error {
	if err := s.ServerStream.SendMsg(m); err != nil {
		return err
	}

	flood := s.flood
	s.flood = nil

	if flood == nil {
		return nil
	}

	return s.pour(flood)
}
