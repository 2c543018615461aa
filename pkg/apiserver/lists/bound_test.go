package lists

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/watch"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/install"
	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/registry/quota"
)

// source is a store that is empty, and filled when it is told.
type source struct{ filled *atomic.Bool }

func (s source) List(context.Context, *metainternalversion.ListOptions) (runtime.Object, error) {
	return &v1alpha1.OmniClusterList{ListMeta: metav1.ListMeta{ResourceVersion: "1"}}, nil
}

func (s source) Watch(context.Context, *metainternalversion.ListOptions) (watch.Interface, error) {
	return watch.NewFake(), nil
}

func (s source) ReadinessCheck() error {
	if !s.filled.Load() {
		return errors.New("not yet")
	}

	return nil
}

// TestListsWaitForTheLedger: after a start nothing is known of what is stored until all has been counted, so lists and
// templates wait; all else goes on.
func TestListsWaitForTheLedger(t *testing.T) {
	scheme := runtime.NewScheme()
	install.Install(scheme)
	metav1.AddToGroupVersion(scheme, v1alpha1.SchemeGroupVersion)

	codecs := serializer.NewCodecFactory(scheme)
	ledger := quota.NewLedger(quota.Limits{}, install.StorageCodec(scheme))
	slow, quick := source{&atomic.Bool{}}, source{&atomic.Bool{}}
	quick.filled.Store(true)
	ledger.Follow(t.Context(), map[string]quota.Source{
		"omniworkers": slow, "omniclusters": quick, "omnicontrolplanes": quick, "omnimachines": quick,
	})

	budget := newListBudget(1<<20, Timeout)
	served := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})

	ask := func(timeout time.Duration, verb, resource, subresource string) (int, string) {
		budget.timeout = timeout
		request, answer := httptest.NewRequest(http.MethodGet, "/", nil), httptest.NewRecorder()
		info := &genericapirequest.RequestInfo{
			IsResourceRequest: true, APIGroup: v1alpha1.GroupName, Verb: verb, Resource: resource, Subresource: subresource, Namespace: "a",
		}
		withListBudget(served, budget, ledger, codecs, time.Minute).ServeHTTP(answer, request.WithContext(genericapirequest.WithRequestInfo(t.Context(), info)))

		return answer.Code, answer.Header().Get("Retry-After")
	}

	for _, c := range []struct {
		verb, resource, subresource string
		want                        int
	}{
		{"list", "omniworkers", "", http.StatusTooManyRequests},
		{"watch", "omniworkers", "", http.StatusTooManyRequests},
		{"list", "omniclusters", "", http.StatusTooManyRequests},
		{"get", "omniclusters", "template", http.StatusTooManyRequests},
		{"get", "omniworkers", "", http.StatusOK},
		{"create", "omniworkers", "", http.StatusOK},
	} {
		if got, after := ask(20*time.Millisecond, c.verb, c.resource, c.subresource); got != c.want || (after != "") != (got != http.StatusOK) {
			t.Errorf("%s %s/%s: status %d, Retry-After %q", c.verb, c.resource, c.subresource, got, after)
		}
	}

	time.AfterFunc(100*time.Millisecond, func() { slow.filled.Store(true) })

	for _, resource := range []string{"omniworkers", "unknown"} {
		if got, _ := ask(time.Minute, "list", resource, ""); got != http.StatusOK {
			t.Errorf("%s: status %d", resource, got)
		}
	}
}
