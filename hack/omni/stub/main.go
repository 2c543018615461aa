package main

import (
	"flag"
	"log"
	"net/http"
	"strings"
	"time"
)

// The versions that the examples, the tests and Omni v1.9.3 itself mention.
const (
	defaultTalosVersions      = "v1.11.6,v1.12.7,v1.12.8,v1.13.2,v1.13.3,v1.13.4,v1.13.5"
	defaultKubernetesVersions = "v1.34.8,v1.35.0,v1.35.1,v1.35.4,v1.35.5,v1.36.0,v1.36.1"
	defaultExtensions         = "siderolabs/hello-world-service,siderolabs/iscsi-tools,siderolabs/qemu-guest-agent,siderolabs/util-linux-tools"
	kubeletRepository         = "siderolabs/kubelet"
)

func main() {
	listen := flag.String("listen", "127.0.0.1:28500", "address to serve on")
	talos := flag.String("talos", defaultTalosVersions, "Talos versions, separated by commas")
	kubernetes := flag.String("kubernetes", defaultKubernetesVersions, "Kubernetes versions, separated by commas")
	extensions := flag.String("extensions", defaultExtensions, "official system extensions, separated by commas")

	flag.Parse()

	handler := newHandler(strings.Split(*talos, ","), strings.Split(*kubernetes, ","), strings.Split(*extensions, ","))
	server := &http.Server{Addr: *listen, Handler: logged(handler), ReadHeaderTimeout: 10 * time.Second}

	log.Printf("serving on %s", *listen)
	log.Fatal(server.ListenAndServe())
}

// newHandler serves the image factory and the registry, whose paths do not overlap.
func newHandler(talos, kubernetes, extensions []string) http.Handler {
	mux := http.NewServeMux()
	newFactory(talos, extensions).register(mux)
	registry{repository: kubeletRepository, tags: kubernetes}.register(mux)

	return mux
}

// logged writes a line for each request: when Omni refuses a version, the log tells what it
// asked for.
func logged(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		log.Printf("%s %s", r.Method, r.URL)
		next.ServeHTTP(w, r)
	})
}
