package startup

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	genericoptions "k8s.io/apiserver/pkg/server/options"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

// hub answers access reviews with no for the resources that are denied.
func hub(served []metav1.APIResource, denied ...string) *fake.Clientset {
	client := fake.NewClientset()
	client.Resources = []*metav1.APIResourceList{
		{GroupVersion: "admissionregistration.k8s.io/v1", APIResources: served},
	}
	client.PrependReactor("create", "selfsubjectaccessreviews", func(action clienttesting.Action) (bool, runtime.Object, error) {
		review := action.(clienttesting.CreateAction).GetObject().(*authorizationv1.SelfSubjectAccessReview).DeepCopy()
		review.Status.Allowed = true

		for _, resource := range denied {
			if review.Spec.ResourceAttributes.Resource == resource {
				review.Status.Allowed = false
			}
		}

		return true, review, nil
	})

	return client
}

func TestCheckHubNamesTheMissingBinding(t *testing.T) {
	tests := []struct {
		name   string
		denied []string
		want   string
	}{
		{
			name:   "auth delegator",
			denied: []string{"tokenreviews", "subjectaccessreviews"},
			want: "this server's user may not create tokenreviews.authentication.k8s.io on the hub: " +
				"bind the ClusterRole system:auth-delegator to it\n" +
				"this server's user may not create subjectaccessreviews.authorization.k8s.io on the hub: " +
				"bind the ClusterRole system:auth-delegator to it",
		},
		{
			name:   "authentication reader",
			denied: []string{"configmaps"},
			want: "this server's user may not get configmaps kube-system/extension-apiserver-authentication on the hub: " +
				"bind the Role extension-apiserver-authentication-reader in kube-system to it",
		},
		{
			name:   "own role",
			denied: []string{"flowschemas"},
			want: "this server's user may not watch flowschemas.flowcontrol.apiserver.k8s.io on the hub: " +
				"bind the ClusterRole omni-apiserver to it",
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			err := checkHub(t.Context(), hub(nil, test.denied...), genericoptions.NewAdmissionOptions())
			if err == nil {
				t.Fatal("no error")
			}

			if diff := cmp.Diff("rights are missing: "+test.want, err.Error()); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
		})
	}
}

func TestCheckHubSwitchesMutatingPolicies(t *testing.T) {
	tests := []struct {
		name   string
		served []metav1.APIResource
		off    bool
	}{
		{"served", []metav1.APIResource{{Name: "mutatingadmissionpolicies"}}, false},
		{"hub before 1.36", []metav1.APIResource{{Name: "validatingadmissionpolicies"}}, true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			// A right that is missing counts only where the hub serves the resource.
			denied := "nothing"
			if test.off {
				denied = "mutatingadmissionpolicies"
			}

			options := genericoptions.NewAdmissionOptions()
			if err := checkHub(t.Context(), hub(test.served, denied), options); err != nil {
				t.Fatal(err)
			}

			if got := options.DefaultOffPlugins.Has("MutatingAdmissionPolicy"); got != test.off {
				t.Errorf("off: %t, want %t", got, test.off)
			}
		})
	}
}

func TestCheckHubNeedsToWatchMutatingPolicies(t *testing.T) {
	served := []metav1.APIResource{{Name: "mutatingadmissionpolicies"}}

	err := checkHub(t.Context(), hub(served, "mutatingadmissionpolicies"), genericoptions.NewAdmissionOptions())
	if err == nil || !strings.Contains(err.Error(), "may not watch mutatingadmissionpolicies.admissionregistration.k8s.io") {
		t.Errorf("got %v", err)
	}
}

func TestCheckHubFailsWithoutHub(t *testing.T) {
	client := hub(nil)
	client.PrependReactor("create", "selfsubjectaccessreviews", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewServiceUnavailable("down")
	})

	err := checkHub(context.Background(), client, genericoptions.NewAdmissionOptions())
	if err == nil || !strings.Contains(err.Error(), "ask the hub for our rights: down") {
		t.Errorf("got %v", err)
	}
}

// The server waits for a hub that does not answer yet, and for rights that come a moment later, but not for a right
// that stays missing.
func TestWaitForHub(t *testing.T) {
	for _, tc := range []struct {
		name          string
		silent, right time.Duration // until when the hub does not answer, and until when a right is missing
		after         time.Duration
		want          string
	}{
		{"all there", 0, 0, 0, ""},
		{"comes later", time.Minute, 0, time.Minute, ""},
		{"rights come later", 0, 10 * time.Second, 10 * time.Second, ""},
		{"comes later, then its rights", 30 * time.Second, 44 * time.Second, 44 * time.Second, ""},
		{"a right never comes", 10 * time.Second, time.Hour, 30 * time.Second, "bind the Role extension-apiserver-authentication-reader"},
		{"never comes", time.Hour, 0, 2 * time.Minute, "gave up: ask the hub for our rights: down"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begin := time.Now()
				client := hub(nil)
				client.PrependReactor("create", "selfsubjectaccessreviews", func(action clienttesting.Action) (bool, runtime.Object, error) {
					if time.Since(begin) < tc.silent {
						return true, nil, apierrors.NewServiceUnavailable("down")
					}

					review := action.(clienttesting.CreateAction).GetObject().(*authorizationv1.SelfSubjectAccessReview).DeepCopy()
					review.Status.Allowed = review.Spec.ResourceAttributes.Resource != "configmaps" || time.Since(begin) >= tc.right

					return true, review, nil
				})

				ctx, cancel := context.WithTimeoutCause(t.Context(), 2*time.Minute, errors.New("gave up"))
				defer cancel()

				err := WaitForHub(ctx, client, genericoptions.NewAdmissionOptions())
				if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
					t.Errorf("got %v, want %q", err, tc.want)
				}

				if got := time.Since(begin); got != tc.after {
					t.Errorf("after %s, want %s", got, tc.after)
				}
			})
		})
	}
}
