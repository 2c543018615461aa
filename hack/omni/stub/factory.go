package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"sync"
)

// maxSchematic bounds what the factory keeps of one request. Real schematics are some 200 bytes.
const maxSchematic = 1 << 20

// factory is the part of the Image Factory's HTTP interface that Omni calls.
type factory struct {
	talos      []string
	extensions []string

	mu         sync.Mutex
	schematics map[string][]byte // YAML by its SHA-256, which is its ID
}

// officialExtension is one element of the list of extensions, as Omni decodes it.
type officialExtension struct {
	Name        string `json:"name"`
	Ref         string `json:"ref"`
	Digest      string `json:"digest"`
	Author      string `json:"author"`
	Description string `json:"description"`
}

func newFactory(talos, extensions []string) *factory {
	return &factory{talos: talos, extensions: extensions, schematics: map[string][]byte{}}
}

func (f *factory) register(mux *http.ServeMux) {
	mux.HandleFunc("GET /versions", f.listVersions)
	mux.HandleFunc("GET /version/{version}/extensions/official", f.listExtensions)
	mux.HandleFunc("GET /version/{version}/overlays/official", emptyList)
	mux.HandleFunc("GET /talosctl/{version}", emptyList)
	mux.HandleFunc("POST /schematics", f.putSchematic)
	mux.HandleFunc("GET /schematics/{id}", f.getSchematic)
}

// listVersions answers two questions: which versions there are, and (broken=true) which of
// them nobody should use.
func (f *factory) listVersions(w http.ResponseWriter, r *http.Request) {
	if r.URL.Query().Get("broken") == "true" {
		emptyList(w, r)

		return
	}

	writeJSON(w, http.StatusOK, f.talos)
}

func (f *factory) listExtensions(w http.ResponseWriter, r *http.Request) {
	list := make([]officialExtension, 0, len(f.extensions))

	for _, name := range f.extensions {
		list = append(list, officialExtension{
			Name:        name,
			Ref:         "registry.invalid/" + name + ":v0",
			Digest:      "sha256:" + hash([]byte(name+r.PathValue("version"))),
			Author:      "stub",
			Description: "exists for tests only",
		})
	}

	writeJSON(w, http.StatusOK, list)
}

// putSchematic keeps a schematic. Omni sends it in canonical form and computes the ID as well:
// it is the hash of exactly these bytes.
func (f *factory) putSchematic(w http.ResponseWriter, r *http.Request) {
	content, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxSchematic))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)

		return
	}

	id := hash(content)

	f.mu.Lock()
	f.schematics[id] = content
	f.mu.Unlock()

	writeJSON(w, http.StatusCreated, map[string]string{"id": id, "schematic": string(content)})
}

func (f *factory) getSchematic(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	content, found := f.schematics[r.PathValue("id")]
	f.mu.Unlock()

	if !found {
		http.Error(w, "no such schematic", http.StatusNotFound)

		return
	}

	w.Header().Set("Content-Type", "application/yaml")
	_, _ = w.Write(content) // a caller that went away needs no answer
}

func emptyList(w http.ResponseWriter, _ *http.Request) { writeJSON(w, http.StatusOK, []string{}) }

func writeJSON(w http.ResponseWriter, status int, value any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(value) // a caller that went away needs no answer
}

func hash(content []byte) string {
	sum := sha256.Sum256(content)

	return hex.EncodeToString(sum[:])
}
