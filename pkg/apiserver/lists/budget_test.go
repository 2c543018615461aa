package lists

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"

	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"

	"omni.texashpc.com/omni-cluster-operator/pkg/registry/quota"
)

// fleet is what is stored: in namespace a ten objects of a mebibyte beside 990 of a kibibyte, and as many small ones in others.
type fleet struct{}

func (fleet) Stored(_, namespace string) quota.Use {
	switch namespace {
	case "":
		return quota.Use{Objects: 1990, Bytes: 10<<20 + 1980<<10}
	case "a":
		return quota.Use{Objects: 1000, Bytes: 10<<20 + 990<<10}
	default:
		return quota.Use{}
	}
}

func (f fleet) Largest(resource, namespace string, objects int64) int64 {
	return min(f.Stored(resource, namespace).Bytes, min(objects, 10)<<20+max(objects-10, 0)<<10)
}

// TestCost: what a list is expected to take.
func TestCost(t *testing.T) {
	const (
		mebibyte = 1 << 20
		inA      = 10*mebibyte + 990<<10
		inAll    = 10*mebibyte + 1980<<10
	)

	for _, test := range []struct {
		name, verb, namespace, selected, query, accept string
		want                                           int64
	}{
		{"all", "list", "", "", "", "application/json", inAll},
		{"a namespace", "list", "a", "", "", "application/json", inA},
		{"nothing", "list", "b", "", "limit=5", "application/json", 0},
		{"a page has the large objects, not those of average size", "list", "", "", "limit=500", "application/json", 10*mebibyte + 490<<10},
		{"a small page", "list", "a", "", "limit=1", "application/json", mebibyte},
		{"a limit above all", "list", "a", "", "limit=5000", "application/json", inA},
		{"one by its name", "list", "a", "x", "", "application/json", mebibyte},
		{"one by its name, continued: etcd sends all", "list", "a", "x", "limit=5&continue=x&fieldSelector=metadata.name%3Dx", "application/json", 3 * inA},
		{"a name in every namespace", "list", "", "x", "", "application/json", inAll},
		{"a table", "list", "a", "", "", "application/json;as=Table;v=v1;g=meta.k8s.io,application/json", 4 * inA},
		{"a table, with a space", "list", "a", "", "", "application/json;as =Table;v=v1;g=meta.k8s.io", 4 * inA},
		{"a page from the cache, which ignores limits", "list", "a", "", "limit=1&resourceVersion=0", "application/json", 3 * inA},
		{"the next page", "list", "a", "", "limit=5&continue=x", "application/json", 3 * 5 * mebibyte},
		{"the next page of selected objects: etcd sends more than that", "list", "a", "", "limit=5&continue=x&labelSelector=b", "application/json", 3 * inA},
		{"an old state", "list", "a", "", "resourceVersion=5&resourceVersionMatch=Exact", "application/json", 3 * inA},
		{"a deletion", "deletecollection", "a", "", "", "application/json", inA},
		{"a deletion, from the cache", "deletecollection", "a", "", "resourceVersion=0", "application/json", inA},
		{"a deletion of an old state, which the library reads in pages", "deletecollection", "a", "", "resourceVersion=5", "application/json", 3 * inA},
		{"a watch has no pages", "watch", "a", "", "limit=1", "application/json", inA},
		{"a large watch", "watch", "a", "", "limit=1", "application/json;as=Table;v=v1;g=meta.k8s.io", watchWindow - listOverhead},
	} {
		query, err := url.ParseQuery(test.query)
		if err != nil {
			t.Fatal(err)
		}

		request := httptest.NewRequest(http.MethodGet, "/", nil)
		request.Header.Set("Accept", test.accept)
		_, table := plainTables(request)

		info := &genericapirequest.RequestInfo{Verb: test.verb, Resource: "omniclusters", Namespace: test.namespace, Name: test.selected}
		if got := cost(info, query, table, fleet{}); got != listOverhead+test.want {
			t.Errorf("%s: got %d, want %d", test.name, got, listOverhead+test.want)
		}
	}
}

// TestBeginsWithList: which watches begin with all objects, as the library reads the parameters.
func TestBeginsWithList(t *testing.T) {
	for query, want := range map[string]bool{
		"watch=1": true, "watch=1&resourceVersion=0": true, "watch=1&resourceVersion=7": false,
		"sendInitialEvents=true&resourceVersion=7": true, "sendInitialEvents=1": true, "sendInitialEvents=yes": true, "sendInitialEvents": true,
		"sendInitialEvents=false": false, "sendInitialEvents=FALSE": false, "sendInitialEvents=0&resourceVersion=0": false,
	} {
		values, err := url.ParseQuery(query)
		if err != nil {
			t.Fatal(err)
		}

		if got := beginsWithList(values); got != want {
			t.Errorf("%s: %t", query, got)
		}
	}
}
