package apiserver

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/filters"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/client-go/kubernetes/scheme"
)

// TestGrantFirstInTheChain runs the library's own filters: it tests which questions real requests cause that
// kube-apiserver has passed on.
func TestGrantFirstInTheChain(t *testing.T) {
	const objects = "/apis/omni.texashpc.com/v1alpha1/namespaces/a/omniclusters"

	for _, test := range []struct {
		method, path string
		status       int
		asked        []string
	}{
		{http.MethodGet, objects + "/demo", http.StatusOK, []string{"alice get "}},
		{http.MethodGet, objects + "/demo/status", http.StatusOK, []string{"alice get "}},
		{http.MethodGet, objects, http.StatusForbidden, []string{"alice list "}},
		{http.MethodGet, objects + "?fieldSelector=metadata.name%3Ddemo", http.StatusForbidden, []string{"alice list ", "alice list demo"}},
		{http.MethodDelete, objects + "/demo", http.StatusOK, []string{"alice delete ", "alice delete demo"}},
		{http.MethodDelete, objects + "/other", http.StatusForbidden, []string{"alice delete ", "alice delete other"}},
		{http.MethodGet, "/metrics", http.StatusForbidden, []string{"alice get "}},
	} {
		t.Run(test.method+" "+test.path, func(t *testing.T) {
			asked := &reviewer{allows: map[string]bool{"alice get ": test.path != "/metrics", "alice delete demo": true}}
			served := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
			resolver := &genericapirequest.RequestInfoFactory{APIPrefixes: sets.NewString("apis")}
			chain := filters.WithRequestInfo(filters.WithAuthorization(served, namesLast{asked}, scheme.Codecs), resolver)

			request := httptest.NewRequest(test.method, test.path, nil)
			request = request.WithContext(genericapirequest.WithUser(request.Context(), proxied{&user.DefaultInfo{Name: "alice"}}))
			recorder := httptest.NewRecorder()
			chain.ServeHTTP(recorder, request)

			if recorder.Code != test.status {
				t.Errorf("status %d, want %d", recorder.Code, test.status)
			}

			if diff := cmp.Diff(test.asked, asked.asked); diff != "" {
				t.Errorf("asked (-want +got)\n%s", diff)
			}
		})
	}
}
