package embeddedetcd

import (
	"context"
	"io"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
)

// chunkStream takes the chunks of a read from etcd to its client: both halves of a RangeStream. etcd waits with the next
// chunk until the client has taken this one.
type chunkStream struct {
	grpc.ClientStream // nil: the client of etcd only receives

	ctx    context.Context //nolint:containedctx // the stream's, as gRPC has it
	chunks chan *pb.RangeStreamResponse
	err    error // why there are no more chunks; written before chunks is closed
}

func newChunkStream(ctx context.Context) *chunkStream {
	return &chunkStream{ctx: ctx, chunks: make(chan *pb.RangeStreamResponse)}
}

// fill makes etcd send all chunks.
func (s *chunkStream) fill(serve func(pb.KV_RangeStreamServer) error) {
	defer close(s.chunks)

	s.err = serve(chunkSender{to: s})
	if s.err == nil {
		s.err = io.EOF
	}
}

// Recv returns the next chunk, and after the last io.EOF.
func (s *chunkStream) Recv() (*pb.RangeStreamResponse, error) {
	chunk, more := <-s.chunks
	if !more {
		return nil, s.err
	}

	return chunk, nil
}

// chunkSender is etcd's half.
type chunkSender struct {
	grpc.ServerStream // nil: etcd only sends

	to *chunkStream
}

// Context is the stream's.
func (s chunkSender) Context() context.Context { return s.to.ctx }

// Send waits until the client takes the chunk.
func (s chunkSender) Send(chunk *pb.RangeStreamResponse) error {
	select {
	case s.to.chunks <- chunk:
		return nil
	case <-s.to.ctx.Done():
		return s.to.ctx.Err()
	}
}
