package startup

import (
	"strings"
	"testing"
)

func TestHint(t *testing.T) {
	for endpoint, want := range map[string]string{
		"unix:///d/etcd.sock":    "is omni-apiserver running",
		"https://127.0.0.1:2379": "are --etcd-cafile, --etcd-certfile and --etcd-keyfile those of the server?",
		"http://127.0.0.1:2379":  "If it has TLS, its address begins with https://",
		"127.0.0.1:2379":         "If it has TLS, its address begins with https://",
	} {
		if got := etcdHint(endpoint); !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q in it", endpoint, got, want)
		}
	}
}
