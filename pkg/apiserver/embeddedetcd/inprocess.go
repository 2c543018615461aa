package embeddedetcd

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3rpc"
	"go.etcd.io/etcd/server/v3/proxy/grpcproxy/adapter"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// InProcessClient returns a client whose reads, writes and watches call this etcd directly; the rest goes through the
// socket. Through the socket, every object is encoded and copied twice more, and a watch moves on by 64 KiB per exchange
// between two goroutines: with large objects on a busy machine it falls behind by minutes, and its queue takes memory.
//
// The keys and values of a watch's events are etcd's own memory, which other watches get as well: never write to them.
//
// Close the client when it is not needed any more; Stop closes those that are left.
func (s *Server) InProcessClient() (*clientv3.Client, error) {
	if err := s.callers.enter(); err != nil {
		return nil, err
	}
	defer s.callers.exit()

	client, err := s.Client()
	if err != nil {
		return nil, err
	}

	if err := client.Watcher.Close(); err != nil {
		_ = client.Close()

		return nil, err
	}

	kv := inProcessKV{v3rpc.NewQuotaKVServer(s.etcd.Server), s.callers, client.Ctx()}
	watch := inProcessWatch{v3rpc.NewWatchServer(s.etcd.Server), s.callers}
	client.KV = clientv3.NewKVFromKVClient(kv, client)
	client.Watcher = clientv3.NewWatchFromWatchClient(adapter.WatchServerToWatchClient(watch), client)

	s.callers.closeAtEnd(client)

	return client, nil
}

// The pauses between the tries of a read.
const (
	firstPause = 25 * time.Millisecond
	maxPause   = time.Second
)

// inProcessKV calls the server of reads and writes.
type inProcessKV struct {
	server  pb.KVServer
	callers *callers
	open    context.Context //nolint:containedctx // the client's, which ends when it is closed
}

// Range reads keys. While etcd is unavailable for a moment, as it is when a slow disk costs it the lead, it tries again,
// like a client of the socket. Writes are not tried again: nobody knows whether the first try was written.
func (k inProcessKV) Range(ctx context.Context, in *pb.RangeRequest, _ ...grpc.CallOption) (*pb.RangeResponse, error) {
	for pause := firstPause; ; pause = min(2*pause, maxPause) {
		answer, err := call(ctx, k.callers, in, k.server.Range)
		if status.Code(err) != codes.Unavailable || errors.Is(err, rpctypes.ErrGRPCStopped) {
			return answer, err
		}

		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return nil, status.FromContextError(ctx.Err()).Err()
		case <-k.open.Done():
			return nil, err
		}
	}
}

// RangeStream reads keys in chunks, so that not all of them are in memory at once.
func (k inProcessKV) RangeStream(ctx context.Context, in *pb.RangeRequest, _ ...grpc.CallOption) (pb.KV_RangeStreamClient, error) {
	if err := k.callers.enter(); err != nil {
		return nil, err
	}

	ctx, cancel := context.WithCancel(ctx)
	unhook := context.AfterFunc(k.open, cancel)
	chunks := newChunkStream(ctx)

	go func() {
		defer k.callers.exit()
		defer cancel()
		defer unhook()

		chunks.fill(func(out pb.KV_RangeStreamServer) error { return k.server.RangeStream(in, out) })
	}()

	return chunks, nil
}

// Put writes a key.
func (k inProcessKV) Put(ctx context.Context, in *pb.PutRequest, _ ...grpc.CallOption) (*pb.PutResponse, error) {
	return call(ctx, k.callers, in, k.server.Put)
}

// DeleteRange deletes keys.
func (k inProcessKV) DeleteRange(ctx context.Context, in *pb.DeleteRangeRequest, _ ...grpc.CallOption) (*pb.DeleteRangeResponse, error) {
	return call(ctx, k.callers, in, k.server.DeleteRange)
}

// Txn runs a transaction.
func (k inProcessKV) Txn(ctx context.Context, in *pb.TxnRequest, _ ...grpc.CallOption) (*pb.TxnResponse, error) {
	return call(ctx, k.callers, in, k.server.Txn)
}

// Compact removes old revisions.
func (k inProcessKV) Compact(ctx context.Context, in *pb.CompactionRequest, _ ...grpc.CallOption) (*pb.CompactionResponse, error) {
	return call(ctx, k.callers, in, k.server.Compact)
}

// call is one call of etcd. To the errors of writes it adds the remedy.
// When the request has ended, that is the error, as it is there: etcd would say that it timed out itself.
func call[Q, A any](ctx context.Context, callers *callers, in *Q, serve func(context.Context, *Q) (*A, error)) (*A, error) {
	if err := callers.enter(); err != nil {
		return nil, err
	}
	defer callers.exit()

	answer, err := serve(ctx, in)
	if err != nil && ctx.Err() != nil {
		return nil, status.FromContextError(ctx.Err()).Err()
	}

	return answer, withRemedy(err)
}

// inProcessWatch serves watches. A watch is a call until the server has done with it, which is later than its client has.
type inProcessWatch struct {
	pb.WatchServer

	callers *callers
}

// Watch serves the watches of a stream.
func (w inProcessWatch) Watch(stream pb.Watch_WatchServer) error {
	if err := w.callers.enter(); err != nil {
		return err
	}
	defer w.callers.exit()

	return w.WatchServer.Watch(stream)
}

// callers counts the calls of etcd in this process, and closes their clients. etcd waits for none of them when it stops,
// and a call that reads a closed database crashes the process.
type callers struct {
	ending context.Context //nolint:containedctx // of the server
	cancel context.CancelFunc

	mu    sync.Mutex
	ended bool
	calls sync.WaitGroup
}

func newCallers() *callers {
	c := new(callers)
	c.ending, c.cancel = context.WithCancel(context.Background())

	return c
}

// enter lets a call into etcd, until its exit. After the end it lets none in.
func (c *callers) enter() error {
	c.mu.Lock()
	defer c.mu.Unlock()

	if c.ended {
		return rpctypes.ErrGRPCStopped
	}

	c.calls.Add(1)

	return nil
}

func (c *callers) exit() { c.calls.Done() }

// closeAtEnd makes the end close the client, if nobody does before.
func (c *callers) closeAtEnd(client *clientv3.Client) {
	forget := context.AfterFunc(c.ending, func() { _ = client.Close() }) // who got the client may close it as well
	context.AfterFunc(client.Ctx(), func() { forget() })
}

// end lets no more calls in, closes the clients, which ends their watches, and waits until every call has left.
func (c *callers) end() {
	c.mu.Lock()
	c.ended = true
	c.mu.Unlock()

	c.cancel()
	c.calls.Wait()
}

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

// noSpaceRemedy is added after etcd's own text, which clients search for.
const noSpaceRemedy = ": the database of omni-apiserver is full. Reading works, and so does deleting objects without " +
	"finalizers; free space comes back by itself, mostly within a minute. To write again at once, start omni-apiserver with a " +
	"higher --etcd-quota-backend-bytes"

// withRemedy adds the remedy to the error of a write that was refused for space, because users see that error unchanged.
// It returns other errors as they are.
func withRemedy(err error) error {
	if err == nil || !errors.Is(rpctypes.Error(err), rpctypes.ErrNoSpace) {
		return err
	}

	known := status.Convert(err)

	return status.Error(known.Code(), known.Message()+noSpaceRemedy) // gRPC's own error
}
