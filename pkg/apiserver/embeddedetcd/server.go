// Package embeddedetcd runs an etcd server inside omni-apiserver, which stores its objects there if it is given a
// data directory.
//
// The etcd is a single member, reachable only through a unix socket inside the data directory. Every acknowledged
// write was synced to disk. A lock file keeps a second process away from the directory. The API server's storage
// layer compacts old revisions, as with any etcd.
//
// Keeper maintains the database while it runs. The API server's storage layer compacts old revisions every few minutes. Their
// pages stay in the file as free space; when there is much of it, Keeper defragments the file. When the file reaches its quota,
// etcd raises an alarm and refuses writes until somebody frees space and clears the alarm. Keeper does both as soon as it is
// possible, and until then reports what is wrong.
package embeddedetcd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"omni.texashpc.com/omni-cluster-operator/pkg/apiserver/snapshot"
)

const (
	memberName = "omni-apiserver"
	// peerURL is recorded in the stored member list; nothing listens on it, because there are no peers.
	peerURL = "http://127.0.0.1:2380"
	// startTimeout bounds what follows when etcd has opened its files: it applies the last writes of its log, and answers.
	// How long it takes to read the database, before, depends on its size and on the disk.
	startTimeout = 2 * time.Minute
	dialTimeout  = 10 * time.Second
	// closeTimeout is how long a stop waits for connections: etcd gives running requests seven seconds. Together with
	// the time that omni-apiserver's own requests may take before, it fits into the minute that the chart gives a
	// Pod.
	closeTimeout = 15 * time.Second
)

// ErrForced reports that a stop did not wait any longer for a client that did not disconnect, or for a call that did not
// end. No data is lost.
var ErrForced = errors.New("the embedded etcd was stopped although a client still used it: what was written is on the disk")

// ErrStopped says that etcd ended although nobody asked it to; its log says why.
var ErrStopped = errors.New("the embedded etcd stopped by itself")

// Server is a running etcd.
type Server struct {
	etcd    *embed.Etcd
	lock    *directoryLock
	socket  string
	log     *logger
	callers *callers
	timeout time.Duration // of a stop

	compaction sync.Mutex // for compactor
	compactor  compactor  // nil until a kind is stored
}

// Start runs etcd on the directory, which it creates if necessary, and returns when etcd can serve. The context
// bounds the start only. The error says what to do for the known reasons: another process uses the directory, the
// directory is not writable, the database cannot be opened, a newer program has used it, a restore did not finish,
// the data is lost.
func Start(ctx context.Context, dataDir string, options ...Option) (*Server, error) {
	chosen := settings{quota: DefaultQuota, open: openFile, timeout: startTimeout}
	for _, option := range options {
		option(&chosen)
	}

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

	s := &Server{lock: lock, callers: newCallers(), timeout: closeTimeout}
	if err := s.start(ctx, dataDir, chosen); err != nil {
		return nil, errors.Join(fmt.Errorf("start the embedded etcd on %s: %w", dataDir, err), s.Stop())
	}

	return s, nil
}

func (s *Server) start(ctx context.Context, dataDir string, chosen settings) error {
	err := lookFirst(ctx, dataDir, chosen)
	if err != nil {
		return err
	}

	if s.log, err = newLogger(dataDir); err != nil {
		return err
	}

	if s.socket, err = newSocket(dataDir); err != nil {
		return err
	}

	c := config(dataDir, s.socket)
	c.QuotaBackendBytes = chosen.quota
	c.ZapLoggerBuilder = embed.NewZapLoggerBuilder(s.log.zap)

	if s.etcd, err = launch(c); err != nil {
		return err
	}

	ctx, cancel := context.WithTimeout(ctx, chosen.timeout)
	defer cancel()

	if err := s.waitUntilReady(ctx); err != nil {
		return err
	}

	if err := s.checkDataVersion(ctx); err != nil {
		return err
	}

	return removeTornLogs(dataDir)
}

// lookFirst refuses a directory that etcd must not open. The file of the database is read before anything is concluded
// from what is in it.
func lookFirst(ctx context.Context, dataDir string, chosen settings) error {
	if err := refuseUnfinished(dataDir); err != nil {
		return err
	}

	if err := refuseUnusable(ctx, dataDir, chosen.open); err != nil {
		return err
	}

	if err := refuseLostData(dataDir, chosen.snapshots); err != nil {
		return err
	}

	return removeCopies(dataDir)
}

