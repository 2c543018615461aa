package main

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// mark is what counted for a side when something began.
type mark struct {
	at               time.Time
	cpu              map[string]time.Duration
	clusters         time.Duration
	downloads, asked int
	revisions        int
}

func (r *releaseBench) begin(ctx context.Context, c *releaseSide) (mark, error) {
	revisions, err := r.revisions(ctx, c)
	if err != nil {
		return mark{}, err
	}

	cpu, err := r.cpuOfSide(c)
	if err != nil {
		return mark{}, err
	}

	clusters, err := r.cpuOfWorkloads()

	return mark{
		cpu: cpu, clusters: clusters, revisions: revisions,
		downloads: c.charts.Downloads(), asked: len(c.charts.Requests()), at: time.Now(),
	}, err
}

// since is what a side took from a mark until now.
func (r *releaseBench) since(ctx context.Context, c *releaseSide, from mark) (effort, error) {
	took := effort{
		seconds: time.Since(from.at).Seconds(), cpu: map[string]float64{}, memory: map[string]memory{}, requests: map[string]int{},
		downloads: c.charts.Downloads() - from.downloads, asked: len(c.charts.Requests()) - from.asked,
	}

	cpu, err := r.cpuOfSide(c)
	if err != nil {
		return took, err
	}

	for name, used := range cpu {
		took.cpu[name] = (used - from.cpu[name]).Seconds()

		if took.memory[name], err = memoryOf(r.stack.ProcessIDs()[name]); err != nil {
			return took, err
		}
	}

	clusters, err := r.cpuOfWorkloads()
	if err != nil {
		return took, err
	}

	took.clusters = (clusters - from.clusters).Seconds()

	for _, hub := range r.workloads {
		requests, err := requestsInFile(auditLogOf(hub.Dir), c.user, from.at)
		if err != nil {
			return took, err
		}

		for what, count := range requests {
			took.requests[what] += count
		}
	}

	revisions, err := r.revisions(ctx, c)
	took.revisions = revisions - from.revisions

	return took, err
}

// cpuOfSide is the processor time of a side's programs so far.
func (r *releaseBench) cpuOfSide(c *releaseSide) (map[string]time.Duration, error) {
	pids, times := r.stack.ProcessIDs(), map[string]time.Duration{}

	for _, name := range c.processes {
		used, err := cpuOf(pids[name])
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}

		times[name] = used
	}

	return times, nil
}

// cpuOfWorkloads is the processor time of the workload clusters' kube-apiservers and etcds.
func (r *releaseBench) cpuOfWorkloads() (time.Duration, error) {
	var sum time.Duration

	for _, hub := range r.workloads {
		pids := hub.ProcessIDs()
		for _, name := range []string{"kube-apiserver", "etcd"} {
			used, err := cpuOf(pids[name])
			if err != nil {
				return 0, fmt.Errorf("%s of a workload cluster: %w", name, err)
			}

			sum += used
		}
	}

	return sum, nil
}

// revisions counts Helm's records of a side in all workload clusters. There is one per revision, and
// none is pruned before a release has as many as its history may hold.
func (r *releaseBench) revisions(ctx context.Context, c *releaseSide) (int, error) {
	count := 0

	for _, hub := range r.workloads {
		records, err := hub.Client().CoreV1().Secrets(c.target).List(ctx, metav1.ListOptions{LabelSelector: "owner=helm"})
		if err != nil {
			return 0, fmt.Errorf("list Helm's records: %w", err)
		}

		count += len(records.Items)
	}

	return count, nil
}
