package kit

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	"k8s.io/apiserver/pkg/storage"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/install"
	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// clusterStrategy has no rules but those of the kit.
func clusterStrategy() strategy[*v1alpha1.OmniCluster] {
	scheme := runtime.NewScheme()
	install.Install(scheme)

	accept := func(*v1alpha1.OmniCluster) field.ErrorList { return nil }

	return newStrategy(&Descriptor[*v1alpha1.OmniCluster]{
		Kind:   "OmniCluster",
		New:    func() *v1alpha1.OmniCluster { return &v1alpha1.OmniCluster{} },
		Spec:   PartOf(func(o *v1alpha1.OmniCluster) *v1alpha1.OmniClusterSpec { return &o.Spec }),
		Status: PartOf(func(o *v1alpha1.OmniCluster) *v1alpha1.OmniClusterStatus { return &o.Status }),
		Validation: Validation[*v1alpha1.OmniCluster]{
			Create: accept,
			Update: func(obj, _ *v1alpha1.OmniCluster) field.ErrorList { return accept(obj) },
		},
	}, scheme)
}

func clusterOfSize(kibibytes int) *v1alpha1.OmniCluster {
	return &v1alpha1.OmniCluster{Spec: v1alpha1.OmniClusterSpec{ClusterName: strings.Repeat("x", kibibytes<<10)}}
}

func clusterOfDepth(levels int) *v1alpha1.OmniCluster {
	raw := strings.Repeat(`{"a":`, levels) + "1" + strings.Repeat("}", levels)

	return &v1alpha1.OmniCluster{Spec: v1alpha1.OmniClusterSpec{Patches: []v1alpha1.Patch{{Inline: &v1alpha1.FreeForm{Raw: []byte(raw)}}}}}
}

