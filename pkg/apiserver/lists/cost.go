package lists

import (
	"net/url"
	"strconv"

	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metainternalversionscheme "k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/features"
	utilfeature "k8s.io/apiserver/pkg/util/feature"

	"omni.texashpc.com/omni-cluster-operator/pkg/registry/quota"
)

const (
	// listOverhead is the memory that a list takes besides its objects.
	listOverhead = 64 << 10
	// factorOfTables is how many bytes of memory a table takes for each byte of its objects: a table is encoded as a
	// whole.
	factorOfTables = 4
	// factorOfStorage is the same factor for a list that may be read from etcd instead of the cache, and so has
	// copies of its own.
	factorOfStorage = 3
	// watchWindow is how many bytes of its initial objects a watch holds in memory.
	watchWindow = 16 << 20
	// factorOfTemplates is how many bytes of memory the template of a cluster takes at most for each byte of its documents:
	// in YAML each line of a deeply nested list is indented, and the encoder keeps every value.
	factorOfTemplates = 1024
	// largestTemplate is how many bytes of memory a template takes at most. Its text, and the values of each document, are
	// bounded.
	largestTemplate = 128 << 20
)

// documents are the kinds that are read for a template, besides the cluster.
func documents() []string { return []string{"omnicontrolplanes", "omniworkers", "omnimachines"} }

// readsMany reports whether a request is a list, begins with one, or is for a template.
func readsMany(info *genericapirequest.RequestInfo, query url.Values) bool {
	switch {
	case info.Subresource != "":
		return info.Subresource == "template"
	case info.Verb == "watch":
		return beginsWithList(query)
	default:
		// The answer to the deletion of a collection has all of its objects.
		return info.Verb == "list" || info.Verb == "deletecollection"
	}
}

// templateCost returns the memory in bytes that a template of a cluster in a namespace may take. Which documents are the
// cluster's is not known beforehand.
func templateCost(info *genericapirequest.RequestInfo, stored sizes) int64 {
	bytes := stored.Largest(info.Resource, info.Namespace, 1)
	for _, resource := range documents() {
		bytes += stored.Stored(resource, info.Namespace).Bytes
	}

	return listOverhead + min(factorOfTemplates*bytes, largestTemplate)
}

// sizes is what the ledger knows of the objects of a kind in a namespace; an empty namespace means all.
type sizes interface {
	Stored(resource, namespace string) quota.Use
	// Largest is how many bytes so many of the objects have at most.
	Largest(resource, namespace string, objects int64) int64
}

// cost returns the memory in bytes that a list, a watch that begins with one, or a template may take. How much a selector leaves
// out is not known beforehand, so a page counts as many bytes as the largest objects have: all of one tenant may be on it.
func cost(info *genericapirequest.RequestInfo, query url.Values, table bool, stored sizes) int64 {
	if info.Subresource != "" {
		return templateCost(info, stored)
	}

	// How many the store reads at the same time does not follow the limit if it reads etcd and selects.
	objects, fromStorage := limitOf(query), mayReadStorage(info.Verb, query)
	if info.Verb == "watch" || fromStorage && selects(query) {
		objects = 0
	}

	// One object, or a field selector for its metadata.name; continued, the library reads the whole namespace and selects.
	if info.Name != "" && info.Namespace != "" && !query.Has("continue") {
		objects = 1
	}

	bytes := stored.Stored(info.Resource, info.Namespace).Bytes
	if objects > 0 {
		bytes = min(bytes, stored.Largest(info.Resource, info.Namespace, objects))
	}

	if table {
		bytes *= factorOfTables
	}

	if fromStorage {
		bytes *= factorOfStorage
	}

	if info.Verb == "watch" {
		return min(listOverhead+bytes, watchWindow)
	}

	return listOverhead + bytes
}

// mayReadStorage reports whether a list may be read from etcd instead of the cache. With a limit a resource version means
// exactly that state, and the library gives a limit to each deletion of a collection.
func mayReadStorage(verb string, query url.Values) bool {
	version := query.Get("resourceVersion")
	limited := query.Has("limit") || verb == "deletecollection" && version != "0"

	return query.Has("continue") || query.Get("resourceVersionMatch") == "Exact" || limited && query.Has("resourceVersion")
}

func selects(query url.Values) bool {
	return query.Get("labelSelector") != "" || query.Get("fieldSelector") != "" || query.Get("shardSelector") != ""
}

// beginsWithList reports whether a watch begins with all objects, as the library reads its parameters. What it cannot read it
// refuses.
func beginsWithList(query url.Values) bool {
	options := metainternalversion.ListOptions{}
	if err := metainternalversionscheme.ParameterCodec.DecodeParameters(query, metav1.SchemeGroupVersion, &options); err != nil {
		return false
	}

	options.Watch = true // as the path or the parameters say
	metainternalversion.SetListOptionsDefaults(&options, utilfeature.DefaultFeatureGate.Enabled(features.WatchList))

	return options.SendInitialEvents != nil && *options.SendInitialEvents
}

// limitOf returns how many objects a list has at most; 0 if there is no limit. The cache answers resource version 0 with all
// objects.
func limitOf(query url.Values) int64 {
	limit, err := strconv.ParseInt(query.Get("limit"), 10, 64)
	if err != nil || query.Get("resourceVersion") == "0" {
		return 0
	}

	return limit
}
