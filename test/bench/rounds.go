package main

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"k8s.io/client-go/rest"

	"omni.texashpc.com/omni-cluster-operator/test/env"
)

const (
	// objectsNamespace holds the objects of part (a); no controller looks at it.
	objectsNamespace = "objects"
	// objectsUser has rights to exactly these objects, through RBAC.
	objectsUser = "bench-user"
)

const objectsRole = `apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: bench, namespace: objects}
rules:
  - apiGroups: [omni.texashpc.com, bench.example.com]
    resources: [omniclusters, omniclusters/status]
    verbs: ["*"]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: bench, namespace: objects}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: bench}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: bench-user}]
`

// dialer returns the dialer of one client.
func dialer() func(ctx context.Context, network, address string) (net.Conn, error) {
	return (&net.Dialer{Timeout: 30 * time.Second}).DialContext
}

// tally is what was measured of one verb on one side.
type tally struct {
	rates []float64 // per round
	costs []float64 // processor time of all servers per request in milliseconds, per round
	taken samples
}

// compareAPIs measures our API and the CRD in turn, verb by verb: what disturbs the machine for a
// moment disturbs both. Each round begins with the other side.
func (b *bench) compareAPIs(ctx context.Context) error {
	if err := b.prepareObjects(ctx); err != nil {
		return err
	}

	clients, err := b.newClients(b.settings.Clients)
	if err != nil {
		return err
	}

	all := verbs(b.settings)
	tallies := map[string]*tally{}

	for round := range b.settings.Rounds {
		b.say("  round %d", round+1)

		for _, v := range all {
			if v.count == 0 {
				continue
			}

			order := sides()
			if round%2 == 1 {
				slices.Reverse(order[:])
			}

			for _, api := range order {
				t := tallies[v.name+api.name]
				if t == nil {
					t = &tally{}
					tallies[v.name+api.name] = t
				}

				if err := b.measureVerb(ctx, clients, v, api, round, t); err != nil {
					return fmt.Errorf("%s, %s: %w", v.name, api.name, err)
				}
			}
		}
	}

	b.reportVerbs(all, tallies)

	return nil
}

// measureVerb makes all requests of one verb to one side.
func (b *bench) measureVerb(ctx context.Context, clients []rest.Interface, v verb, api side, round int, t *tally) error {
	taken := make(samples, v.count)

	waitForProfiles := func() {}
	if round == 0 {
		waitForProfiles = b.cpuProfiles(ctx, strings.ReplaceAll(v.name, " ", "-")+"-"+api.name)
	}

	begin := time.Now()

	err := b.watchBusy(fmt.Sprintf("%s, %s, round %d", v.name, api.name, round+1), func() error {
		return inParallel(ctx, v.clients, v.count, func(ctx context.Context, worker, i int) error {
			start := time.Now()
			err := discard(ctx, v.request(clients[worker], api, round, i))
			taken[i] = time.Since(start)

			return err
		})
	})

	took := time.Since(begin)

	waitForProfiles()

	rate := float64(v.count) / took.Seconds()
	t.rates = append(t.rates, rate)
	t.costs = append(t.costs, b.results.Busy[len(b.results.Busy)-1].servers()*1000/float64(v.count))
	t.taken = append(t.taken, taken...)

	b.results.lines = append(b.results.lines, goLine{
		name:  fmt.Sprintf("API/verb=%s/side=%s", strings.ReplaceAll(v.name, " ", "-"), api.name),
		count: v.count, per: took / time.Duration(v.count),
		extra: []metric{
			{rate, "ops/s"},
			{float64(taken.percentile(50).Nanoseconds()), "p50-ns"},
			{float64(taken.percentile(99).Nanoseconds()), "p99-ns"},
		},
	})

	return err
}

func (b *bench) reportVerbs(all []verb, tallies map[string]*tally) {
	for _, v := range all {
		ours, crd := tallies[v.name+sides()[0].name], tallies[v.name+sides()[1].name]
		if ours == nil || crd == nil {
			continue
		}

		each := ratios(ours.rates, crd.rates)

		texts := make([]string, len(each))
		for i, ratio := range each {
			texts[i] = number(ratio)
		}

		b.results.add(
			figure{Part: partAPIs, Name: rateName(v.name), Value: median(each), Unit: "x", Aim: v.aim, Note: "rounds: " + strings.Join(texts, ", ")},
			figure{
				Part: partAPIs, Name: costName(v.name), Value: median(ratios(ours.costs, crd.costs)), Unit: "x",
				Note: fmt.Sprintf("per request %s ms and %s ms, all servers", number(median(ours.costs)), number(median(crd.costs))),
			},
			figure{Part: partAPIs, Name: v.name + ", ours", Value: median(ours.rates), Unit: "ops/s", Note: describeLatency(ours.taken)},
			figure{Part: partAPIs, Name: v.name + ", CRD", Value: median(crd.rates), Unit: "ops/s", Note: describeLatency(crd.taken)},
		)
	}
}

// rateName names the ratio of the rates of a verb, costName that of its processor time.
func rateName(verb string) string { return verb + ", ratio ours/CRD" }
func costName(verb string) string { return verb + ", processor time, ratio ours/CRD" }

func describeLatency(taken samples) string {
	milliseconds := func(p float64) string { return number(float64(taken.percentile(p).Microseconds()) / 1000) }

	return fmt.Sprintf("p50 %s ms, p99 %s ms", milliseconds(50), milliseconds(99))
}

// prepareObjects makes the namespace, the CRD and the user's rights, and waits until both sides
// can be used.
func (b *bench) prepareObjects(ctx context.Context) error {
	document, err := b.admin.Get().AbsPath("/openapi/v3/apis/" + ourGroup + "/" + apiVersion).Do(ctx).Raw()
	if err != nil {
		return fmt.Errorf("read our OpenAPI document: %w", err)
	}

	crd, err := customResourceDefinition(document, apiVersion, "OmniCluster", "omniclusters")
	if err != nil {
		return err
	}

	if err := b.stack.CreateNamespace(ctx, objectsNamespace); err != nil {
		return err
	}

	if err := b.admin.Post().AbsPath("/apis/apiextensions.k8s.io/v1/customresourcedefinitions").Body(encode(crd)).Do(ctx).Error(); err != nil {
		return fmt.Errorf("create the CRD: %w", err)
	}

	if _, _, err := b.stack.KubectlInput(ctx, strings.NewReader(objectsRole), "apply", "-f", "-"); err != nil {
		return err
	}

	clients, err := b.newClients(1)
	if err != nil {
		return err
	}

	for _, api := range sides() {
		if err := env.Eventually(ctx, time.Minute, api.name+" to be served", func(ctx context.Context) error {
			return discard(ctx, clients[0].Get().AbsPath(api.path("")))
		}); err != nil {
			return err
		}
	}

	// The CRD has just been published in OpenAPI, and controllers are about to find it.
	b.say("  waiting for the hub's controllers to find the CRD")

	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(b.settings.CRDRest):
		return nil
	}
}
