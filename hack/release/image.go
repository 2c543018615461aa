package main

import (
	"encoding/pem"
	"time"

	"github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// platformImage is the image of one platform.
type platformImage struct {
	descriptor ocispec.Descriptor
	blobs      blobs
}

// platformImage makes the image that the Dockerfile describes, without an engine, which leaves its marks: times, and
// what it thinks of compression. A layer for the authorities, which seldom change, and one for each program.
func (r *release) platformImage(p platform, programs []program) (platformImage, error) {
	layers := []file{{path: "etc/ssl/certs/ca-certificates.crt", content: authorities(), mode: 0o644}}
	for _, program := range programs {
		layers = append(layers, file{path: program.name, content: program.content, mode: 0o755})
	}

	image := platformImage{blobs: blobs{}}
	config := ocispec.Image{
		Created: &r.time, Platform: ocispec.Platform{OS: p.os, Architecture: p.arch},
		Config: ocispec.ImageConfig{
			User: "65532:65532", Cmd: []string{"/omni-controller", "--help"}, WorkingDir: "/", Labels: r.annotations(),
		},
		RootFS: ocispec.RootFS{Type: "layers"},
	}
	manifest := ocispec.Manifest{
		Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageManifest, Annotations: r.annotations(),
	}

	for _, f := range layers {
		unpacked, err := pack([]file{f}, r.time)
		if err != nil {
			return image, err
		}

		packed, err := compress(unpacked)
		if err != nil {
			return image, err
		}

		manifest.Layers = append(manifest.Layers, image.blobs.add(ocispec.MediaTypeImageLayerGzip, packed))
		config.RootFS.DiffIDs = append(config.RootFS.DiffIDs, digestOf(unpacked))
		config.History = append(config.History, ocispec.History{Created: &r.time, CreatedBy: "COPY /" + f.path})
	}

	var err error
	if manifest.Config, err = image.blobs.addJSON(ocispec.MediaTypeImageConfig, config); err != nil {
		return image, err
	}

	image.descriptor, err = image.blobs.addJSON(ocispec.MediaTypeImageManifest, manifest)
	image.descriptor.Platform = &config.Platform

	return image, err
}

// imageLayout is the image of all platforms.
func (r *release) imageLayout(images []platformImage) (*layout, error) {
	l := &layout{blobs: blobs{}}
	index := ocispec.Index{
		Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageIndex, Annotations: r.annotations(),
	}

	for _, image := range images {
		index.Manifests = append(index.Manifests, image.descriptor)
		l.blobs.addAll(image.blobs)
	}

	var err error
	l.top, err = l.blobs.addJSON(ocispec.MediaTypeImageIndex, index)
	// By the first, tools of OCI find what is in an archive; by the second, containerd and Docker name it.
	l.top.Annotations = map[string]string{
		ocispec.AnnotationRefName:  r.version,
		"io.containerd.image.name": r.image() + ":" + r.version,
	}

	return l, err
}

// annotations say of an image what people and scanners look for.
func (r *release) annotations() map[string]string {
	return map[string]string{
		ocispec.AnnotationTitle:    name,
		ocispec.AnnotationVersion:  r.version,
		ocispec.AnnotationRevision: r.commit,
		ocispec.AnnotationCreated:  r.time.Format(time.RFC3339),
		ocispec.AnnotationLicenses: "Apache-2.0",
	}
}

// authorities are the certificate authorities that Mozilla trusts, from a module of Go's makers: the same wherever the
// image is built. Those that are trusted for old certificates only are left out: a file of authorities cannot say so.
func authorities() []byte {
	var file []byte

	for root := range bundle.Roots() {
		if root.Constraint == nil {
			file = append(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate})...)
		}
	}

	return file
}