func TestSpecIsBounded(t *testing.T) {
	const tooLong = "spec: Too long: has 1101 KiB, at most 1024 KiB fit: read parts of it with valueFrom"

	labelled := clusterOfSize(1100)
	labelled.ObjectMeta = metav1.ObjectMeta{Labels: map[string]string{"a": "b"}}

	const tooMany = "spec: Invalid value: has more than 50000 values: read parts of it with valueFrom"

	const tooDeep = "spec: Invalid value: is nested deeper than 256 levels: make it flatter"

	// The kinds' own rules do not run while an object is being deleted; the limits of the kit do.
	deep := clusterOfDepth(9000)
	deep.DeletionTimestamp = &metav1.Time{Time: time.Unix(0, 0)}

	tests := []struct {
		name     string
		old, obj *v1alpha1.OmniCluster
		want     string
	}{
		{"new, below", nil, clusterOfSize(1000), ""},
		{"new, beyond", nil, clusterOfSize(1100), tooLong},
		{"grown, below", clusterOfSize(1), clusterOfSize(1000), ""},
		{"grown beyond", clusterOfSize(1000), clusterOfSize(1100), tooLong},
		{"stored by an older version, metadata changed", clusterOfSize(1100), labelled, ""},
		{"new, many values", nil, clusterOfValues("free-form block", 49_000), ""},
		{"new, too many values", nil, clusterOfValues("free-form block", 50_000), tooMany},
		{"grown to too many values", clusterOfSize(1), clusterOfValues("list", 50_000), tooMany},
		{"stored by an older version with too many values", clusterOfValues("list", 50_000), clusterOfValues("list", 50_000), ""},
		{"new, nested", nil, clusterOfDepth(200), ""},
		{"new, nested too deep", nil, clusterOfDepth(300), tooDeep},
		{"nested too deep while being deleted", clusterOfSize(1), deep, tooDeep},
		{"stored by an older version, shrunk", clusterOfSize(1100), clusterOfSize(1), ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var errs field.ErrorList
			if test.old == nil {
				errs = clusterStrategy().Validate(t.Context(), test.obj)
			} else {
				clusterStrategy().PrepareForUpdate(t.Context(), test.obj, test.old)
				errs = clusterStrategy().ValidateUpdate(t.Context(), test.obj, test.old)
			}

			got := ""
			if err := errs.ToAggregate(); err != nil {
				got = err.Error()
			}

			if got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func ownedToDepth(levels int, changes ...func(*v1alpha1.OmniCluster)) *v1alpha1.OmniCluster {
	o := clusterOfSize(1)
	o.ManagedFields = []metav1.ManagedFieldsEntry{{}, {FieldsV1: metav1.NewFieldsV1(strings.Repeat(`{"f:a":`, levels-1) + "{}" + strings.Repeat("}", levels-1))}}

	for _, change := range changes {
		change(o)
	}

	return o
}

// TestOwnershipIsBounded: on every write, whatever it changes.
func TestOwnershipIsBounded(t *testing.T) {
	const tooDeep = "metadata.managedFields[1].fieldsV1: Invalid value: is nested deeper than 258 levels, which no object of this kind needs: remove this entry"

	main := clusterStrategy()
	main.descriptor.Validation.StatusUpdate = main.descriptor.Validation.Update
	status := statusStrategy[*v1alpha1.OmniCluster]{main}
	deleted := func(o *v1alpha1.OmniCluster) { o.DeletionTimestamp = &metav1.Time{Time: time.Unix(0, 0)} }
	other := func(o *v1alpha1.OmniCluster) { o.Spec.ClusterName = "other" }

	for name, test := range map[string]struct {
		errs field.ErrorList
		want string
	}{
		"new, below":                           {main.Validate(t.Context(), ownedToDepth(258)), ""},
		"new, beyond":                          {main.Validate(t.Context(), ownedToDepth(259)), tooDeep},
		"changed, below":                       {main.ValidateUpdate(t.Context(), ownedToDepth(258, other), ownedToDepth(1)), ""},
		"changed, beyond":                      {main.ValidateUpdate(t.Context(), ownedToDepth(259, other), ownedToDepth(258)), tooDeep},
		"nothing else changed":                 {main.ValidateUpdate(t.Context(), ownedToDepth(259), ownedToDepth(1)), tooDeep},
		"while being deleted":                  {main.ValidateUpdate(t.Context(), ownedToDepth(9000, deleted), ownedToDepth(1, deleted)), tooDeep},
		"a status":                             {status.ValidateUpdate(t.Context(), ownedToDepth(9000), ownedToDepth(1)), tooDeep},
		"stored by an older version":           {main.ValidateUpdate(t.Context(), ownedToDepth(400, deleted), ownedToDepth(400)), ""},
		"stored by an older version, a status": {status.ValidateUpdate(t.Context(), ownedToDepth(400), ownedToDepth(400)), ""},
		"stored by an older version, deeper":   {main.ValidateUpdate(t.Context(), ownedToDepth(401), ownedToDepth(400)), tooDeep},
	} {
		t.Run(name, func(t *testing.T) {
			got := ""
			if err := test.errs.ToAggregate(); err != nil {
				got = err.Error()
			}

			if got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestExplainTooLarge(t *testing.T) {
	const text = "etcdserver: request is too large"

	for _, err := range []error{errors.New(text), storage.NewInternalError(errors.New(text)), apierrors.NewInternalError(errors.New(text))} {
		got := explainTooLarge(err)

		// The answer to the client.
		status := responsewriters.ErrorToAPIStatus(got)
		if !apierrors.IsRequestEntityTooLargeError(got) || status.Code != http.StatusRequestEntityTooLarge || strings.Contains(status.Message, "etcdserver") {
			t.Errorf("%v: got %v, status %+v", err, got, status)
		}

		// By this code and text the library's handlers know that the object may fit without managed fields.
		known, ok := got.(interface{ Code() codes.Code })
		if !ok || known.Code() != codes.InvalidArgument || got.Error() != text {
			t.Errorf("%v: the handlers do not know %v", err, got)
		}
	}

	if other := errors.New("other"); !errors.Is(explainTooLarge(other), other) || explainTooLarge(nil) != nil {
		t.Error("another error was replaced")
	}
}

func TestStatusKeepsReady(t *testing.T) {
	seeded := metav1.Condition{Type: "Ready", Status: "Unknown", Reason: "Pending"}
	reconciling := metav1.Condition{Type: "Reconciling", Status: "True", Reason: "Pending"}
	synced := metav1.Condition{Type: "Synced", Status: "True", Reason: "Applied"}
	ready := metav1.Condition{Type: "Ready", Status: "True", Reason: "Running"}

	tests := []struct {
		name     string
		written  []metav1.Condition
		want     []metav1.Condition
		observed int64
	}{
		{"none", nil, []metav1.Condition{seeded, reconciling}, -1},
		{"others only", []metav1.Condition{synced}, []metav1.Condition{synced, seeded, reconciling}, -1},
		{"with Ready", []metav1.Condition{ready}, []metav1.Condition{ready}, 3},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			obj := &v1alpha1.OmniCluster{}
			obj.Status.ObservedGeneration, obj.Status.Conditions = 3, test.written
			statusStrategy[*v1alpha1.OmniCluster]{clusterStrategy()}.PrepareForUpdate(t.Context(), obj, &v1alpha1.OmniCluster{})

			if obj.Status.ObservedGeneration != test.observed || len(obj.Status.Conditions) != len(test.want) {
				t.Fatalf("got %d %v", obj.Status.ObservedGeneration, obj.Status.Conditions)
			}

			for i, want := range test.want {
				if got := obj.Status.Conditions[i]; got.Type != want.Type || got.Status != want.Status || got.Reason != want.Reason {
					t.Errorf("condition %d is %v, want %v", i, got, want)
				}
			}
		})
	}
}
