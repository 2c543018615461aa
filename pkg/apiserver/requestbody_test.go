package apiserver_test

import (
	"bytes"
	"compress/gzip"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"omni.texashpc.com/omni-cluster-operator/test/foreigntest"
)

const (
	yamlBody  = "application/yaml"
	jsonBody  = "application/json"
	applyBody = "application/apply-patch+yaml"
	mergeBody = "application/merge-patch+json"
	patchBody = "application/json-patch+json"

	// bodyMemory is what a refused request may take from the heap, in bytes: its text some times over.
	bodyMemory = 48 << 20
)

// aliased is a YAML object that aliases would expand to 100 MB, and to half a gigabyte in the library.
func aliased(kind, member string) string {
	return "apiVersion: omni.texashpc.com/v1alpha1\nkind: " + kind + "\nmetadata:\n  name: one\n  annotations:\n    a: &a " + strings.Repeat("x", 20<<10) +
		"\n" + member + ":\n  nonsense: [" + strings.TrimSuffix(strings.Repeat("*a,", 5000), ",") + "]\n"
}

// TestAliasesAreRefused: wherever the library reads YAML, an alias is refused before it is expanded.
func TestAliasesAreRefused(t *testing.T) {
	s := startServer(t)
	s.makeTemplate(t)

	options := strings.Replace(aliased("DeleteOptions", "dryRun"), "omni.texashpc.com/v1alpha1", "meta.k8s.io/v1", 1)

	for _, test := range []struct{ method, path, contentType, body string }{
		{http.MethodPost, clusters, yamlBody, aliased("OmniCluster", "spec")},
		{http.MethodPost, clusters + "?dryRun=All&fieldValidation=Strict", yamlBody + "; charset=utf-8", aliased("OmniCluster", "spec")},
		{http.MethodPut, clusters + "/one", yamlBody, aliased("OmniCluster", "spec")},
		{http.MethodPut, clusters + "/one/status", yamlBody, aliased("OmniCluster", "status")},
		{http.MethodPatch, clusters + "/one?fieldManager=a", applyBody, aliased("OmniCluster", "spec")},
		{http.MethodPatch, clusters + "/new?fieldManager=a", applyBody + "; x", aliased("OmniCluster", "spec")},
		{http.MethodPatch, clusters + "/one/status?fieldManager=a", applyBody, aliased("OmniCluster", "status")},
		{http.MethodPut, workers + "/x/scale", yamlBody, aliased("Scale", "spec")},
		{http.MethodPatch, workers + "/x/scale?fieldManager=a", applyBody, aliased("Scale", "spec")},
		{http.MethodDelete, clusters + "/one", yamlBody, options},
		{http.MethodDelete, clusters, yamlBody, options},
		{http.MethodPost, clusters, yamlBody, "a: &a [*a]"},
		{http.MethodPost, clusters, yamlBody, "a: &a {b: c}\nd:\n  <<: *a\n"},
	} {
		t.Run(test.method+" "+test.path, func(t *testing.T) {
			foreigntest.WantAllocated(t, bodyMemory, func() {
				answer := s.mustCall(t, http.StatusBadRequest, test.method, test.path, test.contentType, test.body)
				if message, _ := answer["message"].(string); answer["kind"] != "Status" || !strings.Contains(message, "write each value out where it belongs") {
					t.Errorf("%v: %q", answer["kind"], message)
				}
			})
		})
	}
}

// Text that only looks like it has aliases is accepted.
func TestNoAliases(t *testing.T) {
	s := startServer(t)
	manifest := "apiVersion: omni.texashpc.com/v1alpha1\nkind: OmniCluster\nmetadata:\n  name: %\n  annotations:\n    a: '*a &a'\n    b: |\n      - &a 1\n      - *a\n" +
		"spec: {connectionRef: {name: main}, kubernetes: {version: v1.34.1}, talos: {version: v1.11.2}}\n"

	s.mustCall(t, http.StatusCreated, http.MethodPost, clusters, yamlBody, strings.ReplaceAll(manifest, "%", "a"))
	s.mustCall(t, http.StatusCreated, http.MethodPatch, clusters+"/b?fieldManager=a", applyBody, strings.ReplaceAll(manifest, "%", "b"))
	s.mustCall(t, http.StatusCreated, http.MethodPost, clusters, jsonBody, strings.Replace(clusterJSON("c"), `"metadata":{`, `"metadata":{"annotations":{"a":"*a &a"},`, 1))
}

