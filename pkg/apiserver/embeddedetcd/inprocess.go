package embeddedetcd

import (
	"context"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3rpc"
	"go.etcd.io/etcd/server/v3/proxy/grpcproxy/adapter"
	"google.golang.org/grpc"
)

// InProcessClient returns a client whose reads, writes and watches call this etcd directly; the rest goes through the
// socket. Through the socket, every object is encoded and copied twice more, and a watch moves on by 64 KiB per exchange
// between two goroutines: with large objects on a busy machine it falls behind by minutes, and its queue takes memory.
// Close the client before Stop.
func (s *Server) InProcessClient() (*clientv3.Client, error) {
	client, err := s.Client()
	if err != nil {
		return nil, err
	}

	if err := client.Watcher.Close(); err != nil {
		_ = client.Close()

		return nil, err
	}

	server := s.etcd.Server
	client.KV = clientv3.NewKVFromKVClient(remedies{adapter.KvServerToKvClient(v3rpc.NewQuotaKVServer(server))}, client)
	client.Watcher = clientv3.NewWatchFromWatchClient(adapter.WatchServerToWatchClient(v3rpc.NewWatchServer(server)), client)

	return client, nil
}

// remedies adds the remedy to the errors of writes, as explainNoSpace does for clients of the socket.
type remedies struct{ pb.KVClient }

// Put writes a key.
func (r remedies) Put(ctx context.Context, in *pb.PutRequest, options ...grpc.CallOption) (*pb.PutResponse, error) {
	response, err := r.KVClient.Put(ctx, in, options...)

	return response, withRemedy(err)
}

// Txn runs a transaction.
func (r remedies) Txn(ctx context.Context, in *pb.TxnRequest, options ...grpc.CallOption) (*pb.TxnResponse, error) {
	response, err := r.KVClient.Txn(ctx, in, options...)

	return response, withRemedy(err)
}
