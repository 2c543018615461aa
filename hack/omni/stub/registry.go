package main

import "net/http"

// registry is the part of a container registry that lists the tags of one repository.
type registry struct {
	repository string
	tags       []string
}

func (r registry) register(mux *http.ServeMux) {
	// Clients ask for the root first, to learn that this is a registry and needs no login.
	mux.HandleFunc("GET /v2/{$}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Docker-Distribution-Api-Version", "registry/2.0")
		w.WriteHeader(http.StatusOK)
	})
	mux.HandleFunc("GET /v2/"+r.repository+"/tags/list", func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, http.StatusOK, map[string]any{"name": r.repository, "tags": r.tags})
	})
}
