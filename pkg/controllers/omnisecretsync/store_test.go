package omnisecretsync

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
)

// secretStore is a workload cluster that keeps Secrets and nothing else.
type secretStore struct {
	mu        sync.Mutex
	secrets   map[string]*corev1.Secret // by namespace/name
	forbidden string                    // a namespace
	missing   string                    // a namespace
	gone      string                    // a namespace that was deleted, and the rights in it with it
	requests  int
	dieAt     int // the request in which the controller dies; 0: none
	dieLate   bool
	dead      bool // nothing reaches the cluster

	version int
	looked  func(name string) // after each look at a Secret that is there; may be nil
	refuses bool              // creates nothing: a validation, or a policy
	// routeless reports whether the gateway before the cluster has no route for a request; may be nil
	routeless func(*http.Request) bool
}

// ServeHTTP answers as far as the controller asks.
func (c *secretStore) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()

	c.requests++

	if c.dead = c.dead || c.requests == c.dieAt && !c.dieLate; c.dead {
		http.Error(w, "", http.StatusServiceUnavailable)

		return
	}

	if c.routeless != nil && c.routeless(r) {
		http.NotFound(w, r)

		return
	}

	w.Header().Set("Content-Type", "application/json")
	c.answer(w, r)

	// The cluster did it, and nobody heard of it.
	c.dead = c.requests == c.dieAt
}

func (c *secretStore) answer(w http.ResponseWriter, r *http.Request) {
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/") // api v1 namespaces NS secrets [NAME]
	if len(parts) == 3 {                                       // the only namespace that anybody makes
		c.missing = ""
		fmt.Fprint(w, `{"kind":"Namespace","apiVersion":"v1"}`)

		return
	}

	if len(parts) == 4 {
		c.answerNamespace(w, parts[3])

		return
	}

	name := parts[3] + "/" + strings.Join(parts[5:], "")

	if parts[3] == c.forbidden || parts[3] == c.gone {
		http.Error(w, "", http.StatusForbidden)

		return
	}

	if parts[3] == c.missing {
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`)

		return
	}

	live := c.secrets[name]

	if r.Method == http.MethodPost && c.refuses {
		w.WriteHeader(http.StatusUnprocessableEntity)
		fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Invalid","code":422,"message":"no"}`)

		return
	}

	if r.Method == http.MethodPost && r.URL.Query().Get("dryRun") != "" {
		w.WriteHeader(http.StatusConflict)
		fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"AlreadyExists","code":409}`)

		return
	}

	switch r.Method {
	case http.MethodPost, http.MethodPut:
		// JSON or Protobuf. The test sees what cannot be read.
		sent := &corev1.Secret{}
		body, _ := io.ReadAll(r.Body)
		_, _, _ = serializer.NewCodecFactory(clientgoscheme.Scheme).UniversalDeserializer().Decode(body, nil, sent)

		if r.Method == http.MethodPost && c.secrets[sent.Namespace+"/"+sent.Name] != nil {
			w.WriteHeader(http.StatusConflict)
			fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"AlreadyExists","code":409}`)

			return
		}

		c.put(sent)
		live = sent
	case http.MethodDelete:
		if !meant(r, live) {
			w.WriteHeader(http.StatusConflict)
			fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Conflict","code":409}`)

			return
		}

		if live != nil && len(live.Finalizers) > 0 {
			live.DeletionTimestamp = &metav1.Time{Time: time.Unix(1800, 0)}
		} else {
			delete(c.secrets, name)
		}
	}

	if live == nil {
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`)

		return
	}

	_ = json.NewEncoder(w).Encode(live)

	if r.Method == http.MethodGet && c.looked != nil {
		c.looked(name)
	}
}

// answerNamespace answers who reads a namespace.
func (c *secretStore) answerNamespace(w http.ResponseWriter, name string) {
	switch name {
	case c.forbidden:
		http.Error(w, "", http.StatusForbidden)
	case c.gone:
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`)
	default:
		fmt.Fprint(w, `{"kind":"Namespace","apiVersion":"v1"}`)
	}
}

// put stores a Secret as an API server does.
func (c *secretStore) put(secret *corev1.Secret) {
	name := secret.Namespace + "/" + secret.Name

	c.version++
	secret.ResourceVersion, secret.APIVersion, secret.Kind = fmt.Sprint(c.version), "v1", "Secret"

	if secret.UID = types.UID("made-at-" + secret.ResourceVersion); c.secrets[name] != nil {
		secret.UID = c.secrets[name].UID
	}

	c.secrets[name] = secret
}

// meant reports whether the preconditions of a deletion hold.
func meant(r *http.Request, live *corev1.Secret) bool {
	body, _ := io.ReadAll(r.Body)
	sent := &metav1.DeleteOptions{}

	if _, _, err := serializer.NewCodecFactory(clientgoscheme.Scheme).UniversalDeserializer().Decode(body, nil, sent); err != nil || live == nil {
		return live == nil
	}

	must := sent.Preconditions

	return must == nil || (must.UID == nil || *must.UID == live.UID) && (must.ResourceVersion == nil || *must.ResourceVersion == live.ResourceVersion)
}

func (c *secretStore) names() string {
	c.mu.Lock()
	defer c.mu.Unlock()

	return strings.Join(slices.Sorted(maps.Keys(c.secrets)), " ")
}
