package embeddedetcd

// Limits of the database of the embedded etcd, in bytes of its file.
const (
	// DefaultQuota is etcd's own default, and room for some 100,000 clusters.
	DefaultQuota int64 = 2 << 30
	// MinQuota is less than a useful database has.
	MinQuota int64 = 64 << 20
	// MaxQuota is what etcd's authors advise against exceeding: a start and a defragmentation read all
	// of it.
	MaxQuota int64 = 8 << 30
)

// settings are what Start can be told.
type settings struct {
	quota     int64
	snapshots string
}

// Option is a choice about the embedded etcd.
type Option func(*settings)

// Quota limits the database file, in bytes. At the limit etcd refuses writes, and goes on serving
// reads and deletions. Default: DefaultQuota.
func Quota(bytes int64) Option { return func(s *settings) { s.quota = bytes } }

// Snapshots names the directory of the scheduled snapshots. Start refuses to begin with no data at all
// where the newest of them has objects, or cannot be read. Default: none is looked at.
func Snapshots(dir string) Option { return func(s *settings) { s.snapshots = dir } }
