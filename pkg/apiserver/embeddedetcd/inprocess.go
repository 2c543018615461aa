package embeddedetcd

import (
	"context"
	"errors"
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
