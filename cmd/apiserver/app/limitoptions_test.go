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
		half bool
	}{
		{"default", []string{"--etcd-data-dir=/data"}, 96 << 20, false},
		{"external", []string{"--etcd-servers=https://etcd:2379"}, 96 << 20, false},
		{"a small database", []string{"--etcd-data-dir=/data", "--etcd-quota-backend-bytes=67108864"}, 32 << 20, true},
		{"more than the database", []string{"--etcd-data-dir=/data", "--max-bytes=10000000000"}, 1 << 30, true},
		{"none", []string{"--etcd-data-dir=/data", "--max-bytes=0"}, 1 << 30, true},
		{"none, external", []string{"--etcd-servers=https://etcd:2379", "--max-bytes=0"}, 0, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := parse(t, test.args...).limits(); got.Bytes != test.want || got.HalfOfEtcd != test.half {
				t.Errorf("got %+v, want %d %v", got, test.want, test.half)
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
