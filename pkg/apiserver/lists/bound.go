package lists

import (
	"net/http"
	"net/url"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metainternalversionscheme "k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/features"
	genericapiserver "k8s.io/apiserver/pkg/server"
	utilfeature "k8s.io/apiserver/pkg/util/feature"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
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
)

// Bound makes lists wait until there is memory for them. Reads of one object, watches that do not begin with a list,
// and writes never wait.
//
// All lists together may take so many bytes of what is stored, counted by the ledger; 0 means no bound. A list that
// waits longer than the timeout, or for which there is no place in the queue, is answered with 429 and the reason.
//
// This handler runs inside priority and fairness: a list that waits here keeps its seat there.
func Bound(config *genericapiserver.Config, ledger *quota.Ledger, bytes int64, timeout time.Duration) {
	if bytes == 0 {
		return
	}

	budget, build := newListBudget(bytes), config.BuildHandlerChainFunc
	budget.timeout = timeout

	config.BuildHandlerChainFunc = func(handler http.Handler, c *genericapiserver.Config) http.Handler {
		return build(withListBudget(handler, budget, ledger, c.Serializer), c)
	}
}

func withListBudget(next http.Handler, budget *listBudget, ledger *quota.Ledger, codecs runtime.NegotiatedSerializer) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		info, found := genericapirequest.RequestInfoFrom(r.Context())
		if !found || !info.IsResourceRequest || info.APIGroup != v1alpha1.GroupName {
			next.ServeHTTP(w, r)

			return
		}

		r, table := plainTables(r)
		if info.Subresource != "" {
			next.ServeHTTP(w, r)

			return
		}

		query := r.URL.Query()
		isWatch := info.Verb == "watch" && beginsWithList(query)

		// The answer to the deletion of a collection has all of its objects.
		if info.Verb != "list" && info.Verb != "deletecollection" && !isWatch {
			next.ServeHTTP(w, r)

			return
		}

		cost := listCost(info, query, table, ledger)

		giveBack, err := budget.take(r.Context(), userName(r), cost)
		if err != nil {
			responsewriters.ErrorNegotiated(apierrors.NewTooManyRequests(err.Error(), 1), codecs, v1alpha1.SchemeGroupVersion, w, r)

			return
		}
		defer giveBack()

		if isWatch { // it goes on for long after the list at its beginning
			defer time.AfterFunc(Timeout, giveBack).Stop()
		}

		next.ServeHTTP(w, r)
	})
}

// sizes is what the ledger knows of the objects of a kind in a namespace; an empty namespace means all.
type sizes interface {
	Stored(resource, namespace string) quota.Use
	// Largest is how many bytes so many of the objects have at most.
	Largest(resource, namespace string, objects int64) int64
}

// listCost returns the memory in bytes that a list, or a watch that begins with one, may take. How much a selector leaves
// out is not known beforehand, so a page counts as many bytes as the largest objects have: all of one tenant may be on it.
func listCost(info *genericapirequest.RequestInfo, query url.Values, table bool, stored sizes) int64 {
	// How many the store reads at the same time does not follow the limit if it reads etcd and selects.
	objects, fromStorage := limitOf(query), mayReadStorage(query)
	if info.Verb == "watch" || fromStorage && selects(query) {
		objects = 0
	}

	if info.Name != "" && info.Namespace != "" { // metadata.name
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

// mayReadStorage reports whether a list may be read from etcd instead of the cache.
func mayReadStorage(query url.Values) bool {
	return query.Has("continue") || query.Get("resourceVersionMatch") == "Exact" || query.Has("limit") && query.Has("resourceVersion")
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

func userName(r *http.Request) string {
	if user, found := genericapirequest.UserFrom(r.Context()); found {
		return user.GetName()
	}

	return ""
}
