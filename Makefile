# Everything a developer types. Works on a fresh Debian 12 with nothing but git and make: each target
# first installs what it lacks (scripts/install-deps.sh says what and why, and needs root or sudo).
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help scale build demo-build test e2e-deps asan tsan sim fuzz demo bench format lint clean

JOBS ?= $(shell nproc)
SOURCES = git ls-files -z -- '*.h' '*.cpp' '*.cc'

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: ## build everything into build/; the program is build/cotenant
	@scripts/install-deps.sh build
	cmake --preset dev
	cmake --build --preset dev --parallel $(JOBS)

test: build e2e-deps asan ## build, then unit tests with sanitizers, then all tests (needs root for Docker)
	ctest --test-dir build --output-on-failure --no-tests=error --parallel $(JOBS) -LE scale </dev/null

scale: build ## gpusim with thousands of clients, minutes long
	ctest --test-dir build --output-on-failure --no-tests=error -L scale </dev/null

e2e-deps:
	@scripts/install-deps.sh run test
	scripts/install-node-modules.sh

asan: ## build and run the unit tests with address and undefined-behaviour sanitizers
	@scripts/install-deps.sh build
	cmake --preset asan
	cmake --build --preset asan --parallel $(JOBS)
	scripts/run-asan-tests.sh

tsan: ## build and run the unit tests of the layers with threads under the thread sanitizer
	@scripts/install-deps.sh build
	cmake --preset tsan
	cmake --build --preset tsan --parallel $(JOBS)
	scripts/run-tsan-tests.sh

sim: ## run 10,000 seeds of the cluster simulator, every power failure and many kills
	@scripts/install-deps.sh build
	cmake --preset dev
	cmake --build --preset dev --parallel $(JOBS) --target cotenant cotenant-sim unit_tests crash_tests
	seq 0 99 | xargs -P $(JOBS) -I N sh -c 'build/cotenant-sim --seeds $$((N * 100 + 1))..$$((N * 100 + 100)) --keep-going'
	COTENANT_TEST_POWER_FAILURES=all build/unit_tests --gtest_filter='SqlitePowerFailureTest.*' --gtest_brief=1
	COTENANT_TEST_KILLS=200 COTENANT_TEST_BINARY=$(CURDIR)/build/cotenant build/crash_tests --gtest_brief=1

fuzz: ## build the fuzz targets with clang and run each for FUZZ_SECONDS (60)
	@scripts/install-deps.sh build fuzz
	cmake --preset fuzz
	cmake --build --preset fuzz --parallel $(JOBS)
	scripts/run-fuzzers.sh $(or $(FUZZ_SECONDS),60)

bench: ## build optimised, then measure; each table says on what machine
	@scripts/install-deps.sh build run bench
	cmake --preset bench
	cmake --build --preset bench --parallel $(JOBS)
	scripts/run-benches.sh

demo-build:
	@scripts/install-deps.sh build
	cmake --preset dev
	cmake --build --preset dev --parallel $(JOBS) \
	  --target cotenant gpusimd gpusim nvidia-cuda-mps-control gpusim_nvml gpusim_cuda gpu-worker

demo: demo-build ## show GPU sharing on a simulated GPU, step by step (needs root or a Docker engine)
	@scripts/install-deps.sh run
	@scripts/demo.sh

format: ## format the tracked C++ files in place
	@scripts/install-deps.sh format
	$(SOURCES) | xargs -0 -r clang-format -i

lint: ## check the format of the tracked C++ files, and src/ with clang-tidy
	@scripts/install-deps.sh build format lint
	$(SOURCES) | xargs -0 -r clang-format --dry-run -Werror
	scripts/run-clang-tidy.sh

clean: ## remove what was built and what npm fetched
	rm -rf build build-asan build-tsan build-fuzz build-tidy build-release tests/e2e/node_modules
