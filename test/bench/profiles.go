package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"k8s.io/client-go/rest"
)

// profileSeconds is how long a CPU profile takes.
const profileSeconds = 4

// heapProfiles writes the heap profiles of both of our programs, if profiles are wanted. They
// hold all memory in use after a collection.
func (b *bench) heapProfiles(ctx context.Context, name string) error {
	if !b.settings.profiles {
		return nil
	}

	for process, url := range b.profileURLs() {
		if err := b.fetchProfile(ctx, url+"/debug/pprof/heap?gc=1", "heap-"+process+"-"+name); err != nil {
			return err
		}
	}

	return nil
}

// cpuProfiles starts CPU profiles of the API servers, if profiles are wanted. The returned function
// waits for them. Profiles are a help, not a result: one that fails is only mentioned.
func (b *bench) cpuProfiles(ctx context.Context, name string) (wait func()) {
	if !b.settings.profiles {
		return func() {}
	}

	done := make(chan struct{})

	go func() {
		defer close(done)

		urls := b.profileURLs()
		urls["kube-apiserver"] = b.stack.URL()

		_ = inParallel(ctx, len(urls), len(urls), func(ctx context.Context, _, i int) error {
			process := []string{"omni-apiserver", "omni-controller", "kube-apiserver"}[i]
			path := fmt.Sprintf("%s/debug/pprof/profile?seconds=%d", urls[process], profileSeconds)

			if err := b.fetchProfile(ctx, path, "cpu-"+process+"-"+name); err != nil {
				b.say("  %v", err)
			}

			return nil
		})
	}()

	return func() { <-done }
}

func (b *bench) profileURLs() map[string]string {
	return map[string]string{"omni-apiserver": b.stack.OmniAPIServer.URL(), "omni-controller": "http://" + b.pprof}
}

func (b *bench) fetchProfile(ctx context.Context, url, name string) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()

	client, err := rest.HTTPClientFor(b.stack.RESTConfig())
	if err != nil {
		return fmt.Errorf("make client: %w", err)
	}

	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return fmt.Errorf("profile %s: %w", name, err)
	}

	response, err := client.Do(request)
	if err != nil {
		return fmt.Errorf("profile %s: %w", name, err)
	}
	defer response.Body.Close()

	data, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		return fmt.Errorf("profile %s: %s, %w", name, response.Status, err)
	}

	if err := os.MkdirAll(b.settings.out, 0o755); err != nil {
		return fmt.Errorf("profile %s: %w", name, err)
	}

	return os.WriteFile(filepath.Join(b.settings.out, name+".pprof"), data, 0o644)
}
