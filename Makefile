# Nestor: `make run` shows it working, `make test` proves it. The logic lives in scripts/ and CMakePresets.json.

BUILD := build/release
MODEL ?= models/abacus
SERVER ?= 127.0.0.1:50051

.DEFAULT_GOAL := help
.PHONY: help setup run serve test test-asan test-tsan verify eval bench memory format lint clean FORCE

help: ## list the targets
	@sed -nE 's/^([a-z%-]+):.*## (.*)$$/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 22

setup: ## install what is missing, saying what and why
	@scripts/setup.sh

# build-release, build-asan, ...: every preset of CMakePresets.json; everything, unless TARGETS names less
build-%: setup FORCE
	@cmake --preset $* --log-level=WARNING
	@cmake --build --preset $* $(if $(TARGETS),--target $(TARGETS))

run: TARGETS = nestor-server nestor
run: build-release ## start a server on models/abacus, stream one answer, stop the server
	@scripts/run.sh $(BUILD)/bin $(MODEL)

serve: TARGETS = nestor-server
serve: build-release ## run the server in the foreground (MODEL=folder SERVER=host:port)
	@exec $(BUILD)/bin/nestor-server --model $(MODEL) --address $(SERVER)

test: build-release ## build everything and run all tests
	@ctest --preset release --parallel 2 --no-tests=error

test-asan: build-asan ## the tests under AddressSanitizer and UndefinedBehaviorSanitizer
	@ctest --preset asan --parallel 2 --no-tests=error

test-tsan: build-tsan ## the tests under ThreadSanitizer
	@scripts/tsan/run.sh ctest --preset tsan --parallel 2 --no-tests=error

verify: TARGETS = nestor-checkpoint
verify: build-release ## compare the logits of every golden checkpoint with the expected ones
	@scripts/verify.sh $(BUILD)/bin

eval: TARGETS = nestor-server
eval: build-release ## measure accuracy through a server and compare it with the reference
	@.venv/bin/python scripts/with_server.py $(BUILD)/bin $(MODEL) .venv/bin/python scripts/eval.py --server {server} $(EVAL)

bench: TARGETS = nestor-server
bench: build-release ## tokens a second and time to the first token, through a server
	@.venv/bin/python scripts/with_server.py $(BUILD)/bin $(MODEL) .venv/bin/python scripts/bench.py --server {server}

memory: TARGETS = nestor-server nestor-checkpoint
memory: build-release ## memory of a server of three submodels against a server of one
	@.venv/bin/python scripts/memory.py $(BUILD)/bin $(MODEL)

format: ## lay out the C++ and proto sources
	@scripts/setup.sh lint
	@scripts/lint.sh --fix

lint: build-release ## check layout, C++, proto and shell sources
	@scripts/setup.sh lint
	@scripts/lint.sh

clean: ## delete everything that was built (the Python environment stays)
	@rm -rf build
