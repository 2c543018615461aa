package helm

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/rest"
)

// fakeCluster answers as an API server with a few kinds does, as far as Helm asks. Every object that is made is a second
// younger than the one before. An apply replaces what it names and keeps the rest.
type fakeCluster struct {
	*httptest.Server

	mu      sync.Mutex
	now     time.Time
	objects map[string]*unstructured.Unstructured // by path
	// hidden is the path of what may not be read.
	hidden string
	// unwritable is the path of what no write is accepted of.
	unwritable string
	// gone is a kind that is not served any more, as far as clients are told.
	gone string
	// versions are those in which the kind Widget of the group example.com is served. Without any there is no such group.
	versions []string
	// away makes the server of that group not answer. It is listed all the same.
	away bool
	// before is called with each request before it is answered, without the lock.
	before func(request *http.Request)
	// configMaps answers what is asked of ConfigMaps, without the lock; nil answers as for the other kinds.
	configMaps http.HandlerFunc
	// routeless reports whether a gateway before the cluster has no route for a request; it is called without the lock. Nil: for none.
	routeless func(request *http.Request) bool
}

func newFakeCluster(t *testing.T) *fakeCluster {
	t.Helper()

	f := &fakeCluster{
		now: time.Now().Add(-time.Hour).Truncate(time.Second), objects: map[string]*unstructured.Unstructured{},
		before: func(*http.Request) {},
	}
	f.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f.before(r)

		if f.routeless != nil && f.routeless(r) {
			http.NotFound(w, r)

			return
		}

		if r.URL.Query().Get("watch") != "" && r.URL.Query().Get("sendInitialEvents") == "" {
			w.(http.Flusher).Flush()
			<-r.Context().Done() // nothing is told

			return
		}

		if f.configMaps != nil && strings.Contains(r.URL.Path, "/configmaps") {
			w.Header().Set("Content-Type", "application/json")
			f.configMaps(w, r)

			return
		}

		f.mu.Lock()
		defer f.mu.Unlock()

		code, answer := f.answer(r)
		if object, ok := answer.(map[string]any); ok && object["metadata"] != nil && object["items"] == nil && onlyMetadata(r) {
			answer = metadataOf(object)
		}

		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		_ = json.NewEncoder(w).Encode(answer)
	}))
	t.Cleanup(func() {
		f.Server.CloseClientConnections()
		f.Server.Close()
	})

	return f
}

func (f *fakeCluster) config() *rest.Config {
	return &rest.Config{Host: f.URL, ContentConfig: rest.ContentConfig{ContentType: runtime.ContentTypeJSON, AcceptContentTypes: runtime.ContentTypeJSON}}
}

// put makes an object, or writes over it.
func (f *fakeCluster) put(path string, object map[string]any) {
	f.mu.Lock()
	defer f.mu.Unlock()

	f.store(path, &unstructured.Unstructured{Object: object})
}

// get is an object, or nil.
func (f *fakeCluster) get(path string) *unstructured.Unstructured {
	f.mu.Lock()
	defer f.mu.Unlock()

	return f.objects[path]
}

func (f *fakeCluster) remove(path string) {
	f.mu.Lock()
	defer f.mu.Unlock()

	delete(f.objects, path)
}

func (f *fakeCluster) store(path string, object *unstructured.Unstructured) {
	f.now = f.now.Add(time.Second)
	object.SetName(path[strings.LastIndex(path, "/")+1:])

	if old := f.objects[path]; old != nil {
		object.SetUID(old.GetUID())
		object.SetCreationTimestamp(old.GetCreationTimestamp())
	} else {
		object.SetUID(types.UID("uid-" + strconv.FormatInt(f.now.Unix(), 10)))
		object.SetCreationTimestamp(metav1.NewTime(f.now))
	}

	if strings.Contains(path, "/"+crdResource+"/") {
		object.Object["status"] = map[string]any{"conditions": []any{map[string]any{"type": "Established", "status": "True"}}}
	}

	object.SetResourceVersion(strconv.FormatInt(f.now.Unix(), 10))
	f.objects[path] = object
}

