# Every target is explained by `make help`; what a target does is in hack/ or in the package it runs.
SHELL := /usr/bin/env bash
.DEFAULT_GOAL := help

# kustomize, which the Omni client brings along, can load Go plugins. A program that can keeps every method of
# every package, and only the system's linker can link it: twice the size, and a minute for each test binary.
# apimachinery holds equal managedFields once with fieldsv1string: an eighth of omni-apiserver's heap with 1,000 clusters.
# Without C, as the programs are shipped, and without the folder's path, so that everything is compiled once: for vet, for
# tests and for programs, in each checkout.
export GOFLAGS := $(GOFLAGS) -trimpath -tags=kustomize_disable_go_plugin_support,fieldsv1string
export CGO_ENABLED := 0

# Packages that need no process, no etcd and no race detector.
UNIT_PACKAGES = $(shell hack/test-packages.sh unit)

# Built and then run in place of the shell, so that signals to make's child reach the stack: `go run` forwards none.
build-demo = @echo "Building the demonstration (a few minutes the first time) ..." && go build -o bin/demo ./test/demo

.PHONY: help
help: ## Show this list.
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  %-17s %s\n", $$1, $$2}'

.PHONY: build
build: ## Build omni-apiserver, omni-controller and the plugin kubectl-omni into bin/.
	go build -ldflags '$(shell hack/ldflags.sh)' -o bin/omni-apiserver ./cmd/apiserver
	go build -ldflags '$(shell hack/ldflags.sh)' -o bin/omni-controller ./cmd/controller
	go build -ldflags '$(shell hack/ldflags.sh)' -o bin/kubectl-omni ./cmd/kubectl-omni

.PHONY: generate
generate: ## Regenerate the code under pkg/generated and the zz_generated files.
	hack/update-codegen.sh

.PHONY: verify
verify: ## Check formatting, vet, import rules, decoders of foreign text, modules and that generated code is up to date.
	hack/verify-all.sh

.PHONY: test-unit
test-unit: ## Run the tests of the pure packages (under a minute).
	go test $(UNIT_PACKAGES)

.PHONY: test
test: ## Run the tests, with real Kubernetes processes (builds them once), but for those of test-slow and of the targets below.
	hack/test.sh fast

.PHONY: test-slow
test-slow: ## Run the tests that kill our programs or wait for a minute, the others with the race detector, and the fuzz targets for a moment.
	hack/test.sh slow

.PHONY: e2e-flux
e2e-flux: ## Run the operator together with Flux's own controllers (builds them once).
	hack/e2e-flux.sh

.PHONY: e2e-certmanager
e2e-certmanager: ## Run the installed chart together with cert-manager's own controllers and cainjector (builds them once).
	hack/e2e-certmanager.sh

.PHONY: e2e-durability
e2e-durability: ## Kill the API server 100 times under writes and look for each that was acknowledged (KILLS, SEED).
	hack/e2e-durability.sh

.PHONY: attacks
attacks: ## Attack both programs, within the memory limits of their Pods, and print their peaks as a table (COUNT).
	hack/attacks.sh

.PHONY: fuzz
fuzz: ## Fuzz every parser of foreign input (FUZZTIME for each, default 1m; the first run builds for minutes).
	hack/fuzz.sh

.PHONY: lint
lint: ## Run golangci-lint with .golangci.yaml (built once; ARGS).
	hack/lint.sh $(ARGS)

.PHONY: deadcode
deadcode: ## List functions that no program and no test reaches; fails if there is one.
	hack/deadcode.sh

.PHONY: vulncheck
vulncheck: ## Look for known vulnerabilities; fails with a word of its own if the database cannot be reached.
	hack/vulncheck.sh

.PHONY: demo
demo: ## Show the path from kubectl to Omni and into a workload cluster on this machine, and clean up.
	$(build-demo) && exec bin/demo

.PHONY: recording
recording: ## Run the demonstration and draw what it prints, with its times, as docs/images/demo.svg.
	$(build-demo) && go run ./hack/recording -o docs/images/demo.svg -from 'Everything runs' -length 30s bin/demo

.PHONY: up
up: ## Start the same stack and leave it running until Ctrl-C.
	$(build-demo) && exec bin/demo --up

.PHONY: test-omni
test-omni: ## Run contract and cluster tests against a real Omni (opt-in: OMNI_EULA_NAME, OMNI_EULA_EMAIL; or OMNI_ENDPOINT).
	hack/test-omni.sh

.PHONY: bench
bench: ## Run every benchmark, with real processes (about an hour; ARGS, see docs/development/benchmarks.md).
	hack/bench.sh -out bin/bench-results $(ARGS)

.PHONY: bench-smoke
bench-smoke: ## Run the benchmark of real processes with sizes that only show that it works (a minute or two).
	go build -o bin/bench ./test/bench && exec bin/bench -smoke $(ARGS)

.PHONY: release-dry-run
release-dry-run: ## Build what a release consists of into dist/, twice, and compare (a quarter of an hour; docs/development/releases.md).
	hack/release-dry-run.sh

# The steps of the workflow of releases, which have the rights that they need.
.PHONY: release-check release-login release-push release-sign release-github
release-check: ## Say why this commit cannot become the release VERSION.
	hack/release.sh check

release-login: ## Log in to the registry (REGISTRY, REGISTRY_USERNAME, REGISTRY_PASSWORD), for signatures and attestations.
	hack/release-login.sh

release-push: ## Push the image and the chart of dist/ to the registry.
	hack/release.sh push

release-sign: ## Sign what was pushed, and the checksums, as the workflow that runs this.
	hack/release.sh sign

release-github: ## Publish dist/ as a release of GitHub.
	hack/release.sh github
