package helmlive

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"omni.texashpc.com/omni-cluster-operator/pkg/helm"
	"omni.texashpc.com/omni-cluster-operator/test/await"
)

const unservedGroup = "unserved.example.com"

// awayAPI is a version of a group whose server does not answer.
const awayAPI = `apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {name: v1.unserved.example.com}
spec:
  group: unserved.example.com
  version: v1
  groupPriorityMinimum: 1000
  versionPriority: 15
  insecureSkipTLSVerify: true
  service: {namespace: default, name: nowhere}
`

// kubectl runs kubectl as an administrator of the cluster.
func kubectl(t *testing.T, input string, args ...string) {
	t.Helper()

	if _, said, err := cluster.KubectlInput(t.Context(), strings.NewReader(input), args...); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
}

// awaitGroup waits until the API server says this of the version of the group.
func awaitGroup(t *testing.T, said func(error) bool) {
	t.Helper()

	var err error

	client := cluster.Client().Discovery().RESTClient()
	awaited := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, await.Limit, true, func(ctx context.Context) (bool, error) {
		for _, path := range []string{"/apis/" + unservedGroup, "/apis/" + unservedGroup + "/v1"} {
			err = client.Get().AbsPath(path).MaxRetries(0).Do(ctx).Error()
		}

		return said(err), nil
	})
	if awaited != nil {
		t.Fatalf("the API server says %v", err)
	}

	time.Sleep(time.Second) // the list of all groups follows
}

// What is left of a release can be uninstalled when a CRD is gone, with all objects of its kind; and not while the server of
// their API is away.
func TestAnUninstallWithoutAKind(t *testing.T) {
	definition := strings.NewReplacer("things", "losts", "Thing", "Lost", "live.example.com", unservedGroup).Replace(crd)
	chart := custom("Lost", "1.0.0", definition)
	chart.Files["templates/all.yaml"] = strings.ReplaceAll(chart.Files["templates/all.yaml"], "live.example.com", unservedGroup) + configMap("one")

	r := newRelease(t)
	r.want(helm.ActionInstall, chart, "")
	kubectl(t, "", "delete", "crd", "losts."+unservedGroup)
	awaitGroup(t, apierrors.IsNotFound)

	kubectl(t, awayAPI, "apply", "-f", "-")
	awaitGroup(t, apierrors.IsServiceUnavailable)

	r.wanted.Absent = true
	r.wantError(helm.ActionUninstall, chart, "", helm.ReasonFailed, "Lost", "cannot be told")

	if !r.has("one") || len(r.numbers()) == 0 {
		t.Errorf("there are one %v, %v", r.has("one"), r.numbers())
	}

	kubectl(t, awayAPI, "delete", "-f", "-")
	awaitGroup(t, apierrors.IsNotFound)
	r.want(helm.ActionUninstall, chart, "")

	if r.has("one") || r.numbers() != nil {
		t.Errorf("left behind: one %v, %v", r.has("one"), r.numbers())
	}

	if last := r.notes[len(r.notes)-1]; !strings.HasPrefix(last, "ObjectsGone: ") || !strings.Contains(last, "Lost "+r.namespace) {
		t.Errorf("told %q", r.notes)
	}
}

// awaitNoCRD waits until the CRD of a kind is gone: unlike an uninstall, an upgrade does not wait for what it removes.
func awaitNoCRD(t *testing.T, kind string) {
	t.Helper()

	var err error

	awaited := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, await.Limit, true, func(context.Context) (bool, error) {
		_, err = findCRD(t, kind)

		return apierrors.IsNotFound(err), nil
	})
	if awaited != nil {
		t.Fatalf("the CRD of %s is there: %v", kind, err)
	}
}

// awaitKind waits until the API server serves a kind whose CRD is a template: an install does not wait for it.
func awaitKind(t *testing.T, kind string) {
	t.Helper()

	await.Until(t, kind+" is served", func() bool {
		served, err := cluster.Client().Discovery().ServerResourcesForGroupVersion("live.example.com/v1")

		return err == nil && slices.ContainsFunc(served.APIResources, func(resource metav1.APIResource) bool { return resource.Kind == kind })
	})
}

// A kind goes with its objects when both are of the release. The API server does not serve it any more when they are looked for.
func TestAKindOfTheReleaseGoes(t *testing.T) {
	for name, end := range map[string]func(r *release){
		"uninstalled": func(r *release) {
			r.wanted.Absent = true
			r.want(helm.ActionUninstall, chartOf("3.0.0", configMap("one")), "")
		},
		"not in the chart any more": func(r *release) {
			r.want(helm.ActionUpgrade, chartOf("3.0.0", configMap("one")), "")
			awaitNoCRD(r.t, "Going")
		},
	} {
		t.Run(name, func(t *testing.T) {
			kind := strings.NewReplacer("things", "goings", "Thing", "Going").Replace(crd) + "---\n"
			object := "apiVersion: live.example.com/v1\nkind: Going\nmetadata: {name: own}\n"

			r := newRelease(t)
			r.want(helm.ActionInstall, chartOf("1.0.0", kind+configMap("one")), "")
			awaitKind(t, "Going")
			r.want(helm.ActionUpgrade, chartOf("2.0.0", kind+object+configMap("one")), "")
			end(r)

			if _, err := findCRD(t, "Going"); !apierrors.IsNotFound(err) {
				t.Errorf("the CRD is there: %v", err)
			}
		})
	}
}
