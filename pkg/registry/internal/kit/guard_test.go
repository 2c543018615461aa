package kit

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/warning"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// Whoever deletes with the policy Orphan means to keep something. What would be destroyed all the same is named, and how it is kept.
func TestGuardRefusesOrphan(t *testing.T) {
	orphan, background, yes := metav1.DeletePropagationOrphan, metav1.DeletePropagationBackground, true
	asks := &metav1.DeleteOptions{PropagationPolicy: &orphan}

	for name, test := range map[string]struct {
		options *metav1.DeleteOptions
		does    func(*v1alpha1.OmniCluster) Deletion
		change  func(*v1alpha1.OmniCluster)
		refused bool
	}{
		"with orphan":                      {asks, destroys, nil, true},
		"in its former spelling":           {&metav1.DeleteOptions{OrphanDependents: &yes}, destroys, nil, true}, //nolint:staticcheck // clients still send it
		"tried":                            {&metav1.DeleteOptions{PropagationPolicy: &orphan, DryRun: []string{metav1.DryRunAll}}, destroys, nil, true},
		"in the background":                {&metav1.DeleteOptions{PropagationPolicy: &background}, destroys, nil, false},
		"without options":                  {nil, destroys, nil, false},
		"of what keeps it":                 {asks, keeps, nil, false},
		"of a kind that destroys nothing":  {asks, nil, nil, false},
		"of what is being deleted already": {asks, destroys, func(o *v1alpha1.OmniCluster) { o.DeletionTimestamp = new(metav1.Now()) }, false},
		"confirmed":                        {asks, destroys, confirm("demo"), false},
		"confirmed for another":            {asks, destroys, confirm("other"), true},
	} {
		t.Run(name, func(t *testing.T) {
			object := demo(test.change)

			err := guardOf(&Descriptor[*v1alpha1.OmniCluster]{Plural: "omniclusters", Deletion: test.does})(t.Context(), object, test.options)
			if (err != nil) != test.refused {
				t.Fatalf("%v", err)
			}

			if err != nil && (!apierrors.IsForbidden(err) || !strings.Contains(err.Error(),
				"deleting it destroys the cluster; keep it so. To delete it all the same, annotate it with omni.texashpc.com/confirm-deletion=demo first")) {
				t.Errorf("%v", err)
			}
		})
	}

	first := errors.New("confirm")
	guard := guardOf(&Descriptor[*v1alpha1.OmniCluster]{
		DeleteGuard: func(context.Context, *v1alpha1.OmniCluster) error { return first }, Deletion: destroys,
	})

	if err := guard(t.Context(), &v1alpha1.OmniCluster{}, asks); !errors.Is(err, first) {
		t.Errorf("the guard of the kind comes first: %v", err)
	}
}

func destroys(*v1alpha1.OmniCluster) Deletion {
	return Deletion{Does: "destroys the cluster", Keep: "keep it so"}
}

func keeps(*v1alpha1.OmniCluster) Deletion { return Deletion{} }

func confirm(name string) func(*v1alpha1.OmniCluster) {
	return func(o *v1alpha1.OmniCluster) {
		o.Annotations = map[string]string{v1alpha1.AnnotationConfirmDeletion: name}
	}
}

func demo(change func(*v1alpha1.OmniCluster)) *v1alpha1.OmniCluster {
	object := &v1alpha1.OmniCluster{ObjectMeta: metav1.ObjectMeta{Name: "demo"}}
	if change != nil {
		change(object)
	}

	return object
}

// deletionBy is the context of a deletion by a user, with this verb.
func deletionBy(ctx context.Context, name, verb string) context.Context {
	return request.WithRequestInfo(request.WithUser(ctx, &user.DefaultInfo{Name: name}), &request.RequestInfo{Verb: verb})
}

