package etcdclient_test

import (
	"path/filepath"
	"strings"
	"testing"

	"omni.texashpc.com/omni-cluster-operator/pkg/apiserver/etcdclient"
)

func TestConnectFails(t *testing.T) {
	tests := []struct {
		name   string
		target etcdclient.Target
		want   string
	}{
		{"nobody", etcdclient.Target{Endpoints: []string{"unix://" + filepath.Join(t.TempDir(), "nobody.sock")}}, "is omni-apiserver running"},
		{"no certificate", etcdclient.Target{Endpoints: []string{"https://127.0.0.1:1"}, CAFile: "/nowhere"}, "read the certificates for etcd"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if _, err := etcdclient.Connect(t.Context(), test.target); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q in it", err, test.want)
			}
		})
	}
}
