# Tallyard: what a person does with the tree. `make` alone lists the targets.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
LDFLAGS := -s -w -X main.version=$(VERSION)

# The race detector needs a C compiler; the program itself is built without.
CC_FOUND := $(shell command -v $${CC:-gcc} || command -v cc || true)
RACE ?= $(if $(CC_FOUND),1,0)
TEST_ENV := $(if $(filter 1,$(RACE)),CGO_ENABLED=1,)
TEST_FLAGS := $(if $(filter 1,$(RACE)),-race,) -timeout $(or $(TEST_TIMEOUT),20m) $(TEST_ARGS)

# Packages tested at once; each may start servers of its own.
PARALLEL ?= 2
# What to test or to measure: make test PKG=./infra/postgres/... RUN=TestLead
PKG ?= ./...
RUN ?=
BENCH ?= .
FUZZTIME ?= 10s
SOAK ?= 10m

.PHONY: help
help: ## list the targets
	@awk -F':.*## ' '/^[a-z][a-z-]*:.*## / {printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: run
run: build postgres ## build and run on this machine, with everything embedded (ARGS="--help" shows the settings)
	@exec bin/tallyard dev $(ARGS)

.PHONY: build
build: ## build bin/tallyard
	@mkdir -p bin
	CGO_ENABLED=0 go build -ldflags '$(LDFLAGS)' -o bin/tallyard ./cmd/tallyard

.PHONY: postgres
postgres: ## make sure that PostgreSQL's server binaries are installed
	@tools/postgres.sh

.PHONY: test
test: postgres ## run every test (PKG, RUN choose; RACE=0 is quicker)
	$(TEST_ENV) go test $(TEST_FLAGS) -p $(PARALLEL) $(if $(RUN),-run '$(RUN)',) $(PKG)

.PHONY: test-tools
test-tools: ## run the tests of the tools in tools/
	go test -C tools ./check/...

.PHONY: test-conformance
test-conformance: ## hold the embedded event store against the clients that are published for its protocol
	go test -count=1 -v -timeout 15m -tags conformance ./test/conformance

ifneq ($(wildcard test/chaos/*.go),)
.PHONY: test-chaos
test-chaos: build postgres ## kill -9 the program at random moments under load (CHAOS_KILLS, CHAOS_WRITES)
	CHAOS_KILLS=$(CHAOS_KILLS) CHAOS_WRITES=$(CHAOS_WRITES) go test -count=1 -v -timeout 60m -tags chaos ./test/chaos/...
endif

.PHONY: soak
soak: ## work an embedded event store for a while and see that nothing grows or gets lost (SOAK=10m)
	CGO_ENABLED=0 go run ./test/soak -for $(SOAK)
.PHONY: test-crash
test-crash: ## crash the embedded event store (CRASHES=1000) and hurt each of its writes to the disk (FAULTS=-1: all)
	EVENTSTORE_CRASHES=$(or $(CRASHES),1000) EVENTSTORE_FAULTS=$(or $(FAULTS),-1) go test -count=1 -v -timeout 120m -run '^(TestCrashes|TestFaults)$$' ./infra/eventstore/embedded/

.PHONY: fuzz
fuzz: ## fuzz each fuzz target for a short time (FUZZTIME=10s)
	tools/fuzz.sh $(FUZZTIME)

.PHONY: bench
bench: postgres ## run the measurements (BENCH chooses)
	CGO_ENABLED=0 go test -run '^$$' -bench '$(BENCH)' -benchmem -timeout 60m -p 1 $(PKG)

.PHONY: coverage
coverage: postgres ## write coverage.out and print what is covered, without generated code
	$(TEST_ENV) go test -p $(PARALLEL) -timeout 30m -coverpkg=./... -coverprofile=coverage.all ./...
	@grep -v -E '/(graph/generated|graph/gqlmodel)/' coverage.all > coverage.out; rm coverage.all
	@go tool cover -func=coverage.out | tail -n 1

.PHONY: generate
generate: bin/tools/.installed ## make generated code anew
	tools/generate.sh

.PHONY: fmt
fmt: bin/tools/.installed ## format the code
	bin/tools/golangci-lint fmt ./...

.PHONY: lint
lint: bin/tools/.installed ## lint the code
	bin/tools/golangci-lint run ./...
	cd tools && ../bin/tools/golangci-lint run -c ../.golangci.yml ./...

.PHONY: verify
verify: bin/tools/.installed ## everything but the tests: generated code, format, lint, vulnerabilities, documents, clean tree
	tools/verify.sh

# The linters, at the versions that tools/go.mod pins.
bin/tools/.installed: tools/go.mod tools/go.sum
	@mkdir -p bin/tools
	@echo "building the tools that tools/go.mod pins (minutes, once)"
	@GOBIN=$(CURDIR)/bin/tools GOFLAGS=-mod=readonly go install -C tools tool
	@touch $@

.PHONY: clean
clean: ## remove what was built
	rm -rf bin coverage.out coverage.all
