package charts

import (
	"time"

	"omni.texashpc.com/omni-cluster-operator/pkg/foreign/dialguard"
	"omni.texashpc.com/omni-cluster-operator/pkg/helm/render"
)

// Default limits.
const (
	// DefaultMaxIndexBytes is the largest index of a repository, in bytes.
	DefaultMaxIndexBytes = 48 << 20
	// DefaultMaxArchiveBytes is the largest packed chart, in bytes.
	DefaultMaxArchiveBytes = 16 << 20
	// DefaultMaxUnpackedBytes is the largest chart when it is unpacked, subcharts included, in bytes.
	DefaultMaxUnpackedBytes = 64 << 20
	// DefaultTimeout bounds one Resolve or Open.
	DefaultTimeout = 2 * time.Minute
	// DefaultParallelDownloads is how many large charts and indexes are downloaded at once.
	DefaultParallelDownloads = 4
)

// Options are what a Fetcher may be told. The zero value is usable.
type Options struct {
	// Guard decides to which addresses to connect.
	Guard dialguard.Guard
	// Renderers read indexes and provenance files; nil means renderers of its own.
	Renderers *render.Pool
	// MaxIndexBytes, MaxArchiveBytes and MaxUnpackedBytes are limits in bytes; 0 means the default.
	MaxIndexBytes, MaxArchiveBytes, MaxUnpackedBytes int64
	// Timeout bounds one Resolve or Open; 0 means the default.
	Timeout time.Duration
	// ParallelDownloads is how many charts and indexes of more than 1 MiB are downloaded at once. Half as
	// many downloads of any size are under way from one host. 0 means the default.
	ParallelDownloads int
	// Now replaces time.Now.
	Now func() time.Time
}