// dense returns an OmniCluster with the given number of values in one field.
func dense(place string, count int) string {
	object := strings.Replace(clusterJSON("dense"), numbers, `{}`, 1)
	list := "[" + strings.TrimSuffix(strings.Repeat("{},", count), ",") + "]"

	switch place {
	case "managed fields", "owner references":
		name := map[string]string{"managed fields": "managedFields", "owner references": "ownerReferences"}[place]

		return strings.Replace(object, `"metadata":{`, `"metadata":{"`+name+`":`+list+`,`, 1)
	case "patches":
		return strings.Replace(object, `"spec":{`, `"spec":{"patches":`+list+`,`, 1)
	case "inline":
		return strings.Replace(clusterJSON("dense"), numbers, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"n"},"a":`+list+`}`, 1)
	default:
		return strings.Replace(object, `"spec":{`, `"spec":{"`+place+`":`+list+`,`, 1)
	}
}

// TestManyValuesAreRefused: the number of values in a JSON body is bounded, too.
func TestManyValuesAreRefused(t *testing.T) {
	s := startServer(t)

	for _, place := range []string{"managed fields", "owner references", "patches", "inline", "nonsense"} {
		body := dense(place, 300_000)

		for contentType, send := range map[string]func(string) (int, map[string]any){
			jsonBody: func(body string) (int, map[string]any) {
				return s.call(t, http.MethodPost, clusters, jsonBody, body)
			},
			yamlBody: func(body string) (int, map[string]any) {
				return s.call(t, http.MethodPost, clusters, yamlBody, "# YAML\n"+body)
			},
			applyBody: func(body string) (int, map[string]any) {
				return s.call(t, http.MethodPatch, clusters+"/dense?fieldManager=a", applyBody, body)
			},
			mergeBody: func(body string) (int, map[string]any) {
				return s.call(t, http.MethodPatch, clusters+"/dense", mergeBody, body)
			},
			patchBody: func(body string) (int, map[string]any) {
				return s.call(t, http.MethodPatch, clusters+"/dense", patchBody, `[{"op":"add","path":"/spec","value":`+body+`}]`)
			},
		} {
			limit := uint64(bodyMemory)
			if contentType == yamlBody {
				limit = 400 << 20 // it is parsed to be counted
			}

			foreigntest.WantAllocated(t, limit, func() {
				status, answer := send(body)
				if message, _ := answer["message"].(string); status != http.StatusRequestEntityTooLarge || !strings.Contains(message, "more than 100000 values") {
					t.Errorf("%s as %s: status %d: %q", place, contentType, status, message)
				}
			})
		}
	}
}

// TestDeepPatchesAreBounded: the library that merges patches keeps the rest of the text at each level. A long and deep patch
// is refused, and others run one after another if they take much.
func TestDeepPatchesAreBounded(t *testing.T) {
	s := startServer(t, withSmallBodies())
	s.mustCall(t, http.StatusCreated, http.MethodPost, clusters, jsonBody, clusterJSON("deep"))

	patch := func(contentType string, levels int) string {
		value := deepValue(levels)
		if contentType == patchBody {
			return `[{"op":"add","path":"/spec/nothing","value":` + value + `},{"op":"test","path":"/spec/nothing` + strings.Repeat("/a", levels) + `","value":1}]`
		}

		return `{"spec":{"nothing":` + value + "}}"
	}

	send := func(contentType string, levels int) []int {
		status := make([]int, foreigntest.AtOnce(4))

		var sending sync.WaitGroup
		for i := range status {
			sending.Go(func() {
				status[i], _ = s.call(t, http.MethodPatch, clusters+"/deep", contentType, patch(contentType, levels))
			})
		}

		sending.Wait()

		return status
	}

	for _, contentType := range []string{mergeBody, strategicBody, patchBody} {
		for _, levels := range []int{260, 90} {
			var got []int

			// What one of 90 levels takes, and twice as much before garbage is collected.
			foreigntest.WantPeak(t, 400<<20, func() { got = send(contentType, levels) })

			for _, status := range got {
				if refused := status == http.StatusRequestEntityTooLarge; refused != (levels > 90) {
					t.Errorf("%d levels as %s: status %d", levels, contentType, status)
				}
			}
		}
	}
}

// TestDeepCreateIsBounded: who owns a false is found out before any rule has seen how deep the object is.
func TestDeepCreateIsBounded(t *testing.T) {
	s := startServer(t)

	const levels = 990

	values := strings.Repeat(`{"a":`, levels) + `"` + strings.Repeat("x", 900<<10) + `"` + strings.Repeat("}", levels)
	body := strings.Replace(releaseJSON("deep", values), `"spec":{`, `"spec":{"suspend":false,`, 1)

	foreigntest.WantPeak(t, 100<<20, func() { s.mustCall(t, http.StatusUnprocessableEntity, http.MethodPost, releases, jsonBody, body) })
}

// TestManyErrors: an object that is wrong in thousands of places is refused without thousands of errors.
func TestManyErrors(t *testing.T) {
	s := startServer(t)

	foreigntest.WantAllocated(t, 256<<20, func() {
		answer := s.mustCall(t, http.StatusUnprocessableEntity, http.MethodPost, clusters, jsonBody, dense("patches", 5000))
		if message, _ := answer["message"].(string); !strings.Contains(message, "9900 more errors are not shown") || len(message) > 64<<10 {
			t.Errorf("%d bytes: %.300s", len(message), message)
		}
	})
}

// TestCopiesAreBounded: a small JSON patch cannot make a large object.
func TestCopiesAreBounded(t *testing.T) {
	s := startServer(t)
	s.mustCall(t, http.StatusCreated, http.MethodPost, clusters, jsonBody, dense("inline", 20_000))

	operations := strings.Repeat(`,{"op":"copy","from":"/spec/kubernetes/manifests/0","path":"/spec/kubernetes/manifests/-"}`, 40)

	foreigntest.WantAllocated(t, 256<<20, func() {
		s.mustCall(t, http.StatusUnprocessableEntity, http.MethodPatch, clusters+"/dense", patchBody, "["+operations[1:]+"]")
	})
}

// TestDeepCopiesAreBounded: copies can make a value far deeper than the request's body is.
func TestDeepCopiesAreBounded(t *testing.T) {
	s := startServer(t)
	s.mustCall(t, http.StatusCreated, http.MethodPost, clusters, jsonBody, clusterJSON("deep"))

	operations := `[{"op":"add","path":"/spec/nothing","value":` + strings.Repeat("[", 900) + strings.Repeat("]", 900) + "}"
	bottom := "/spec/nothing"

	for levels := 900; levels <= 3600; levels *= 2 {
		operations += `,{"op":"copy","from":"/spec/nothing","path":"/spec/nothing` + strings.Repeat("/0", levels-1) + `/-"}`
		bottom = "/spec/nothing" + strings.Repeat("/0", 2*levels-1)
	}

	operations += `,{"op":"add","path":"` + bottom + `/-","value":"` + strings.Repeat("x", 200<<10) + `"}` +
		`,{"op":"copy","from":"/spec/nothing","path":"/spec/other"}` +
		`,{"op":"test","path":"` + strings.Replace(bottom, "nothing", "other", 1) + `/0","value":1}]`

	foreigntest.WantPeak(t, 100<<20, func() {
		s.mustCall(t, http.StatusRequestEntityTooLarge, http.MethodPatch, clusters+"/deep", patchBody, operations)
	})
}

// TestShortPatchesOfDeepObjects: a patch of a few hundred bytes has a stored block read level by level, as a merge does. On a
// slow machine those that wait for their turn too long are asked to try again.
func TestShortPatchesOfDeepObjects(t *testing.T) {
	s := startServer(t)

	const levels = 127

	times := foreigntest.AtOnce(16)

	values := strings.Repeat(`{"a":`, levels) + `"` + strings.Repeat("x", 250<<10) + `"` + strings.Repeat("}", levels)
	s.mustCall(t, http.StatusCreated, http.MethodPost, releases, jsonBody, releaseJSON("deep", values))

	merge := strings.Repeat(`{"a":`, levels) + "1" + strings.Repeat("}", levels)

	for contentType, patch := range map[string]string{
		patchBody: `[{"op":"test","path":"/spec/chart/values` + strings.Repeat("/a", levels) + `","value":1}]`,
		mergeBody: `{"spec":{"chart":{"chart":"","values":` + merge + `}}}`,
	} {
		// What may be changed at the same time, and twice as much before garbage is collected.
		foreigntest.WantPeak(t, 256<<20, func() {
			var (
				sending sync.WaitGroup
				read    atomic.Int32
			)

			for range times {
				sending.Go(func() {
					switch status, answer := s.call(t, http.MethodPatch, releases+"/deep", contentType, patch); status {
					case http.StatusUnprocessableEntity:
						read.Add(1)
					case http.StatusTooManyRequests:
					default:
						t.Errorf("%s: status %d: %v", contentType, status, answer["message"])
					}
				})
			}

			sending.Wait()

			if read.Load() < 2 {
				t.Errorf("%s: %d of %d patches were read", contentType, read.Load(), times)
			}
		})
	}
}

// A compressed body is not inflated.
func TestCompressedBody(t *testing.T) {
	s := startServer(t)

	packed := &bytes.Buffer{}
	writer := gzip.NewWriter(packed)

	if _, err := writer.Write(bytes.Repeat([]byte(" "), 1<<20)); err != nil || writer.Close() != nil {
		t.Fatal(err)
	}

	body := bytes.Repeat(packed.Bytes(), 64) // parts of a gzip text stand one after another

	for contentType, path := range map[string]string{jsonBody: clusters, yamlBody: clusters} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url+path, bytes.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}

		request.Header.Set("Content-Type", contentType)
		request.Header.Set("Content-Encoding", "gzip")

		foreigntest.WantAllocated(t, bodyMemory, func() {
			if status, answer := s.do(t, request); status != http.StatusBadRequest {
				t.Errorf("%s: status %d: %s", contentType, status, answer)
			}
		})
	}
}
