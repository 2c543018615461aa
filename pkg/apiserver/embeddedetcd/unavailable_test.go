package embeddedetcd

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// failing is an etcd that fails the first calls.
type failing struct {
	pb.UnimplementedKVServer

	with  error
	times int
	calls int
	then  func()
}

func (f *failing) fail() error {
	f.calls++

	if f.then != nil {
		f.then()
	}

	if f.calls > f.times {
		return nil
	}

	return f.with
}

func (f *failing) Range(context.Context, *pb.RangeRequest) (*pb.RangeResponse, error) {
	return &pb.RangeResponse{}, f.fail()
}

func (f *failing) Put(context.Context, *pb.PutRequest) (*pb.PutResponse, error) {
	return &pb.PutResponse{}, f.fail()
}

func (f *failing) Txn(context.Context, *pb.TxnRequest) (*pb.TxnResponse, error) {
	return &pb.TxnResponse{}, f.fail()
}

// TestReadsAreTriedAgain: without a leader, which a slow disk may cost it, etcd answers again after a moment.
func TestReadsAreTriedAgain(t *testing.T) {
	for name, test := range map[string]struct {
		with  error
		calls int
	}{
		"without a leader":  {rpctypes.ErrGRPCNoLeader, 9},
		"timed out":         {rpctypes.ErrGRPCTimeout, 9},
		"stopped":           {rpctypes.ErrGRPCStopped, 1},
		"compacted already": {rpctypes.ErrGRPCCompacted, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				etcd := &failing{with: test.with, times: 8}
				kv := inProcessKV{etcd, &callers{}, t.Context()}

				_, err := kv.Range(t.Context(), &pb.RangeRequest{})
				if recovered := test.calls > 8; recovered != (err == nil) || etcd.calls != test.calls {
					t.Errorf("%v after %d calls, want %d", err, etcd.calls, test.calls)
				}
			})
		})
	}
}

// TestReadsAreGivenUp: nobody waits for the answer any more.
func TestReadsAreGivenUp(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	etcd := &failing{with: rpctypes.ErrGRPCNoLeader, times: 8, then: cancel}

	_, err := inProcessKV{etcd, &callers{}, t.Context()}.Range(ctx, &pb.RangeRequest{})
	if status.Code(err) != codes.Canceled || etcd.calls != 1 {
		t.Errorf("the request: %v after %d calls", err, etcd.calls)
	}

	closed, cancel := context.WithCancel(t.Context())
	etcd = &failing{with: rpctypes.ErrGRPCNoLeader, times: 8, then: cancel}

	_, err = inProcessKV{etcd, &callers{}, closed}.Range(t.Context(), &pb.RangeRequest{})
	if !errors.Is(err, rpctypes.ErrGRPCNoLeader) || etcd.calls != 1 {
		t.Errorf("the client: %v after %d calls", err, etcd.calls)
	}
}

// TestWritesAreNotTriedAgain: the first try may have been written.
func TestWritesAreNotTriedAgain(t *testing.T) {
	for name, write := range writes() {
		etcd := &failing{with: rpctypes.ErrGRPCTimeout, times: 8}

		if err := write(t.Context(), inProcessKV{etcd, &callers{}, t.Context()}); !errors.Is(err, rpctypes.ErrGRPCTimeout) || etcd.calls != 1 {
			t.Errorf("%s: %v after %d calls", name, err, etcd.calls)
		}
	}
}

func writes() map[string]func(context.Context, inProcessKV) error {
	return map[string]func(context.Context, inProcessKV) error{
		"put": func(ctx context.Context, kv inProcessKV) error {
			_, err := kv.Put(ctx, &pb.PutRequest{})

			return err
		},
		"transaction": func(ctx context.Context, kv inProcessKV) error {
			_, err := kv.Txn(ctx, &pb.TxnRequest{})

			return err
		},
	}
}

// TestAnEndedRequest: a request that ended gets its own error, which the API server answers as a timeout, and not that
// etcd timed out.
func TestAnEndedRequest(t *testing.T) {
	for name, write := range writes() {
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()

		etcd := &failing{with: rpctypes.ErrGRPCTimeout, times: 1, then: func() { <-ctx.Done() }}

		if err := write(ctx, inProcessKV{etcd, &callers{}, t.Context()}); status.Code(err) != codes.DeadlineExceeded {
			t.Errorf("%s: %v", name, err)
		}
	}
}
