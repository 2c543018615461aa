package embeddedetcd

import "time"

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
