package app

import (
	"fmt"

	"github.com/spf13/pflag"

	"omni.texashpc.com/omni-cluster-operator/pkg/registry/quota"
)

// LimitOptions are the flags that limit how much may be stored, and how much may be listed at the same time. 0 means
// no limit.
type LimitOptions struct {
	// Stored limits objects and their bytes, per namespace and in total.
	Stored quota.Limits
	// ListBytes bounds the lists that are read at the same time, in bytes of what is stored.
	ListBytes int64
}

// newLimitOptions returns the defaults. They fit into the 1 GiB of memory that the chart gives: all stored objects
// are held decoded in memory, and a table of all of them takes four times as much while it is made.
func newLimitOptions() LimitOptions {
	return LimitOptions{
		Stored: quota.Limits{
			NamespaceObjects: 20_000, NamespaceBytes: 64 << 20,
			Objects: 40_000, Bytes: 96 << 20,
		},
		ListBytes: 96 << 20,
	}
}

func (o *LimitOptions) addFlags(flags *pflag.FlagSet) {
	flags.Int64Var(&o.Stored.NamespaceObjects, "max-objects-per-namespace", o.Stored.NamespaceObjects,
		"Most objects, of all kinds together, that a namespace can have. Further ones are refused with 403. 0: no limit.")
	flags.Int64Var(&o.Stored.NamespaceBytes, "max-bytes-per-namespace", o.Stored.NamespaceBytes,
		"Most bytes of JSON that the objects of a namespace can have. At the limit, new objects and changes that let one grow are "+
			"refused with 403; status, deletions and changes that make one smaller are not. 0: no limit.")
	flags.Int64Var(&o.Stored.Objects, "max-objects", o.Stored.Objects, "The same as --max-objects-per-namespace, for all namespaces together.")
	flags.Int64Var(&o.Stored.Bytes, "max-bytes", o.Stored.Bytes,
		"The same as --max-bytes-per-namespace, for all namespaces together. The memory has to fit: docs/concepts/limits.md says how much. "+
			"With --etcd-data-dir at most half of --etcd-quota-backend-bytes counts.")
	flags.Int64Var(&o.ListBytes, "max-list-bytes-in-flight", o.ListBytes,
		"Most bytes of stored objects that are listed at the same time. Further lists wait for 10 seconds and are then answered with 429. "+
			"One user has at most half of it; larger lists run one at a time. A table counts four times. 0: no limit.")
}

func (o *LimitOptions) validate() []error {
	var errs []error

	for _, limit := range append(o.Stored.Each(), quota.Limit{Flag: "--max-list-bytes-in-flight", Value: o.ListBytes}) {
		if limit.Value < 0 {
			errs = append(errs, fmt.Errorf("%s: %d is below 0; use 0 for no limit", limit.Flag, limit.Value))
		}
	}

	return errs
}

// stored returns the limits of stored objects, given the quota of the embedded etcd; 0 stands for an external etcd,
// whose quota is not known. The database also holds old versions and free space until they are cleaned up, so current
// objects may take at most half of the quota.
func (o *LimitOptions) stored(etcdQuota int64) quota.Limits {
	limits := o.Stored

	if half := etcdQuota / 2; half > 0 && (limits.Bytes == 0 || limits.Bytes > half) {
		limits.Bytes, limits.HalfOfEtcd = half, true
	}

	return limits
}
