package embeddedetcd

import (
	"fmt"

	"github.com/coreos/go-semver/semver"
	bolt "go.etcd.io/bbolt"
	"go.etcd.io/etcd/server/v3/storage/schema"
)

// refuseNewerThan compares the versions in the database with that of the etcd in this program. Only
// major and minor count: patch releases share a format.
func refuseNewerThan(tx *bolt.Tx, program string) error {
	own, err := semver.NewVersion(program)
	if err != nil {
		return fmt.Errorf("parse the version of etcd: %w", err)
	}

	for _, place := range []struct{ bucket, key []byte }{
		{schema.Meta.Name(), schema.MetaStorageVersionName},
		{schema.Cluster.Name(), schema.ClusterClusterVersionKeyName},
	} {
		bucket := tx.Bucket(place.bucket)
		if bucket == nil {
			continue
		}

		text := string(bucket.Get(place.key))
		if text == "" {
			continue
		}

		stored, err := semver.NewVersion(text)
		if err != nil {
			return fmt.Errorf("%s of the database is %q, which is no version: %w", place.key, text, err)
		}

		if own.Major < stored.Major || own.Major == stored.Major && own.Minor < stored.Minor {
			return fmt.Errorf("the data directory was used by a newer omni-apiserver (etcd %d.%d, this one has %d.%d): "+
				"run that version again, or restore a snapshot from before its upgrade into an empty directory",
				stored.Major, stored.Minor, own.Major, own.Minor)
		}
	}

	return nil
}
