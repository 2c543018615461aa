package embeddedetcd

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"go.etcd.io/etcd/server/v3/embed"
)

const (
	memberName = "omni-apiserver"
	// peerURL is in the stored member list; nothing listens on it, because there are no peers.
	peerURL = "http://127.0.0.1:2380"
	// startTimeout bounds the replay of the log. A full database of the default quota takes seconds.
	startTimeout = 2 * time.Minute
)

// ErrStopped says that etcd ended although nobody asked it to; its log says why.
var ErrStopped = errors.New("the embedded etcd stopped by itself")

// Server is a running etcd.
type Server struct {
	etcd   *embed.Etcd
	lock   *directoryLock
	socket *socket
	log    *logger
}

// Start runs etcd on the directory, which is created if it does not exist, and returns when it can
// serve. The context bounds the start only. The error says what to do where that is known: another
// process has the directory, the directory cannot be written, the database cannot be opened.
func Start(ctx context.Context, dataDir string) (*Server, error) {
	dataDir, err := filepath.Abs(dataDir)
	if err != nil {
		return nil, fmt.Errorf("find the etcd data directory: %w", err)
	}

	if err := os.MkdirAll(dataDir, 0o700); err != nil {
		return nil, fmt.Errorf("make the etcd data directory: %w", err)
	}

	lock, err := lockDirectory(dataDir)
	if err != nil {
		return nil, err
	}

	s := &Server{lock: lock}
	if err := s.start(ctx, dataDir); err != nil {
		return nil, errors.Join(fmt.Errorf("start the embedded etcd on %s: %w", dataDir, err), s.Stop())
	}

	return s, nil
}

func (s *Server) start(ctx context.Context, dataDir string) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()

	var err error
	if s.log, err = newLogger(); err != nil {
		return err
	}

	if s.socket, err = newSocket(dataDir); err != nil {
		return err
	}

	c := config(dataDir, s.socket.path)
	c.ZapLoggerBuilder = embed.NewZapLoggerBuilder(s.log.zap)

	if s.etcd, err = embed.StartEtcd(c); err != nil {
		return err
	}

	select {
	case <-s.etcd.Server.ReadyNotify():
		return nil
	case err := <-s.etcd.Err():
		return fmt.Errorf("etcd stopped: %w", err)
	case <-s.etcd.Server.StopNotify():
		return errors.New("etcd stopped")
	case <-ctx.Done():
		return fmt.Errorf("etcd is not ready: %w", ctx.Err())
	}
}

// catchUpEntries is how many of the last writes stay in memory for members that
// lag behind. There is one member; etcd's default of 5,000 would hold the bytes
// of as many objects.
const catchUpEntries = 10

// config is one member without peers on a unix socket. fsync stays on: an acknowledged write must
// survive the loss of power.
func config(dataDir, socketPath string) *embed.Config {
	client := url.URL{Scheme: "unix", Path: socketPath}
	peer, _ := url.Parse(peerURL)

	c := embed.NewConfig()
	c.Name = memberName
	c.Dir = dataDir
	c.ListenClientUrls = []url.URL{client}
	c.AdvertiseClientUrls = []url.URL{client}
	c.ListenPeerUrls = nil
	c.AdvertisePeerUrls = []url.URL{*peer}
	c.InitialCluster = c.InitialClusterFromName(memberName)
	c.EnableGRPCGateway = false
	c.SnapshotCatchUpEntries = catchUpEntries

	return c
}

// Endpoint is what an etcd client dials.
func (s *Server) Endpoint() string { return "unix://" + s.socket.path }

// Stop ends etcd, after its clients: it waits for running requests. It can be called twice.
func (s *Server) Stop() error {
	if s.etcd != nil {
		s.log.silence()
		s.etcd.Close()
		s.etcd = nil
	}

	return errors.Join(s.socket.remove(), s.lock.release())
}

// WhileRunning returns a context that ends with ctx, or with the cause ErrStopped when etcd stops by
// itself, as it does when its disk fails.
func (s *Server) WhileRunning(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	stopped := s.etcd.Server.StopNotify()

	go func() {
		select {
		case <-stopped:
			cancel(ErrStopped)
		case <-ctx.Done():
		}
	}()

	return ctx, func() { cancel(context.Canceled) }
}
