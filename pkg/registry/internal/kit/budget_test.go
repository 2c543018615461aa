package kit

import (
	"context"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// clusterOfValues makes a cluster with about the given number of values, in one of the fields that can have many.
func clusterOfValues(place string, count int) *v1alpha1.OmniCluster {
	text := []byte(`{"a":[` + strings.TrimSuffix(strings.Repeat("1,", count), ",") + `]}`)
	cluster := &v1alpha1.OmniCluster{}

	switch place {
	case "free-form block":
		cluster.Spec.Patches = []v1alpha1.Patch{{Inline: &v1alpha1.FreeForm{Raw: text}}}
	case "managed fields":
		cluster.ManagedFields = []metav1.ManagedFieldsEntry{{FieldsV1: metav1.NewFieldsV1(string(text)), Time: &metav1.Time{}}}
	case "labels":
		cluster.Labels = map[string]string{}
		for i := range count / 2 {
			cluster.Labels[strings.Repeat("x", i%100)+string(rune(i))] = ""
		}
	case "list":
		cluster.Spec.KernelArgs = make([]string, count)
	}

	return cluster
}

func TestCostOfAnUpdate(t *testing.T) {
	if cost := costOf(clusterOfSize(1)); cost < 6<<10 || cost > 500<<10 {
		t.Errorf("a small object costs %d bytes", cost)
	}

	for _, place := range []string{"free-form block", "managed fields", "labels", "list"} {
		if cost := costOf(clusterOfValues(place, 20_000)); cost < 20<<20 || cost > 60<<20 {
			t.Errorf("20,000 values in the %s cost %d MiB", place, cost>>20)
		}
	}
}

// A patch can have a block read level by level, and each level keeps the rest of its text.
func TestCostOfADeepObject(t *testing.T) {
	text := strings.Repeat(`{"a":`, 100) + `"` + strings.Repeat("x", 200<<10) + `"` + strings.Repeat("}", 100)

	for place, object := range map[string]*v1alpha1.OmniCluster{
		"free-form block": {Spec: v1alpha1.OmniClusterSpec{Patches: []v1alpha1.Patch{{Inline: &v1alpha1.FreeForm{Raw: []byte(text)}}}}},
		"managed fields":  {ObjectMeta: metav1.ObjectMeta{ManagedFields: []metav1.ManagedFieldsEntry{{FieldsV1: metav1.NewFieldsV1(text)}}}},
	} {
		if cost := costOf(object); cost < 20<<20 || cost > 40<<20 {
			t.Errorf("100 levels of 200 KiB in a %s cost %d MiB", place, cost>>20)
		}
	}
}

// TestUpdatesShareABudget: an update of a large object waits for others, but no longer than its request lasts.
func TestUpdatesShareABudget(t *testing.T) {
	info := func() *weighed {
		return &weighed{UpdatedObjectInfo: rest.DefaultUpdatedObjectInfo(&v1alpha1.OmniCluster{})}
	}

	first, second, small := info(), info(), info()
	large := clusterOfValues("free-form block", 50_000)

	for range 2 { // as after a conflict
		if _, err := first.UpdatedObject(t.Context(), large); err != nil {
			t.Fatal(err)
		}
	}

	another := genericapirequest.WithUser(t.Context(), &user.DefaultInfo{Name: "another"}) // the first one's half is used up
	if _, err := small.UpdatedObject(another, &v1alpha1.OmniCluster{}); err != nil {
		t.Fatal(err)
	}

	impatient, cancel := context.WithCancel(t.Context())
	cancel()

	if _, err := second.UpdatedObject(impatient, large); !apierrors.IsTooManyRequests(err) {
		t.Errorf("got %v, want to be asked to come again", err)
	}

	second.release()
	first.release()

	if _, err := second.UpdatedObject(t.Context(), large); err != nil {
		t.Error(err)
	}

	// A conflict shows an object that has become large meanwhile: it is weighed again.
	if _, err := small.UpdatedObject(impatient, large); !apierrors.IsTooManyRequests(err) {
		t.Errorf("got %v, want to be asked to come again", err)
	}

	small.release() // as at the end of the request, which holds nothing
	second.release()

	if _, err := small.UpdatedObject(t.Context(), large); err != nil {
		t.Error(err)
	}

	small.release()

	all, err := updates.Take(impatient, updatesBudget)
	if err != nil {
		t.Fatal("something was not given back")
	}

	all()
}
