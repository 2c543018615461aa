package startup_test

import (
	"path/filepath"
	"strings"
	"testing"

	"omni.texashpc.com/omni-cluster-operator/pkg/apiserver/startup"
)

func TestConnectFails(t *testing.T) {
	tests := []struct {
		name   string
		target startup.EtcdTarget
		want   string
	}{
		{"nobody", startup.EtcdTarget{Endpoints: []string{"unix://" + filepath.Join(t.TempDir(), "nobody.sock")}}, "is omni-apiserver running"},
		{"no certificate", startup.EtcdTarget{Endpoints: []string{"https://127.0.0.1:1"}, CAFile: "/nowhere"}, "read the certificates for etcd"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if _, err := startup.ConnectEtcd(t.Context(), test.target); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q in it", err, test.want)
			}
		})
	}
}