// launch starts etcd and turns panics into errors: etcd panics over some kinds of damage that it considers
// impossible.
func launch(c *embed.Config) (etcd *embed.Etcd, err error) {
	defer func() {
		if reason := recover(); reason != nil {
			etcd, err = nil, fmt.Errorf("etcd fails with %v: %s", reason, tryAgain)
		}
	}()

	etcd, err = embed.StartEtcd(c)
	if err == nil {
		return etcd, nil
	}

	if known := remedy(err.Error()); known != "" {
		return nil, fmt.Errorf("%w: %s", err, known)
	}

	return nil, err
}

func (s *Server) waitUntilReady(ctx context.Context) error {
	select {
	case <-s.etcd.Server.ReadyNotify():
		return nil
	case err := <-s.etcd.Err():
		return fmt.Errorf("etcd stopped: %w", err)
	case <-s.etcd.Server.StopNotify():
		return errors.New("etcd stopped")
	case <-ctx.Done():
		return fmt.Errorf("etcd is not ready: %w", context.Cause(ctx))
	}
}

// checkDataVersion reads the data version from the running etcd: the last writes may be only in the log, not in the
// database file.
func (s *Server) checkDataVersion(ctx context.Context) error {
	client, err := s.Client()
	if err != nil {
		return err
	}
	defer client.Close()

	return snapshot.CheckDataVersion(ctx, client)
}

// catchUpEntries is how many of the last writes stay in memory for members that lag behind. There is one member only;
// etcd's default of 5,000 would hold the bytes of as many objects.
const catchUpEntries = 10

// logEntries bounds how many writes the log keeps that are in the database file already. A start reads all of them
// into memory at once. With etcd's default of 10,000, a client that changes one large object again and again would
// make every later start need gigabytes.
const logEntries = 100

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
	c.SnapshotCount = logEntries

	return c
}

// Endpoint is what an etcd client dials.
func (s *Server) Endpoint() string { return endpointStart + s.socket }

// Client returns a new client of this etcd. Close it before Stop.
func (s *Server) Client() (*clientv3.Client, error) {
	client, err := clientv3.New(clientv3.Config{
		Endpoints:   []string{s.Endpoint()},
		DialTimeout: dialTimeout,
		Logger:      zap.NewNop(),
	})
	if err != nil {
		return nil, fmt.Errorf("connect to the embedded etcd: %w", err)
	}

	return client, nil
}

// Stop ends etcd, after its clients: it closes those that call it in this process, and waits for running requests, but not
// for ever (ErrForced). It can be called twice.
func (s *Server) Stop() error {
	var forced error

	if s.etcd != nil {
		s.log.silence()
		forced = s.close()
		s.etcd = nil
	}

	return errors.Join(forced, s.lock.release())
}

// close waits for running requests, and after the timeout ends the storage anyway: etcd itself would wait without end
// for a client that has connected and sends nothing. When that client disconnects, etcd continues its own stop, which
// removes the socket. While a call of this process is inside etcd, the database stays open, because reading a closed one
// crashes the process.
func (s *Server) close() error {
	etcd, left, closed := s.etcd, make(chan struct{}), make(chan struct{})

	go func() {
		defer close(closed)

		s.stopCompactor()
		s.callers.end()
		close(left)
		etcd.Close()
	}()

	select {
	case <-closed:
		return nil
	case <-time.After(s.timeout):
	}

	select {
	case <-left:
		etcd.Server.HardStop()
	default:
	}

	return ErrForced
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

// Limits of the database of the embedded etcd, in bytes of its file.
const (
	// DefaultQuota is etcd's own default, and room for some 100,000 clusters.
	DefaultQuota int64 = 2 << 30
	// MinQuota is below what any useful database needs.
	MinQuota int64 = 64 << 20
	// MaxQuota is the size that etcd's authors advise not to exceed: a start and a defragmentation read the whole
	// file.
	MaxQuota int64 = 8 << 30
)

// settings are the choices that options make for Start.
type settings struct {
	quota     int64
	snapshots string
	open      opener        // of the database
	timeout   time.Duration // for etcd to be ready, when it has opened its files
}

// Option is a choice about the embedded etcd.
type Option func(*settings)

// Quota limits the database file, in bytes. At the limit etcd refuses writes, and goes on serving
// reads and deletions. Default: DefaultQuota.
func Quota(bytes int64) Option { return func(s *settings) { s.quota = bytes } }

// Snapshots names the directory of the scheduled snapshots. Start refuses to begin without data if the newest
// snapshot there has objects or cannot be read. Default: no directory is checked.
func Snapshots(dir string) Option { return func(s *settings) { s.snapshots = dir } }

const (
	socketName = "etcd.sock"
	// maxSocketPath is what fits into a sockaddr_un everywhere (104 bytes on BSD, 108 on Linux).
	maxSocketPath = 103
	endpointStart = "unix://"
)

// newSocket returns the path at which etcd listens. It lies in the data directory, whose mode keeps other users out.
func newSocket(dataDir string) (string, error) {
	path := filepath.Join(dataDir, socketName)
	if len(path) > maxSocketPath {
		return "", fmt.Errorf("%s is too long for a socket: give an --etcd-data-dir of at most %d bytes", path, maxSocketPath-len("/"+socketName))
	}

	// A killed process left this socket. Nobody listens on it: the directory is locked.
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", fmt.Errorf("remove an old socket: %w", err)
	}

	return path, nil
}

