# SPDX-License-Identifier: Apache-2.0
# Every target does its own set-up: a fresh Debian 12 or Ubuntu 24.04 machine needs only git and make.
SHELL := /bin/bash -euo pipefail
PYTHON ?= python3
JOBS ?= $(shell nproc)
# A process of the tests takes about 1.5 GB, and all of them share a GPU where there is one.
TEST_JOBS ?= $(shell echo $$(( $(JOBS) < 4 ? $(JOBS) : 4 )))
BUILD := build
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/pip --disable-pip-version-check
ABS_PYTHON = $(CURDIR)/$(BIN)/python
# pip's build and a developer's `ninja -C build` share one incremental build folder.
PIP_BUILD := --no-build-isolation --config-settings=build-dir=$(BUILD)
say = @echo "== $(1)"
export CMAKE_BUILD_PARALLEL_LEVEL := $(JOBS)
# Everything here is about the package that is installed, not about sources on a developer's path.
unexport PYTHONPATH

.DEFAULT_GOAL := help
.PHONY: help system system-tests build demo test cpp-test python-test processors cpp-examples build-cost sanitize random random-sample bench bench-peers wheel check clean

help: ## this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/  make \1\t\2/' | expand -t 20

system: ## system packages that are missing, through apt
	@scripts/install_system_packages.sh

system-tests: system ## what only the tests and ./check need: clang-format, cross compilers, an emulator
	@scripts/install_system_packages.sh --tests

$(VENV)/.ready: pyproject.toml | system
	$(call say,Python packages that the compiler needs -> $(VENV))
	$(PYTHON) -m venv $(VENV)
	$(PIP) install --quiet $$($(BIN)/python scripts/requirements.py build run)
	@touch $@

$(VENV)/.ready-tests: $(VENV)/.ready | system-tests
	$(call say,Python packages that the tests need (PyTorch$(comma) ONNX Runtime$(comma) …))
	$(PIP) install --quiet $$($(BIN)/python scripts/requirements.py test wheel)
	@touch $@
comma := ,

# Libraries and package, where something in them is newer than what is installed.
SOURCES := $(shell find src include python cmake scripts/stubs.py CMakeLists.txt -type f ! -name '*.py[ci]')
$(VENV)/.installed: $(VENV)/.ready $(SOURCES)
	$(call say,compiling the C++ libraries with $(JOBS) jobs)
	cmake -S . -B $(BUILD) -G Ninja -DPython_EXECUTABLE=$(ABS_PYTHON) > $(VENV)/configure.log || { cat $(VENV)/configure.log; exit 1; }
	cmake --build $(BUILD) -j $(JOBS)
	$(call say,installing the package)
	$(PIP) install --quiet --no-deps --force-reinstall $(PIP_BUILD) .
	@touch $@

build: system $(VENV)/.installed ## environment, libraries, and the package installed into .venv

demo: build ## compile, check and time a tensor expression and a ResNet-18
	cd examples && ../$(BIN)/python quickstart.py && ../$(BIN)/python resnet18.py

test: cpp-test python-test cpp-examples ## C++ and Python tests, and the C++ examples

cpp-test: build system-tests ## C++ tests
	cmake -DTVM_BUILD_TESTS=ON $(BUILD) > $(VENV)/configure.log || { cat $(VENV)/configure.log; exit 1; }
	cmake --build $(BUILD) -j $(JOBS)
	ctest --test-dir $(BUILD) --output-on-failure --no-tests=error

python-test: build $(VENV)/.ready-tests ## Python tests, against the installed package
	$(BIN)/python -m pytest -q -n $(TEST_JOBS) --dist worksteal tests

PROCESSORS := x86-64 haswell skylake-avx512
# Those that name a processor themselves, or are about GPUs, are the same whatever processor this is.
PROCESSOR_TESTS := tests/schedule/test_default_rules*.py tests/backend --ignore tests/backend/cuda \
  -k "not (x86-64 or haswell or skylake-avx512)"
processors: build $(VENV)/.ready-tests ## tests of rules and code for x86-64 without and with AVX2 and AVX-512, whatever this machine is
	for cpu in $(PROCESSORS); do echo "== $$cpu"; \
	  TVM_HOST_CPU=$$cpu $(BIN)/python -m pytest -q -n $(TEST_JOBS) $(PROCESSOR_TESTS); done

build-cost: build ## seconds of the C++ build per 1,000 lines; fails when they grew by a third
	$(BIN)/python scripts/build_cost.py $(BUILD)

sanitize: build system-tests ## C++ tests under the address and undefined-behaviour sanitizers
	cmake -S . -B build-sanitize -G Ninja -DPython_EXECUTABLE=$(ABS_PYTHON) -DTVM_BUILD_TESTS=ON -DTVM_USE_LLVM=OFF \
	  -DTVM_SANITIZE=address,undefined > $(VENV)/configure.log || { cat $(VENV)/configure.log; exit 1; }
	cmake --build build-sanitize -j $(JOBS)
	ctest --test-dir build-sanitize --output-on-failure --no-tests=error

SECONDS := 300
SEED := 0
random: build $(VENV)/.ready-tests ## random programs, schedules, graphs, calls and files for SECONDS, from SEED
	$(BIN)/python -m tests.long --seconds $(SECONDS) --seed $(SEED)

random-sample: build $(VENV)/.ready-tests ## the same programs of each kind from SEED on every machine: five minutes on two cores
	$(BIN)/python -m tests.long --sample --seed $(SEED)

cpp-examples: build ## the C++ examples, against the installed package, without Python at run time
	scripts/run_cpp_examples.sh $(ABS_PYTHON)

bench: build $(VENV)/.ready-tests ## us and installed peers in one run; NAMES="sigmoid overhead" chooses
	$(BIN)/python -m bench $(NAMES)

PEERS := $(patsubst bench/requirements/%.txt,.venv-peer-%/.ready,$(wildcard bench/requirements/*.txt))
bench-peers: $(PEERS) ## environments of the peers that do not share ours
.venv-peer-%/.ready: bench/requirements/%.txt | system
	$(PYTHON) -m venv .venv-peer-$*
	.venv-peer-$*/bin/pip --disable-pip-version-check install --quiet -r $<
	touch $@

wheel: $(VENV)/.ready-tests ## a wheel in wheelhouse/ that runs on other machines
	rm -rf dist wheelhouse
	$(PIP) wheel --quiet --no-deps $(PIP_BUILD) -w dist .
	$(BIN)/python scripts/repair_wheel.py dist wheelhouse

check: build $(VENV)/.ready-tests ## formatting, lint, structure, tests of what was changed
	./check

clean: ## everything that was built; the environments stay
	rm -rf $(BUILD) build-sanitize dist wheelhouse examples/cpp/build
