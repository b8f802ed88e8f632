# Weir. `make help` lists what can be done; the two targets that matter are `demo` and `test`.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

CARGO ?= cargo
FUZZ_SECONDS ?= 60

.PHONY: help
help: ## Show this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1\t/' \
		| while IFS=$$'\t' read -r name text; do printf '  make %-8s %s\n' "$$name" "$$text"; done

.PHONY: demo
demo: ## Build Weir, publish the bundled clip to it in a loop, and print where to watch it
	$(CARGO) build --release --locked -p weir-gateway --bin weir
	python3 gateway/demo.py target/release/weir

.PHONY: setup
setup: ## Install the players, encoders and validators that the tests use (Debian, npm, PyPI)
	@tests/setup.sh

.PHONY: check
check: ## Format, lints, and all tests that need no other program (fast; no setup)
	$(CARGO) fmt --all -- --check
	$(CARGO) clippy --locked --workspace --all-targets -- -D warnings
	$(CARGO) test --locked -q -p weir-protocol -p weir-hls -p weir-gateway
	$(CARGO) test --locked -q -p weir-e2e --lib --test tidy --test docker

.PHONY: test
test: setup ## Run everything that CI runs: check, end-to-end tests on both I/O backends, fuzzing
	$(CARGO) fmt --all -- --check
	$(CARGO) clippy --locked --workspace --all-targets -- -D warnings
	$(CARGO) test --locked --workspace
	$(MAKE) fuzz

.PHONY: fuzz
fuzz: ## Fuzz all parsers, and sequences of operations, for FUZZ_SECONDS (60)
	$(CARGO) run --locked -q --release -p weir-e2e --bin fuzz -- --seconds $(FUZZ_SECONDS)

.PHONY: bench
bench: setup ## Measure Weir on both I/O backends, next to nginx, and print a table (BENCH=--quick, --json FILE)
	$(CARGO) run --locked -q --release -p weir-e2e --bin bench -- $(BENCH)

.PHONY: docs
docs: ## Build the API documentation of all crates; warnings are errors
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --locked --workspace --no-deps
	@echo "open target/doc/weir/index.html"

.PHONY: clip
clip: ## Make the demo clip anew (gateway/assets/demo.flv; needs setup)
	gateway/assets/make-demo-clip.sh

.PHONY: vendor
vendor: setup ## Copy hls.js and mpegts.js, at the versions of tests/package.json, into the player page
	gateway/assets/vendor.sh
