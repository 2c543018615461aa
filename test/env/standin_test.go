package env

import (
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// This test program stands in for omni-apiserver and omni-controller when it is started with
// their flags, so that the tests of this package neither build nor blame the real ones.

// playProgram runs the stand-in that the flags ask for; it does not return if there is one.
func playProgram(args []string) {
	flags := flag.NewFlagSet("stand-in", flag.ExitOnError)
	value := func(name string) *string { return flags.String(name, "", "") }

	port, cert, key, dir := value("secure-port"), value("tls-cert-file"), value("tls-private-key-file"), value("etcd-data-dir")
	metrics, health := value("metrics-bind-address"), value("health-probe-bind-address")

	for _, ignored := range []string{
		"kubeconfig", "authentication-kubeconfig", "authorization-kubeconfig", "bind-address", "namespace", "role-binding", "leader-elect", "allowed-networks", "join-settle-time", "destroy-settle-time",
	} {
		value(ignored)
	}

	flags.Bool("all-namespaces", false, "")
	flags.Bool("metrics-secure", true, "")

	if len(args) == 0 || strings.HasPrefix(args[0], "-test.") {
		return
	}

	_ = flags.Parse(args) // exits on an error

	fmt.Println(strings.Join(args, " "))

	stopped := make(chan os.Signal, 1)
	signal.Notify(stopped, syscall.SIGTERM)

	failed := make(chan error, 2)

	if *dir != "" {
		go func() { failed <- standInAPI(loopback+":"+*port, *cert, *key, *dir) }()
	} else {
		go func() { failed <- http.ListenAndServe(*health, answer("ok")) }()
		go func() { failed <- http.ListenAndServe(*metrics, answer("workqueue_depth 0\n")) }()
	}

	select {
	case <-stopped:
		os.Exit(0)
	case err := <-failed:
		fmt.Println(err)
		os.Exit(1)
	}
}

// standInAPI serves just enough for kube-apiserver to call an aggregated API available, and
// counts its starts in the data directory.
func standInAPI(address, cert, key, dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}

	starts, err := os.OpenFile(filepath.Join(dir, "starts"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}

	fmt.Fprintln(starts, "start")

	version := metav1.GroupVersionForDiscovery{GroupVersion: "omni.texashpc.com/v1alpha1", Version: "v1alpha1"}
	mux := http.NewServeMux()
	mux.Handle("GET /readyz", answer("ok"))
	mux.Handle("GET /apis", answerJSON(metav1.APIGroupList{
		TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"},
		Groups:   []metav1.APIGroup{{Name: apiGroup, Versions: []metav1.GroupVersionForDiscovery{version}, PreferredVersion: version}},
	}))
	mux.Handle("GET /apis/omni.texashpc.com/v1alpha1", answerJSON(metav1.APIResourceList{
		TypeMeta:     metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"},
		GroupVersion: "omni.texashpc.com/v1alpha1",
		APIResources: []metav1.APIResource{{Name: "omniclusters", SingularName: "omnicluster", Kind: "OmniCluster", Namespaced: true, Verbs: metav1.Verbs{"get", "list"}}},
	}))
	mux.Handle("GET /openapi/v3", answerJSON(map[string]any{"paths": map[string]any{
		"apis/omni.texashpc.com/v1alpha1": map[string]string{"serverRelativeURL": "/openapi/v3/apis/omni.texashpc.com/v1alpha1?hash=1"},
	}}))

	return http.ListenAndServeTLS(address, cert, key, mux)
}

func answer(body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, body) }
}

func answerJSON(value any) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(value)
	}
}
