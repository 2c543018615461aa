package e2e

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

const (
	manyObjects = 5000 // fewer than a namespace may have
	manyUsers   = 4    // of eight clients each
	// How long the other tenant is measured alone, and at least beside the first.
	measuredAlone, measuredBeside = 15 * time.Second, 45 * time.Second
)

// A tenant with 5,000 objects whose people list and change them without a pause, beside another tenant: none of the other's requests
// fails, and its clusters become Ready. How long its requests take, alone and beside them, is told.
func TestAttackFairness(t *testing.T) {
	attackOnly(t)

	hub := startAttacked(t)
	well := fleetIn(spaceOn(t, hub, "well"))
	tenant := tenantOn(t, hub)
	neighbour := newMeasured(well)
	group := tenant.people()

	neighbour.measure("alone", measuredAlone)

	check := watchPrograms(t, hub)

	begun := time.Now()
	tenant.createFailing(manyObjects)
	t.Logf("%d objects were created within %s", manyObjects, time.Since(begun).Round(time.Second))

	neighbour.measure("beside 5,000 objects at rest", measuredAlone)

	ctx, end := context.WithCancel(t.Context())
	defer end()

	var loading sync.WaitGroup
	for user := range manyUsers {
		config := must(hub.RESTConfigFor(fmt.Sprintf("busy-%d", user), group))(t)
		config.QPS = -1

		loading.Go(func() { t.Logf("answers to user %d: %v", user, tenant.listAndChange(ctx, config)) })
	}

	var measuring sync.WaitGroup

	measuring.Go(func() { neighbour.measure("beside their lists and changes", measuredBeside) })

	for i := range healthyClusters {
		well.demandOne(i)
	}

	for i := range healthyClusters {
		well.waitCondition("ocl", demanded(i), v1alpha1.ConditionReady, metav1.ConditionTrue, "")
	}

	measuring.Wait()
	end()
	loading.Wait()
	check("5,000 objects that 32 clients list and change without a pause", "")
}

// createFailing makes OmniClusters whose connection does not exist.
func (a *attacker) createFailing(count int) {
	a.t.Helper()

	eachOf(count, func(i int) {
		body := strings.Replace(clusterManifest(fmt.Sprintf("failing-%d", i)), "name: omni", "name: none", 1)
		if status, answer := a.sendPatiently(http.MethodPost, clustersPath, "application/yaml", body); status != http.StatusCreated {
			a.t.Errorf("%d %s", status, answer)
		}
	})
}

// listAndChange is one user with eight clients, who does not wait when asked to. It returns how often there was which answer.
func (a *attacker) listAndChange(ctx context.Context, config *rest.Config) (statuses map[string]int) {
	var mu sync.Mutex

	statuses = map[string]int{}

	eightAtOnce(func() {
		for i := 0; ctx.Err() == nil; i++ {
			method, path, body := http.MethodGet, clustersPath, ""
			if i%4 > 0 {
				method, path, body = http.MethodPatch, fmt.Sprintf("%s/failing-%d", clustersPath, i%manyObjects), fmt.Sprintf(`{"metadata":{"labels":{"changed":"%d"}}}`, i)
			}

			status, _ := a.sendAs(config, method, path, "application/merge-patch+json", body)

			mu.Lock()
			statuses[fmt.Sprintf("%s %d", method, status)]++
			mu.Unlock()
		}
	})

	return statuses
}

// measured is a user of a fleet whose requests are measured.
type measured struct {
	*fleet

	client dynamic.ResourceInterface
	count  int
}

func newMeasured(f *fleet) *measured {
	f.t.Helper()

	config := must(f.stack().RESTConfigFor("neighbour", f.people()))(f.t)

	m := &measured{fleet: f, client: dynamicFor(f.t, config).Resource(subjects[1].gvr()).Namespace(f.name)}
	m.wait("the right to edit", func() error {
		_, err := m.client.List(m.t.Context(), metav1.ListOptions{})

		return err
	})

	return m
}

// measure creates, reads, lists, changes and watches objects one after the other, and tells how long each took. As any client of the
// library it comes again when the server asks for that.
func (m *measured) measure(when string, duration time.Duration) {
	took := map[string][]time.Duration{}
	timed := func(verb string, do func() error) {
		begun := time.Now()
		if err := do(); err != nil {
			m.t.Errorf("%s, %s: %v", verb, when, err)
		}

		took[verb] = append(took[verb], time.Since(begun))
	}

	for begun := time.Now(); time.Since(begun) < duration; {
		m.count++
		m.one(fmt.Sprintf("measured-%d", m.count), timed)
	}

	for _, verb := range []string{"create", "get", "list", "patch", "watch"} {
		all := took[verb]
		if len(all) == 0 {
			continue // another verb failed
		}

		slices.Sort(all)
		m.t.Logf("%s of another tenant, %s: %d requests, p50 %s, p99 %s", verb, when, len(all),
			all[len(all)/2].Round(time.Millisecond), all[len(all)*99/100].Round(time.Millisecond))
	}
}

func (m *measured) one(name string, timed func(verb string, do func() error)) {
	ctx, cancel := context.WithTimeout(m.t.Context(), time.Minute)
	defer cancel()

	object := &unstructured.Unstructured{Object: map[string]any{}}
	object.SetAPIVersion(v1alpha1.SchemeGroupVersion.String())
	object.SetKind("OmniCluster")
	object.SetName(name)
	object.Object["spec"] = map[string]any{
		"suspend": true, "connectionRef": map[string]any{"name": "omni"},
		"kubernetes": map[string]any{"version": "v1.35.1"}, "talos": map[string]any{"version": "v1.13.3"},
	}

	var version string

	timed("create", func() error {
		created, err := m.client.Create(ctx, object, metav1.CreateOptions{})
		if err == nil {
			version = created.GetResourceVersion()
		}

		return err
	})
	timed("get", func() error { _, err := m.client.Get(ctx, name, metav1.GetOptions{}); return err })
	timed("list", func() error { _, err := m.client.List(ctx, metav1.ListOptions{}); return err })

	// A watch is measured from the change until its client has it.
	changes, err := m.client.Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + name, ResourceVersion: version})
	if err != nil {
		m.t.Error(err)

		return
	}
	defer changes.Stop()

	timed("watch", func() error {
		timed("patch", func() error {
			_, err := m.client.Patch(ctx, name, types.MergePatchType, []byte(`{"metadata":{"labels":{"changed":"yes"}}}`), metav1.PatchOptions{})

			return err
		})

		for event := range changes.ResultChan() {
			if changed, ok := event.Object.(*unstructured.Unstructured); ok && changed.GetLabels()["changed"] == "yes" {
				return nil
			}
		}

		return fmt.Errorf("the watch ended: %w", ctx.Err())
	})
}
