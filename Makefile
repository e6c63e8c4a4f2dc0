# SPDX-License-Identifier: GPL-2.0
#
# Entry points. The work is done by the scripts in scripts/ and selftests/vm/;
# the module itself is described in Kbuild. "make help" lists what there is.

# Handed to the scripts; see there, or "make help".
export KDIR KDEBS SVCRDMA_CACHE

# Options and tests for the machines: make vm-test OPTIONS="--machines 1" TESTS=mount_data
OPTIONS ?=
TESTS ?=
BUDGET ?= 60m
SECONDS ?= 60

.DEFAULT_GOAL := module

##@ Building
.PHONY: module
module: ## Build svcrdma_rs.ko for Debian's kernel (or for KDIR=)
	@scripts/build-module

.PHONY: debug-kernel
debug-kernel: ## Build the kernel with all checkers (15 minutes, once)
	@scripts/debug-kernel

.PHONY: update-kernel
update-kernel: ## Ask the archive for a newer kernel of the series at the next build
	@scripts/cache remove kernel-debs

.PHONY: buildroot
buildroot: ## A shell in the build root
	@scripts/in-buildroot bash

##@ Trying it
.PHONY: demo
demo: ## The main job, shown: a Linux client copies a real tree over this transport
	@scripts/vm demo

.PHONY: vm
vm: ## A shell in a server with the export served, beside a client
	@scripts/vm shell $(OPTIONS)

.PHONY: vm-client
vm-client: ## A shell in the client of "make vm"
	@scripts/vm shell --attach client

.PHONY: vm-server
vm-server: ## One more shell in the server of "make vm"
	@scripts/vm shell --attach server

.PHONY: bench-quick
bench-quick: ## Work per operation, this transport against the kernel's, counted in one boot
	@scripts/vm bench

##@ Testing
.PHONY: test
test: ## lint, compile-fail, host-test, the ci tier in machines and both readers; what CI runs
	@scripts/test scripts/lint scripts/compile-fail scripts/host-test "scripts/vm test --tier ci $(OPTIONS)" scripts/test-readers

.PHONY: lint
lint: ## Static checks: formatting, clippy, checkpatch, layers, unsafe code
	@scripts/lint $(TESTS)

.PHONY: compile-fail
compile-fail: ## Misuses of the module's types, which must not compile (TESTS=)
	@scripts/compile-fail $(TESTS)

.PHONY: host-test
host-test: ## The tests that need no kernel
	@scripts/host-test

.PHONY: coverage
coverage: ## Lines of rust/proto that the host tests reach; fails below 95 %
	@scripts/coverage

.PHONY: fuzz
fuzz: ## The fuzz targets of the wire format, SECONDS=60 for each (TESTS=)
	@scripts/fuzz --seconds $(SECONDS) $(TESTS)

.PHONY: vm-test
vm-test: ## The quick tier in two machines, or TESTS=, with OPTIONS=
	@scripts/vm test $(OPTIONS) $(TESTS)

.PHONY: test-readers
test-readers: ## Data with each reader on rxe, DMA mappings checked and bounced, and on siw
	@scripts/test-readers $(TESTS)

.PHONY: test-debug
test-debug: ## The quick tier on the debug kernel, over rxe and over siw
	@scripts/test "RESULTS=build/vm/debug-rxe scripts/vm test --kernel debug --driver rxe $(OPTIONS)" \
		"RESULTS=build/vm/debug-siw scripts/vm test --kernel debug --driver siw $(OPTIONS)"

.PHONY: test-full
test-full: ## The full tier, BUDGET=60m of it at a time: goes on where it was
	@scripts/test-full --budget $(BUDGET)

.PHONY: test-full-report
test-full-report: ## What of the full tier has passed with this module
	@scripts/test-full --report

##@ Conformance
.PHONY: conform
conform: ## Raw RPC-over-RDMA against this transport, or with SERVER=c against the kernel's
	@RESULTS=$${RESULTS:-build/vm/conform$(if $(SERVER),-$(SERVER))} scripts/vm test \
		$(if $(filter c,$(SERVER)),--transport rdma) $(OPTIONS) conform

.PHONY: conform-selftest
conform-selftest: ## Does the suite notice? The same against peers that misbehave
	@RESULTS=$${RESULTS:-build/vm/conform-selftest} scripts/vm test --machines 1 $(OPTIONS) conform_selftest

.PHONY: conform-corpus
conform-corpus: conform ## ... and take what the suite sent into the corpora of the fuzz targets
	@scripts/fuzz --seconds 10 --keep --seeds build/vm/conform/seeds parse private

##@ Cleaning
.PHONY: clean
clean: ## Remove build products from the checkout
	rm -rf build

.PHONY: distclean
distclean: clean ## ... and the cache with build root, kernels and images
	@scripts/cache remove all

##@ Help
.PHONY: help
help: ## This list
	@scripts/make-help $(firstword $(MAKEFILE_LIST))