// A patch of metadata.ownerReferences has the garbage collector delete an object. It has to be confirmed, for every kind.
func TestGuardRefusesGarbageCollector(t *testing.T) {
	for name, test := range map[string]struct {
		user, verb string
		does       func(*v1alpha1.OmniCluster) Deletion
		change     func(*v1alpha1.OmniCluster)
		refused    string
	}{
		"with an account of its own": {garbageCollector, "delete", destroys, nil, "the garbage collector may delete it, which destroys the cluster, only when that is confirmed"},
		"without one":                {"system:kube-controller-manager", "delete", destroys, nil, "which destroys the cluster"},
		"of what destroys nothing":   {garbageCollector, "delete", nil, nil, "the garbage collector may delete it, only when"},
		"confirmed":                  {garbageCollector, "delete", destroys, confirm("demo"), ""},
		"confirmed for another":      {garbageCollector, "delete", destroys, confirm("other"), "omni.texashpc.com/confirm-deletion=demo"},
		"being deleted already": {garbageCollector, "delete", destroys, func(o *v1alpha1.OmniCluster) {
			o.DeletionTimestamp, o.Finalizers = new(metav1.Now()), []string{metav1.FinalizerDeleteDependents}
		}, ""},
		"the namespace controller":                {namespaceController, "deletecollection", destroys, nil, ""},
		"the namespace controller without a name": {"system:kube-controller-manager", "deletecollection", destroys, nil, ""},
		"somebody":                          {"alice", "delete", destroys, nil, ""},
		"an account of that name elsewhere": {"system:serviceaccount:apps:generic-garbage-collector", "delete", destroys, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			err := guardOf(&Descriptor[*v1alpha1.OmniCluster]{Kind: "OmniCluster", Plural: "omniclusters", Deletion: test.does})(
				deletionBy(t.Context(), test.user, test.verb), demo(test.change), nil)

			switch {
			case test.refused == "" && err != nil:
				t.Error(err)
			case test.refused != "" && (!apierrors.IsForbidden(err) || !strings.Contains(err.Error(), test.refused) || !strings.Contains(err.Error(), "remove metadata.ownerReferences")):
				t.Errorf("got %v", err)
			}
		})
	}
}

// No person sees what the garbage collector was answered: the log has it, and not each of its attempts.
func TestRefusedGarbageCollectorIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := ktesting.NewLogger(t, ktesting.NewConfig(ktesting.BufferLogs(true)))
		ctx := klog.NewContext(deletionBy(t.Context(), garbageCollector, "delete"), log)
		guard := guardOf(&Descriptor[*v1alpha1.OmniCluster]{Kind: "OmniCluster", Plural: "omniclusters"})

		for _, pause := range []time.Duration{0, time.Second, time.Second, refusedTold} {
			time.Sleep(pause)

			if err := guard(ctx, demo(nil), nil); err == nil {
				t.Error("it is allowed")
			}
		}

		if err := guard(ctx, demo(confirm("demo")), nil); err != nil {
			t.Error(err)
		}

		sink, _ := log.GetSink().(ktesting.Underlier)
		said := sink.GetBuffer().String()

		for _, want := range []string{`annotation="omni.texashpc.com/confirm-deletion=demo"`, "refused=1\n", "refused=3\n"} {
			if strings.Count(said, "Refused a deletion") != 2 || !strings.Contains(said, want) {
				t.Errorf("want %s in two lines, got %s", want, said)
			}
		}
	})
}

func TestByNamespaceController(t *testing.T) {
	for _, test := range []struct {
		user, verb string
		want       bool
	}{
		{namespaceController, "deletecollection", true},
		{namespaceController, "delete", true},
		{"system:kube-controller-manager", "deletecollection", true},
		{"system:kube-controller-manager", "delete", false},
		{"alice", "deletecollection", false},
	} {
		if got := ByNamespaceController(deletionBy(t.Context(), test.user, test.verb)); got != test.want {
			t.Errorf("%s %s: %v", test.user, test.verb, got)
		}
	}

	if ByNamespaceController(t.Context()) {
		t.Error("nobody is taken for the namespace controller")
	}
}

// warnings are those of a request.
type warnings []string

func (w *warnings) AddWarning(_, text string) { *w = append(*w, text) }

// A deletion says what goes with the object, also if it is tried or refused, unless the object goes already.
func TestGuardWarns(t *testing.T) {
	orphan := metav1.DeletePropagationOrphan

	for name, test := range map[string]struct {
		options *metav1.DeleteOptions
		does    func(*v1alpha1.OmniCluster) Deletion
		change  func(*v1alpha1.OmniCluster)
		want    []string
	}{
		"deleted":               {does: destroys, want: []string{`deleting OmniCluster "demo" destroys the cluster; keep it so`}},
		"tried":                 {options: &metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}}, does: destroys, want: []string{`deleting OmniCluster "demo" destroys the cluster; keep it so`}},
		"destroys nothing":      {does: keeps},
		"refused":               {options: &metav1.DeleteOptions{PropagationPolicy: &orphan}, does: destroys, want: []string{`deleting OmniCluster "demo" destroys the cluster; keep it so`}},
		"being deleted already": {does: destroys, change: func(o *v1alpha1.OmniCluster) { o.DeletionTimestamp = new(metav1.Now()) }},
	} {
		t.Run(name, func(t *testing.T) {
			got := warnings{}
			_ = guardOf(&Descriptor[*v1alpha1.OmniCluster]{Kind: "OmniCluster", Plural: "omniclusters", Deletion: test.does})(
				warning.WithWarningRecorder(t.Context(), &got), demo(test.change), test.options)

			if !slices.Equal(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}