// answer is called with the lock.
func (f *fakeCluster) answer(r *http.Request) (int, any) {
	switch r.URL.Path {
	case "/version":
		return http.StatusOK, map[string]any{"gitVersion": "v1.34.0", "major": "1", "minor": "34"}
	case "/api":
		return http.StatusOK, map[string]any{"kind": "APIVersions", "versions": []string{"v1"}}
	case "/api/v1":
		return http.StatusOK, kinds(f.gone)
	}

	segments := strings.Split(strings.TrimPrefix(r.URL.Path, "/api/v1/"), "/")
	if strings.HasPrefix(r.URL.Path, "/apis") {
		segments = strings.Split(r.URL.Path, "/")[2:]
		if len(segments) < 3 || segments[0] != crdGroup && (f.away || !slices.Contains(f.versions, segments[1])) {
			return f.group(segments)
		}

		segments = segments[2:]
	}

	if r.Method == http.MethodGet && (len(segments) == 3 || segments[0] == crdResource && len(segments) == 1) {
		return f.list(r)
	}

	sent := &unstructured.Unstructured{}
	if r.Body != nil && r.Method != http.MethodGet && r.Method != http.MethodDelete {
		if err := json.NewDecoder(r.Body).Decode(&sent.Object); err != nil {
			return status(http.StatusBadRequest, "BadRequest", err.Error())
		}
	}

	path := r.URL.Path
	if r.Method == http.MethodPost {
		path += "/" + sent.GetName()
	}

	if r.URL.Query().Get("dryRun") != "" {
		return f.try(r.Method, path, sent)
	}

	code, answer := f.answerOne(r.Method, path, sent)

	if manager := r.URL.Query().Get("fieldManager"); manager != "" && code == http.StatusOK && f.objects[path] != nil {
		noteManager(f.objects[path], manager)
	}

	return code, answer
}

// try answers a dry run: what is there stays, and its version is that of the answer.
func (f *fakeCluster) try(method, path string, sent *unstructured.Unstructured) (int, any) {
	before := f.objects[path]
	if before == nil {
		defer delete(f.objects, path)

		return f.answerOne(method, path, sent)
	}

	defer func() { f.objects[path] = before }()

	code, answer := f.answerOne(method, path, sent)
	if made := f.objects[path]; made != nil && made != before {
		made.SetResourceVersion(before.GetResourceVersion())
	}

	return code, answer
}

// noteManager notes who has written an object, always as an apply, and no fields.
func noteManager(object *unstructured.Unstructured, manager string) {
	noted := object.GetManagedFields()
	if !slices.ContainsFunc(noted, func(entry metav1.ManagedFieldsEntry) bool { return entry.Manager == manager }) {
		none := &metav1.FieldsV1{}
		_ = none.UnmarshalJSON([]byte("{}"))

		object.SetManagedFields(append(noted, metav1.ManagedFieldsEntry{
			Manager: manager, Operation: metav1.ManagedFieldsOperationApply, APIVersion: object.GetAPIVersion(), FieldsType: "FieldsV1", FieldsV1: none,
		}))
	}
}

// The group and the resource of CRDs.
const crdGroup, crdResource = "apiextensions.k8s.io", "customresourcedefinitions"

// group answers what is asked of the group example.com but its objects: segments are those of the path behind /apis. There is
// another group, which has one kind, and that of CRDs.
func (f *fakeCluster) group(segments []string) (int, any) {
	const ours, another = "example.com", "example.org"

	groups := []metav1.APIGroup{group(another, "v1"), group(crdGroup, "v1")}
	if len(f.versions) > 0 {
		groups = append(groups, group(ours, f.versions...))
	}

	if len(segments) == 0 {
		return http.StatusOK, metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}, Groups: groups}
	}

	i := slices.IndexFunc(groups, func(one metav1.APIGroup) bool { return one.Name == segments[0] })

	switch {
	case i < 0:
		return status(http.StatusNotFound, "NotFound", "404 page not found")
	case len(segments) == 1:
		return http.StatusOK, groups[i]
	case f.away && segments[0] == ours:
		return status(http.StatusServiceUnavailable, "ServiceUnavailable", "service unavailable")
	case len(segments) > 2:
		return status(http.StatusNotFound, "NotFound", "404 page not found")
	case segments[0] == another:
		return http.StatusOK, apiResources(another+"/v1", map[string]string{"gadgets": "Gadget"})
	case segments[0] == crdGroup:
		return http.StatusOK, apiResources(crdGroup+"/v1", map[string]string{crdResource: "CustomResourceDefinition"})
	case !slices.Contains(f.versions, segments[1]):
		return status(http.StatusNotFound, "NotFound", "404 page not found")
	default:
		return http.StatusOK, apiResources(ours+"/"+segments[1], map[string]string{"widgets": "Widget"})
	}
}

