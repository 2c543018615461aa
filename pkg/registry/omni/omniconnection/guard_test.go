package omniconnection

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/registry/internal/kittest"
)

// clusters is a store of OmniClusters.
type clusters struct {
	items []v1alpha1.OmniCluster
	err   error
}

func (c clusters) List(_ context.Context, options *metainternalversion.ListOptions) (runtime.Object, error) {
	if c.err == nil && options.FieldSelector.String() != "spec.connectionRef.name=foo" {
		return nil, fmt.Errorf("lists %s", options.FieldSelector)
	}

	return &v1alpha1.OmniClusterList{Items: c.items}, c.err
}

// using is a cluster that uses a connection.
func using(connection, name string, changes ...func(*v1alpha1.OmniCluster)) v1alpha1.OmniCluster {
	o := v1alpha1.OmniCluster{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       v1alpha1.OmniClusterSpec{ConnectionRef: v1alpha1.LocalObjectReference{Name: connection}},
	}
	for _, change := range changes {
		change(&o)
	}

	return o
}

func TestGuardedDeletion(t *testing.T) {
	kittest.RunGuard(t, kittest.Guard[*v1alpha1.OmniConnection]{
		Descriptor: Descriptor(now, clusters{items: []v1alpha1.OmniCluster{using("foo", "c")}}),
		Valid:      valid,
		Confirm: func(o *v1alpha1.OmniConnection) {
			o.Annotations = map[string]string{"omni.texashpc.com/confirm-deletion": o.Name}
		},
	})
}

func TestConfirmDeletion(t *testing.T) {
	deleted := func(o *v1alpha1.OmniCluster) { o.DeletionTimestamp = new(metav1.Now()) }
	by := func(name, verb string) context.Context {
		return request.WithRequestInfo(request.WithUser(t.Context(), &user.DefaultInfo{Name: name}), &request.RequestInfo{Verb: verb})
	}
	alice := by("alice", "delete")

	for name, test := range map[string]struct {
		ctx       context.Context
		clusters  []v1alpha1.OmniCluster
		confirmed string
		refused   string
	}{
		"nobody uses it":                  {ctx: alice},
		"a cluster of another connection": {ctx: alice, clusters: []v1alpha1.OmniCluster{using("other", "c")}},
		"used":                            {ctx: alice, clusters: []v1alpha1.OmniCluster{using("foo", "b"), using("foo", "a")}, refused: `OmniClusters use it: "a", "b". `},
		"used by many":                    {ctx: alice, clusters: []v1alpha1.OmniCluster{using("foo", "a"), using("foo", "b"), using("foo", "c"), using("foo", "d"), using("foo", "e"), using("foo", "f")}, refused: `"e", and 1 more`},
		"all of them are being deleted":   {ctx: alice, clusters: []v1alpha1.OmniCluster{using("foo", "a", deleted)}},
		"one of them is being deleted":    {ctx: alice, clusters: []v1alpha1.OmniCluster{using("foo", "a", deleted), using("foo", "b")}, refused: `use it: "b". `},
		"confirmed":                       {ctx: alice, clusters: []v1alpha1.OmniCluster{using("foo", "a")}, confirmed: "foo"},
		"confirmed for another":           {ctx: alice, clusters: []v1alpha1.OmniCluster{using("foo", "a")}, confirmed: "bar", refused: "confirm-deletion=foo"},
		"its collection is deleted":       {ctx: by("alice", "deletecollection"), clusters: []v1alpha1.OmniCluster{using("foo", "a")}, refused: `"a"`},
		"its namespace is deleted":        {ctx: by("system:serviceaccount:kube-system:namespace-controller", "deletecollection"), clusters: []v1alpha1.OmniCluster{using("foo", "a")}},
	} {
		t.Run(name, func(t *testing.T) {
			connection := valid()
			connection.Name = "foo"

			if test.confirmed != "" {
				connection.Annotations = map[string]string{"omni.texashpc.com/confirm-deletion": test.confirmed}
			}

			err := confirmDeletion(test.ctx, connection, clusters{items: test.clusters})

			switch {
			case test.refused == "" && err != nil:
				t.Error(err)
			case test.refused != "" && (!apierrors.IsForbidden(err) || !strings.Contains(err.Error(), test.refused)):
				t.Errorf("got %v", err)
			}
		})
	}

	connection := valid()
	connection.Name = "foo"

	if err := confirmDeletion(alice, connection, clusters{err: apierrors.NewServiceUnavailable("later")}); !apierrors.IsServiceUnavailable(err) {
		t.Errorf("clusters that cannot be read: %v", err)
	}

	if err := confirmDeletion(alice, connection, clusters{err: errors.New("away")}); err == nil {
		t.Error("deleted, though nobody knows who uses it")
	}
}
