package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2"
	"oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/content/memory"
	"oras.land/oras-go/v2/content/oci"
	"oras.land/oras-go/v2/registry/remote"
	"oras.land/oras-go/v2/registry/remote/auth"
	"oras.land/oras-go/v2/registry/remote/retry"
)

// Media types of a chart in a registry, as Helm defines them.
const (
	chartConfigType = "application/vnd.cncf.helm.config.v1+json"
	chartLayerType  = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"
)

// publishedFile says what push has pushed.
const publishedFile = "published.json"

// pushTimeout bounds one request to the registry, an upload of a layer included.
const pushTimeout = 10 * time.Minute

// published is what is in the registry.
type published struct {
	Image string `json:"image"` // with its digest, as Chart is
	Chart string `json:"chart"`
	// Platforms are the images of the platforms, with their digests, by os_arch.
	Platforms map[string]string `json:"platforms"`
}

// credentials are those of the environment, as the workflow sets them.
func credentials(getenv func(string) string) *auth.Client {
	return client(getenv("REGISTRY_USERNAME"), getenv("REGISTRY_PASSWORD"), retry.NewTransport(nil))
}

// client connects to a registry.
func client(username, password string, transport http.RoundTripper) *auth.Client {
	return &auth.Client{
		Client: &http.Client{Transport: transport, Timeout: pushTimeout},
		Cache:  auth.NewCache(),
		Credential: func(context.Context, string) (auth.Credential, error) {
			return auth.Credential{Username: username, Password: password}, nil
		},
	}
}

// push copies the image and the chart to the registry, and writes down their digests. It can be repeated.
func (r *release) push(ctx context.Context, dist string, client *auth.Client) error {
	images, err := oci.NewFromTar(ctx, filepath.Join(dist, r.imageFile()))
	if err != nil {
		return err
	}

	image, err := upload(ctx, images, r.version, r.image(), client)
	if err != nil {
		return fmt.Errorf("push the image: %w", err)
	}

	charts, err := r.chartStore(ctx, dist)
	if err != nil {
		return err
	}

	chart, err := upload(ctx, charts, r.chartVersion(), r.chart(), client)
	if err != nil {
		return fmt.Errorf("push the chart: %w", err)
	}

	result := published{Image: r.image() + "@" + image.Digest.String(), Chart: r.chart() + "@" + chart.Digest.String()}
	if result.Platforms, err = r.platformDigests(ctx, images, image); err != nil {
		return err
	}

	return result.write(dist, os.Getenv("GITHUB_OUTPUT"))
}

// upload copies what has a tag in a store to a repository of a registry, under the same tag.
func upload(ctx context.Context, from oras.ReadOnlyTarget, tag, to string, client *auth.Client) (ocispec.Descriptor, error) {
	repository, err := remote.NewRepository(to)
	if err != nil {
		return ocispec.Descriptor{}, err
	}

	repository.Client = client

	return oras.Copy(ctx, from, tag, repository, tag, oras.DefaultCopyOptions)
}

// chartStore is the packed chart as registries have charts: its metadata beside it.
func (r *release) chartStore(ctx context.Context, dist string) (*memory.Store, error) {
	store := memory.New()

	packed, err := os.ReadFile(filepath.Join(dist, r.chartFile()))
	if err != nil {
		return nil, err
	}

	metadata, err := metadataOf(packed)
	if err != nil {
		return nil, err
	}

	config, err := oras.PushBytes(ctx, store, chartConfigType, metadata)
	if err != nil {
		return nil, err
	}

	layer, err := oras.PushBytes(ctx, store, chartLayerType, packed)
	if err != nil {
		return nil, err
	}

	annotations := r.annotations()
	annotations[ocispec.AnnotationVersion] = r.chartVersion()

	manifest, err := oras.PackManifest(ctx, store, oras.PackManifestVersion1_0, "", oras.PackManifestOptions{
		ConfigDescriptor: &config, Layers: []ocispec.Descriptor{layer}, ManifestAnnotations: annotations,
	})
	if err != nil {
		return nil, err
	}

	return store, store.Tag(ctx, manifest, r.chartVersion())
}

// platformDigests are the images that an image of several platforms consists of.
func (r *release) platformDigests(ctx context.Context, images content.Fetcher, image ocispec.Descriptor) (map[string]string, error) {
	raw, err := content.FetchAll(ctx, images, image)
	if err != nil {
		return nil, err
	}

	var index ocispec.Index
	if err := json.Unmarshal(raw, &index); err != nil {
		return nil, err
	}

	digests := map[string]string{}
	for _, m := range index.Manifests {
		digests[m.Platform.OS+"_"+m.Platform.Architecture] = r.image() + "@" + m.Digest.String()
	}

	return digests, nil
}

// write keeps the digests for the next steps: beside the artefacts, and as outputs of the workflow's step.
func (p *published) write(dist, outputs string) error {
	content, err := json.MarshalIndent(p, "", "  ")
	if err != nil {
		return err
	}

	if err := os.WriteFile(filepath.Join(dist, publishedFile), append(content, '\n'), 0o644); err != nil || outputs == "" {
		return err
	}

	file, err := os.OpenFile(outputs, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer file.Close()

	for kind, reference := range map[string]string{"image": p.Image, "chart": p.Chart} {
		repository, digest, _ := strings.Cut(reference, "@")
		if _, err := fmt.Fprintf(file, "%s-name=%s\n%s-digest=%s\n", kind, repository, kind, digest); err != nil {
			return err
		}
	}

	return file.Close()
}
