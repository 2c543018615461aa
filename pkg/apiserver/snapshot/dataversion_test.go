package snapshot_test

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"omni.texashpc.com/omni-cluster-operator/pkg/apiserver/snapshot"
)

// store is an etcd with one key.
type store struct {
	clientv3.KV

	value  string
	puts   int
	putErr error
	getErr error
}

func (s *store) Get(context.Context, string, ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	response := &clientv3.GetResponse{}
	if s.value != "" {
		response.Kvs = append(response.Kvs, &mvccpb.KeyValue{Key: []byte(snapshot.DataVersionKey), Value: []byte(s.value)})
	}

	return response, s.getErr
}

func (s *store) Put(_ context.Context, _, value string, _ ...clientv3.OpOption) (*clientv3.PutResponse, error) {
	s.puts++
	if s.putErr == nil {
		s.value = value
	}

	return &clientv3.PutResponse{}, s.putErr
}

func TestCheck(t *testing.T) {
	newer := strconv.Itoa(snapshot.DataVersion + 1)
	lost := errors.New("lost")

	tests := []struct {
		name    string
		store   store
		want    string
		wantErr string
		puts    int
	}{
		{"new etcd", store{}, "1", "", 1},
		{"same version", store{value: "1"}, "1", "", 0},
		{"newer version", store{value: newer}, newer, "they have data version " + newer + ", this program knows up to 1", 0},
		{"no number", store{value: "x"}, "x", `"x" is no data version`, 0},
		{"below one", store{value: "0"}, "0", `"0" is no data version`, 0},
		{"full", store{putErr: rpctypes.ErrNoSpace}, "", "", 1},
		{"not writable", store{putErr: lost}, "", "write the data version: lost", 1},
		{"not readable", store{getErr: lost}, "", "read the data version: lost", 0},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			err := snapshot.CheckDataVersion(t.Context(), &test.store)

			if test.wantErr == "" && err != nil || test.wantErr != "" && (err == nil || !strings.Contains(err.Error(), test.wantErr)) {
				t.Errorf("got %v, want %q in it", err, test.wantErr)
			}

			if test.store.value != test.want || test.store.puts != test.puts {
				t.Errorf("stored %q with %d puts, want %q with %d", test.store.value, test.store.puts, test.want, test.puts)
			}
		})
	}
}

func TestRefuse(t *testing.T) {
	for version, newer := range map[int]bool{0: false, snapshot.DataVersion: false, snapshot.DataVersion + 1: true} {
		if err := snapshot.RefuseDataVersion(version); errors.Is(err, snapshot.ErrNewerData) != newer {
			t.Errorf("version %d: %v", version, err)
		}
	}
}
