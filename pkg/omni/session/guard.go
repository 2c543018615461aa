package session

import (
	"fmt"
	"strings"

	"github.com/cosi-project/runtime/api/v1alpha1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding"
	grpcproto "google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/bounds"
)

// Bounds of the answers of one call. All sizes are those after decompression.
const (
	// maxManagementAnswer is the size of one message of every other API, in bytes: a kubeconfig is 3 KiB.
	maxManagementAnswer = 1 << 20
	// maxList is the weight of all resources of one List, in bytes.
	maxList = 32 << 20
	// amplification is how many times its length a message may weigh. A real message weighs up to six times its length.
	amplification = 16
	// maxEvents is how many events one message of a watch may have. Omni sends one; a decoded event takes far more than an
	// encoded one, and the client library makes another copy of all events of a message.
	maxEvents = 16
	// maxHeaders bounds the headers of one answer, in bytes; they include errors.
	maxHeaders = 64 << 10
	// connectionWindow is how much of all streams may arrive before the readers consume it, in bytes.
	connectionWindow = 1 << 20
)

// guard weighs the answers of one call, and decodes them only within its bounds.
type guard struct {
	encoding.CodecV2

	limit    int   // of one message, in bytes
	heaviest int64 // of one message, weighed
	left     int64 // of all messages, weighed; below 0: no bound
	refused  error // why an answer was refused

	watch *bounds.Watch // that is charged for the message that is being handled; nil for other calls
}

// newGuard returns the guard of a call; sum is the weight that all of its messages may have together, 0 for no bound.
func newGuard(limit int, sum int64) *guard {
	g := &guard{CodecV2: encoding.GetCodecV2(grpcproto.Name), limit: limit, heaviest: amplification * int64(limit), left: sum}
	if sum == 0 {
		g.left = -1
	}

	return g
}

// guardOfWatch returns the guard of a watch of a mirror.
func guardOfWatch(watch *bounds.Watch) *guard {
	g := newGuard(watch.Limit(), 0)
	g.watch = watch

	return g
}

// guardOf returns the guard of any other call.
func guardOf(method string) *guard {
	switch {
	case !strings.HasPrefix(method, "/cosi.resource.State/"):
		return newGuard(maxManagementAnswer, 0)
	case strings.HasSuffix(method, "/List"):
		return newGuard(bounds.MaxAnswer, maxList)
	default:
		return newGuard(bounds.MaxAnswer, 0)
	}
}

// options returns call options that make a call use the guard.
func (g *guard) options(given []grpc.CallOption) []grpc.CallOption {
	return append(given[:len(given):len(given)], grpc.ForceCodecV2(g), grpc.MaxCallRecvMsgSize(g.limit))
}

// Unmarshal implements encoding.CodecV2.
func (g *guard) Unmarshal(data mem.BufferSlice, into any) error {
	whole := data.MaterializeToBuffer(mem.DefaultBufferPool())
	defer whole.Free()

	if err := g.weigh(whole.ReadOnlyData(), into); err != nil {
		g.refused = err

		return err
	}

	if err := g.CodecV2.Unmarshal(mem.BufferSlice{whole}, into); err != nil {
		return err
	}

	if err := g.weighSpecs(into); err != nil {
		g.refused = err

		return err
	}

	return nil
}

// weigh weighs a message before it is decoded. A watch is charged for what the message becomes, and for the copy of its
// bytes that is decoded.
func (g *guard) weigh(wire []byte, into any) error {
	message, ok := into.(proto.Message)
	if !ok {
		return fmt.Errorf("%w: no message of the protocol", bounds.ErrMalformed)
	}

	weight, err := bounds.Weigh(message.ProtoReflect().Descriptor(), wire)
	if err != nil {
		return err
	}

	if _, watched := into.(*v1alpha1.WatchResponse); watched && countEvents(wire) > maxEvents {
		return &omni.TooMuchDataError{Message: fmt.Sprintf("Omni sent more than %d events in one message of a watch", maxEvents)}
	}

	if err := g.take(weight); err != nil {
		return err
	}

	return g.watch.Handle(weight + int64(len(wire)))
}

// countEvents returns how many events an encoded message of a watch has, which Weigh has read to its end.
func countEvents(wire []byte) int {
	number := (&v1alpha1.WatchResponse{}).ProtoReflect().Descriptor().Fields().ByName("event").Number()
	count := 0

	for len(wire) > 0 {
		field, _, length := protowire.ConsumeField(wire)
		if length < 0 {
			break
		}

		if field == number {
			count++
		}

		wire = wire[length:]
	}

	return count
}

// weighSpecs weighs the specs inside, which the client library decodes next.
func (g *guard) weighSpecs(answer any) error {
	var sum int64

	for _, sent := range resourcesIn(answer) {
		weight, err := bounds.WeighResource(sent)
		if err != nil {
			return err
		}

		sum += weight
	}

	return g.take(sum)
}

// take subtracts a weight from the bounds.
func (g *guard) take(weight int64) error {
	if weight > g.heaviest {
		return &omni.TooMuchDataError{Message: fmt.Sprintf("one answer of Omni would take %s of memory; the bound is %s, of the controller",
			bounds.Mebibytes(weight), bounds.Mebibytes(g.heaviest))}
	}

	if g.left < 0 {
		return nil
	}

	if g.left -= weight; g.left < 0 {
		g.left = 0

		return &omni.TooMuchDataError{Message: fmt.Sprintf("one list of Omni would take more than %s of memory", bounds.Mebibytes(maxList))}
	}

	return nil
}

// explain replaces gRPC's error for a refused answer, which has lost its type, and for one that is not Omni's.
func (g *guard) explain(err error) error {
	switch {
	case err == nil:
		return nil
	case g.refused != nil:
		return g.refused
	case status.Code(err) == codes.ResourceExhausted && strings.Contains(err.Error(), "larger than max"):
		return &bounds.TooLong{Limit: g.limit}
	default:
		return notOfOmni(err)
	}
}

// resourcesIn returns the resources of an answer of the resource API.
func resourcesIn(answer any) []*v1alpha1.Resource {
	switch typed := answer.(type) {
	case interface{ GetResource() *v1alpha1.Resource }:
		return []*v1alpha1.Resource{typed.GetResource()}
	case *v1alpha1.WatchResponse:
		found := make([]*v1alpha1.Resource, 0, 2*len(typed.GetEvent()))
		for _, event := range typed.GetEvent() {
			found = append(found, event.GetResource(), event.GetOld())
		}

		return found
	default:
		return nil
	}
}
