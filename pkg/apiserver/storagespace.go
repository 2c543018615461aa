package apiserver

import (
	"fmt"
	"net/http"

	genericapiserver "k8s.io/apiserver/pkg/server"

	"omni.texashpc.com/omni-cluster-operator/pkg/apiserver/chain"
)

// storageSpacePath is the path of a check that fails with the reason while the storage needs attention.
const storageSpacePath = "/readyz/etcd-space"

// ReportStorageSpace publishes the notice about the storage; an empty notice means that all is well.
// /readyz/etcd-space fails with the notice, and /readyz?verbose has a line with it.
//
// /readyz itself does not fail: an API server without ready replicas is taken out of the hub's API, and that would
// also end the reads and deletions that still work and that free space.
func ReportStorageSpace(config *genericapiserver.Config, notice func() string) {
	// Inside, the path is authorised like those of all single checks.
	chain.Inside(config, func(next http.Handler, _ *genericapiserver.Config) http.Handler {
		return withStorageSpace(next, notice)
	})
}

func withStorageSpace(next http.Handler, notice func() string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch path := r.URL.Path; {
		case path == storageSpacePath && notice() != "":
			http.Error(w, "internal server error: "+notice(), http.StatusInternalServerError)
		case path == storageSpacePath:
			fmt.Fprint(w, "ok")
		case path == "/readyz" && r.URL.Query().Has("verbose") && notice() != "":
			next.ServeHTTP(w, r)
			fmt.Fprintf(w, "[!]etcd-space does not fail readiness, but: %s\n", notice())
		default:
			next.ServeHTTP(w, r)
		}
	})
}
