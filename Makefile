# SPDX-License-Identifier: GPL-2.0
#
# Entry points. The work is done by the scripts in scripts/ and selftests/vm/;
# the module itself is described in Kbuild. "make help" lists what there is.

# Handed to the scripts; see there, or "make help".
export KDIR KDEBS SVCRDMA_CACHE

.DEFAULT_GOAL := module

##@ Building
.PHONY: module
module: ## Build svcrdma_rs.ko for Debian's kernel (or for KDIR=)
	@scripts/build-module

.PHONY: update-kernel
update-kernel: ## Ask the archive for a newer kernel of the series at the next build
	@scripts/cache remove kernel-debs

.PHONY: buildroot
buildroot: ## A shell in the build root
	@scripts/in-buildroot bash

##@ Cleaning
.PHONY: clean
clean: ## Remove build products from the checkout
	rm -rf build

.PHONY: distclean
distclean: clean ## ... and the cache with build root, kernels and VM images
	@scripts/cache remove all

##@ Help
.PHONY: help
help: ## This list
	@scripts/make-help $(firstword $(MAKEFILE_LIST))