// EndpointOf returns the endpoint by which another process reaches the server that runs on the directory. It fails if
// no server was ever started there; that a server was killed shows only when the endpoint is dialed. The process must
// run as the same user, or as root.
func EndpointOf(dataDir string) (string, error) {
	path, err := filepath.Abs(filepath.Join(dataDir, socketName))
	if err != nil {
		return "", fmt.Errorf("find the etcd data directory: %w", err)
	}

	switch _, err := os.Stat(path); {
	case errors.Is(err, os.ErrNotExist):
		return "", fmt.Errorf("no omni-apiserver runs with --etcd-data-dir=%s: give the directory of the running "+
			"one, in the same container", dataDir)
	case err != nil:
		return "", fmt.Errorf("find the socket of etcd: %w", err)
	}

	return endpointStart + path, nil
}

// logger is etcd's log: warnings and worse, on standard error.
type logger struct {
	zap   *zap.Logger
	level zap.AtomicLevel
}

// newLogger makes the log of an etcd on the directory.
func newLogger(dataDir string) (*logger, error) {
	level := zap.NewAtomicLevelAt(zapcore.WarnLevel)

	config := zap.NewProductionConfig()
	config.Level = level
	config.DisableStacktrace = true
	config.EncoderConfig.EncodeTime = zapcore.RFC3339TimeEncoder

	last := lastWords{dataDir: dataDir}

	made, err := config.Build(zap.WithFatalHook(last), zap.WithPanicHook(last))
	if err != nil {
		return nil, fmt.Errorf("make the log of etcd: %w", err)
	}

	return &logger{zap: made.Named("etcd"), level: level}, nil
}

// silence drops further messages after a requested stop: etcd reports each listener that closes as an error.
func (l *logger) silence() { l.level.SetLevel(zapcore.PanicLevel) }

// lastWords ends the process when etcd logs a fatal error, from whatever goroutine, and first logs what to do: etcd's
// own message is for its authors, and a panic would bury it below the stacks of all goroutines.
type lastWords struct{ dataDir string }

// OnWrite implements zapcore.CheckWriteHook.
func (l lastWords) OnWrite(entry *zapcore.CheckedEntry, fields []zapcore.Field) {
	reason := entry.Message

	for _, field := range fields {
		if err, ok := field.Interface.(error); ok {
			reason += ": " + err.Error()
		}
	}

	fmt.Fprintf(os.Stderr, "omni-apiserver ends, because its etcd on %s cannot go on (%s): %s\n", l.dataDir, reason, cmp.Or(remedy(reason), tryAgain))
	os.Exit(1)
}

// tryAgain is the remedy for unknown reasons.
const tryAgain = "start it again; if that happens each time, the data is damaged: restore a snapshot (omni-apiserver snapshot restore --help)"

// diskFails is the remedy for a disk that does not read or write.
const diskFails = "the disk fails: look at the volume and at its node, then start again; if the data is damaged, restore a snapshot"

// makeRoom is the remedy for a full disk.
const makeRoom = "enlarge the volume, or remove from it what nobody needs, such as old snapshots and " + replacedPrefix + "<time>; then start again"

// remedy says what to do about a fatal error, for people who know nothing of etcd; empty for an unknown reason.
func remedy(reason string) string {
	about := func(words ...string) bool {
		return slices.ContainsFunc(words, func(word string) bool { return strings.Contains(reason, word) })
	}

	switch {
	case about("invalid downgrade"):
		return "the data directory was used by a newer omni-apiserver: run that version again, or restore a snapshot from before its upgrade"
	case about("no space left on device", "disk quota exceeded"):
		return "the disk is full, and nothing that was acknowledged is lost: " + makeRoom
	case about("input/output error", "read-only file system"):
		return diskFails
	case about("failed to repair WAL"): // it copies the file first, and does not say what failed
		return "the end of its log is torn, and to mend it takes 64 MB of free space: " + makeRoom +
			"; only if that does not help, restore a snapshot (omni-apiserver snapshot restore --help)"
	case about("WAL", "wal:", "crc mismatch", "raft log corrupted"):
		return "its log is damaged: restore a snapshot (omni-apiserver snapshot restore --help)"
	}

	return ""
}
