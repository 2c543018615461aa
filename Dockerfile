# One image with both programs, omni-apiserver and omni-controller, and nothing else: no shell, no libraries.
#
#   docker build --build-arg VERSION=v0.1.0 --build-arg COMMIT=$(git rev-parse HEAD) -t registry.example.com/omni-cluster-operator:v0.1.0 .
#
# The version of Go is that of go.mod or newer, of the same minor version; a test compares them. Pin the digest as well
# where the build has to be repeatable to the bit.
FROM --platform=$BUILDPLATFORM golang:1.26.8-bookworm AS build

WORKDIR /src

# The modules change seldom: a layer of their own.
COPY go.mod go.sum ./
RUN go mod download

COPY cmd ./cmd
COPY hack/commit.sh ./hack/commit.sh
COPY hack/ldflags.sh ./hack/ldflags.sh
COPY pkg ./pkg

# What the programs say of themselves; there is no .git here.
ARG VERSION=dev
ARG COMMIT=unknown
ARG TARGETOS
ARG TARGETARCH

# Static, without Go plugins, and with equal managedFields held once, as `make build` does it.
ENV CGO_ENABLED=0 GOFLAGS=-tags=kustomize_disable_go_plugin_support,fieldsv1string
RUN GOOS=$TARGETOS GOARCH=$TARGETARCH go build -trimpath -ldflags "-s -w $(VERSION=$VERSION COMMIT=$COMMIT hack/ldflags.sh)" -o /out/ ./cmd/apiserver ./cmd/controller && \
    mv /out/apiserver /out/omni-apiserver && mv /out/controller /out/omni-controller

FROM scratch

# Certificate authorities of the public web, for Omni, chart repositories and registries.
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY --from=build /out/omni-apiserver /out/omni-controller /

# Nobody in particular, as a number, so that Kubernetes can tell that it is not root.
USER 65532:65532

# The chart names the program. Without a name the image explains itself.
CMD ["/omni-controller", "--help"]