func group(name string, versions ...string) metav1.APIGroup {
	made := metav1.APIGroup{TypeMeta: metav1.TypeMeta{Kind: "APIGroup", APIVersion: "v1"}, Name: name}
	for _, version := range versions {
		made.Versions = append(made.Versions, metav1.GroupVersionForDiscovery{GroupVersion: name + "/" + version, Version: version})
	}

	made.PreferredVersion = made.Versions[0]

	return made
}

func (f *fakeCluster) answerOne(method, path string, sent *unstructured.Unstructured) (int, any) {
	found := f.objects[path]
	name := path[strings.LastIndex(path, "/")+1:]

	switch {
	case method == http.MethodGet && path == f.hidden:
		return status(http.StatusForbidden, "Forbidden", path+" may not be read")
	case found == nil && (method == http.MethodGet || method == http.MethodPut || method == http.MethodDelete):
		return status(http.StatusNotFound, "NotFound", path+" not found")
	case method == http.MethodGet:
		return http.StatusOK, found.Object
	case method == http.MethodDelete:
		delete(f.objects, path)

		return http.StatusOK, map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Success"}
	case method == http.MethodPost && found != nil:
		return status(http.StatusConflict, "AlreadyExists", path+" already exists")
	case path == f.unwritable:
		return status(http.StatusUnprocessableEntity, "Invalid", path+" may not be written")
	case len(validation.IsDNS1123Subdomain(name)) > 0:
		return status(http.StatusUnprocessableEntity, "Invalid", fmt.Sprintf("the name %q is invalid", name))
	case method == http.MethodPatch && found != nil:
		sent = afterApply(found, sent)
	}

	f.store(path, sent)

	return http.StatusOK, sent.Object
}

// afterApply is an object after an apply.
func afterApply(found, sent *unstructured.Unstructured) *unstructured.Unstructured {
	merged := found.DeepCopy()

	if data, named := sent.Object["data"]; named {
		merged.Object["data"] = data
	}

	for _, set := range []struct {
		from, to map[string]string
		write    func(map[string]string)
	}{
		{sent.GetLabels(), found.GetLabels(), merged.SetLabels},
		{sent.GetAnnotations(), found.GetAnnotations(), merged.SetAnnotations},
	} {
		all := maps.Clone(set.to)
		if all == nil {
			all = map[string]string{}
		}

		maps.Copy(all, set.from)
		set.write(all)
	}

	return merged
}

// list answers with objects, or with their metadata.
func (f *fakeCluster) list(r *http.Request) (int, any) {
	if r.URL.Query().Get("sendInitialEvents") != "" {
		return status(http.StatusUnprocessableEntity, "Invalid", "lists are no watches here")
	}

	selector, err := labels.Parse(r.URL.Query().Get("labelSelector"))
	if err != nil {
		return status(http.StatusBadRequest, "BadRequest", err.Error())
	}

	items := []any{}

	for _, path := range slices.Sorted(maps.Keys(f.objects)) {
		if object := f.objects[path]; strings.HasPrefix(path, r.URL.Path+"/") && selector.Matches(labels.Set(object.GetLabels())) {
			if onlyMetadata(r) {
				items = append(items, metadataOf(object.Object))
			} else {
				items = append(items, object.Object)
			}
		}
	}

	kind, version := "List", "v1"
	if onlyMetadata(r) {
		kind, version = "PartialObjectMetadataList", "meta.k8s.io/v1"
	}

	return http.StatusOK, map[string]any{"kind": kind, "apiVersion": version, "metadata": map[string]any{"resourceVersion": "1"}, "items": items}
}

func onlyMetadata(r *http.Request) bool {
	return strings.Contains(r.Header.Get("Accept"), "PartialObjectMetadata")
}

func metadataOf(object map[string]any) map[string]any {
	return map[string]any{"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": object["metadata"]}
}

func kinds(gone string) any {
	served := map[string]string{"configmaps": "ConfigMap", "secrets": "Secret", "services": "Service", "namespaces": "Namespace"}
	maps.DeleteFunc(served, func(_, kind string) bool { return kind == gone })

	return apiResources("v1", served)
}

// apiResources is what is said of a version of a group that has these kinds, by the names of their resources.
func apiResources(groupVersion string, served map[string]string) any {
	known := metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: groupVersion}
	for name, kind := range served {
		known.APIResources = append(known.APIResources, metav1.APIResource{
			Name: name, Kind: kind, Namespaced: kind != "Namespace" && kind != "CustomResourceDefinition", Verbs: metav1.Verbs{"create", "delete", "get", "list", "patch", "update", "watch"},
		})
	}

	return known
}

func status(code int, reason, message string) (int, any) {
	return code, map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": reason, "message": message, "code": code}
}
