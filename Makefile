# make help lists the targets. Everything runs from .venv/, which `make setup` makes and keeps up to date.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
.NOTPARALLEL:
.DEFAULT_GOAL := help

VENV := .venv
PYTHON := $(VENV)/bin/python
SPEEDUPS = aeron_async/_speedups$(shell $(PYTHON) -c 'import sysconfig; print(sysconfig.get_config_var("EXT_SUFFIX"))')
CARGO_MANIFEST := --manifest-path driver/Cargo.toml
C_SOURCES = $(shell find native benchmarks/peers -name build -prune -o -name '*.[ch]' -print -o -name '*.[ch]pp' -print)
RUST_PEER := --manifest-path benchmarks/peers/rust/Cargo.toml

# The driver is built with PyPI's cmake; cargo may be installed and not on PATH.
export PATH := $(CURDIR)/$(VENV)/bin:$(PATH):$(HOME)/.cargo/bin
ifeq ($(shell uname -m),aarch64)
# .cargo/config.toml names the baseline of x86-64; a variable that is set wins over it.
export RUSTERON_C_MARCH ?= armv8-a
endif

.PHONY: help
help: ## list the targets
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z0-9-]+):.*## /\1\t/' | expand -t 16

.PHONY: setup
setup: ## install Debian packages and .venv/, where something is missing
	@scripts/system_packages
	@scripts/once $(VENV)/.stamp-packages requirements-dev.lock -- $(PYTHON) -- scripts/make_venv $(VENV)

.PHONY: build
build: setup ## build the native modules and the driver into the source tree
	@scripts/once $(VENV)/.stamp-build pyproject.toml setup.py .cargo native driver -- \
		aeron_async/_native.abi3.so $(SPEEDUPS) -- scripts/build_in_place

.PHONY: demo
demo: build ## send verified messages through a real driver; the last line says ok:
	@$(PYTHON) examples/demo.py

.PHONY: test test-native test-driver test-python test-pure test-py311
test: test-native test-driver test-python test-pure test-py311 ## run every test

test-native: setup ## run the C core's own tests
	@$(MAKE) --no-print-directory -C native/tests test

test-driver: setup require-rust ## run the Rust driver's own tests
	@cargo test --release --locked $(CARGO_MANIFEST)

test-python: build ## run the Python suite; ARGS="-k name" passes arguments to pytest
	@scripts/system_packages g++
	@$(PYTHON) -m pytest $(ARGS)

# What the two faces of the C core both do.
MESSAGE_PATH = $(wildcard tests/unit/test_face.py tests/unit/test_publication*.py tests/unit/test_publish_*.py \
	tests/unit/test_exclusive_publication.py tests/unit/test_claim.py tests/unit/test_batch_publisher.py \
	tests/unit/receiving tests/system/test_streams_*.py tests/system/test_parity_b_*.py \
	tests/system/test_parity_c_receiving.py tests/interop/test_streams.py)

test-pure: build ## run the message path's tests without _speedups
	@AERON_ASYNC_PURE=1 $(PYTHON) -m pytest $(MESSAGE_PATH) $(ARGS)

test-py311: wheel ## run the quick part of the suite on CPython 3.11, from the wheel
	@scripts/test_py311 tests/unit tests/system/test_client_connect.py

.PHONY: bench
bench: build ## measure every client side by side; QUICK=1, SUITE=name, ARGS="--clients rust,pyaeron"
	@scripts/system_packages g++
	@$(PYTHON) benchmarks/run.py $(if $(QUICK),--quick) $(addprefix --suite ,$(SUITE)) $(ARGS)

.PHONY: flame-graphs
flame-graphs: build ## draw where the message path's time goes (needs perf and inferno)
	@$(PYTHON) -m benchmarks.flame_graphs

.PHONY: sanitize
sanitize: setup ## run the C core's tests under AddressSanitizer, UBSan and ThreadSanitizer
	@scripts/system_packages libclang-rt-dev
	@$(MAKE) --no-print-directory -C native/tests sanitize

.PHONY: lint lint-python lint-native lint-driver
lint: lint-python lint-native lint-driver ## check format, style and types

lint-python: setup
	@$(PYTHON) -m ruff format --check .
	@$(PYTHON) -m ruff check .
	@$(PYTHON) -m mypy

lint-native: setup
	@clang-format --dry-run -Werror $(C_SOURCES)

lint-driver: setup require-rust
	@cargo fmt --check $(CARGO_MANIFEST)
	@cargo clippy --release --locked --all-targets --quiet $(CARGO_MANIFEST) -- -D warnings
	@cargo fmt --check $(RUST_PEER)
	@cargo clippy --release --locked --quiet $(RUST_PEER) --target-dir build/benchmarks/rust -- -D warnings

.PHONY: format
format: setup require-rust ## format everything
	@$(PYTHON) -m ruff format .
	@$(PYTHON) -m ruff check --fix .
	@clang-format -i $(C_SOURCES)
	@cargo fmt $(CARGO_MANIFEST)
	@cargo fmt $(RUST_PEER)

.PHONY: wheel
wheel: setup ## build dist/*.whl
	@scripts/once dist/.stamp-wheel pyproject.toml setup.py MANIFEST.in README.md .cargo native driver aeron_async -- \
		dist -- scripts/build_wheel
	@ls dist/*.whl

.PHONY: lock
lock: setup ## choose the newest versions of the development packages
	@$(PYTHON) -m pip install --quiet uv
	@$(PYTHON) -m uv pip compile --quiet --universal --python-version 3.11 --upgrade --generate-hashes --no-header \
		--all-extras --group dev pyproject.toml --output-file requirements-dev.lock

.PHONY: clean distclean
clean: ## remove what the builds made
	rm -rf build dist *.egg-info aeron_async/_bin aeron_async/_native.*so aeron_async/_speedups.*so driver/target $(VENV)/.stamp-build
	find . -name $(VENV) -prune -o -name __pycache__ -print0 | xargs -0 rm -rf
	if [ -d native/tests ]; then $(MAKE) --no-print-directory -C native/tests clean; fi

distclean: clean ## remove the virtual environments and caches, too
	rm -rf .venv .venv-* .cache .hypothesis .mypy_cache .pytest_cache .ruff_cache

.PHONY: require-rust
require-rust:
	@scripts/check_rust
