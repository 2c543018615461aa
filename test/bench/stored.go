package main

import (
	"context"
	"fmt"
	"time"

	"omni.texashpc.com/omni-cluster-operator/test/env"
)

const (
	// storedNamespace holds the objects of part (h); no controller looks at it.
	storedNamespace = "stored"
	// storedWriters create them at the same time.
	storedWriters = 16
	// storedTimeout bounds their creation.
	storedTimeout = 10 * time.Minute
)

// memoryOfObjects measures the start and the memory of omni-apiserver without and with many objects.
// Objects are OmniClusters as in part (a).
func (b *bench) memoryOfObjects(ctx context.Context) error {
	if err := b.stack.CreateNamespace(ctx, storedNamespace); err != nil {
		return err
	}

	if err := b.startWith(ctx, 0); err != nil {
		return err
	}

	if err := b.store(ctx, b.settings.Stored); err != nil {
		return err
	}

	if err := b.memoryWith("omni-apiserver right after %d objects were created", b.settings.Stored); err != nil {
		return err
	}

	return b.startWith(ctx, b.settings.Stored)
}

// store creates the objects.
func (b *bench) store(ctx context.Context, count int) error {
	ctx, cancel := context.WithTimeout(ctx, storedTimeout)
	defer cancel()

	return inParallel(ctx, storedWriters, count, func(ctx context.Context, _, i int) error {
		return b.admin.Post().AbsPath(ourPath(storedNamespace, "omniclusters")).
			Body(encode(clusterObject(ourGroup, objectName(i), "stored"))).Do(ctx).Error()
	})
}

// startWith stops the API server, measures how long it takes from the start of the program until it is ready, and its
// memory after a rest.
func (b *bench) startWith(ctx context.Context, count int) error {
	server := b.stack.OmniAPIServer
	if err := server.Stop(); err != nil {
		return err
	}

	begin := time.Now()

	if err := server.RestartDirectly(ctx); err != nil {
		return err
	}

	b.results.add(figure{
		Part: partObjects, Name: fmt.Sprintf("omni-apiserver with %d objects: from its start to ready", count),
		Value: time.Since(begin).Seconds(), Unit: "s",
	})

	if err := env.Eventually(ctx, time.Minute, "the API to be served through kube-apiserver", func(ctx context.Context) error {
		return b.admin.Get().AbsPath(ourPath(storedNamespace, "omniclusters")).Param("limit", "1").Do(ctx).Error()
	}); err != nil {
		return err
	}

	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(b.settings.Settle):
	}

	return b.memoryWith("omni-apiserver started with %d objects, after a rest", count)
}

// memoryWith reports the memory of the API server.
func (b *bench) memoryWith(name string, count int) error {
	now, err := memoryOf(b.stack.ProcessIDs()["omni-apiserver"])
	if err != nil {
		return err
	}

	b.results.add(memoryFigures("h", fmt.Sprintf(name, count), now, nil)...)

	return nil
}
