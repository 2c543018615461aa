package app

import (
	"errors"
	"strings"
	"testing"
)

func TestLimits(t *testing.T) {
	for _, test := range []struct {
		name string
		args []string
		want int64
	}{
		{"default", []string{"--etcd-data-dir=/data"}, 96 << 20},
		{"external", []string{"--etcd-servers=https://etcd:2379"}, 96 << 20},
		{"a small database", []string{"--etcd-data-dir=/data", "--etcd-quota-backend-bytes=67108864"}, 32 << 20},
		{"more than the database", []string{"--etcd-data-dir=/data", "--max-bytes=10000000000"}, 1 << 30},
		{"none", []string{"--etcd-data-dir=/data", "--max-bytes=0"}, 1 << 30},
		{"none, external", []string{"--etcd-servers=https://etcd:2379", "--max-bytes=0"}, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := parse(t, test.args...).limits().Bytes; got != test.want {
				t.Errorf("got %d, want %d", got, test.want)
			}
		})
	}

	for _, flag := range []string{"--max-objects-per-namespace", "--max-bytes-per-namespace", "--max-objects", "--max-bytes", "--max-list-bytes-in-flight"} {
		options := parse(t, "--etcd-data-dir=/data", flag+"=-1")
		if err := errors.Join(options.Limits.validate()...); err == nil || !strings.Contains(err.Error(), flag+": -1 is below 0; use 0 for no limit") {
			t.Errorf("%s: %v", flag, err)
		}
	}
}
