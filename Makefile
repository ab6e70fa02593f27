# The front door. CMake is the build system (CMakePresets.json); each target here
# is a line or two on top of it.
PREFIX ?= /usr/local
DESTDIR ?=
VERBOSE ?=

# One build folder per preset: build/ for release, build/NAME for the others.
configure = test -f $(2)/build.ninja || tools/step.sh "configuring $(2)" \
	sh -c 'cmake --preset $(1) --log-level=WARNING >/dev/null' || \
	tools/install-packages.sh --name "$(2) could not be configured" build
build = cmake --build $(1) $(if $(VERBOSE),--verbose,-- --quiet)
# Names the command that installs what a newcomer lacks.
need = for tool in cmake ninja; do command -v $$tool >/dev/null || \
	exec tools/install-packages.sh --name "cannot build: $$tool is not installed" build; done

.PHONY: all run test test-long test-trixie test-bookworm test-busy bench bench-peers bench-serve chaos mutants coverage fuzz soak load api-fuzz promtool cron-peers spec web web-hour screenshots format tidy install uninstall clean help

all: ## build build/dibs and build/libdibs.so (the default)
	@$(need)
	@$(call configure,release,build)
	@$(if $(VERBOSE),,tools/step.sh "building build/dibs and build/libdibs.so") $(call build,build)

run: ## install packages, build, and watch four workers share one lock, with a dashboard (^C ends it)
	@tools/install-packages.sh build
	@$(MAKE) --no-print-directory all
	@build/dibs demo --dashboard 3427 --every 15s

test: ## install packages, build with every compiler and sanitizer, run the tests
	@tools/test.sh

test-long: ## the same, with the tests that make test leaves out for their time
	@tools/test.sh --long

test-trixie: ## make run and make test on a fresh trixie, with Redis 8, with Valkey, and as a user with sudo
	@tools/install-packages.sh release
	@tools/release.sh trixie

test-bookworm: ## the same on a fresh bookworm
	@tools/install-packages.sh release
	@tools/release.sh bookworm

test-busy: ## make test in clean clones beside four busy loops (RUNS=5 LOOPS=4)
	@tools/busy.sh $(or $(RUNS),5) $(or $(LOOPS),4)

bench: ## measure locks, wake-ups, coordination and `dibs run`, beside the least they can cost (JSON=1: a row a line)
	@tools/install-packages.sh build test
	@$(call configure,bench,build/bench)
	@cmake --build build/bench --target bench -- --quiet
	@bench/run.sh build/bench $(if $(JSON),--json)

bench-peers: ## measure locks and queues beside those of others, which are installed below build/bench
	@tools/install-packages.sh build test
	@$(call configure,bench,build/bench)
	@cmake --build build/bench --target bench -- --quiet
	@bench/peers.sh build/bench

bench-serve: ## measure dibs serve under wrk, beside a bare server of libmicrohttpd
	@tools/install-packages.sh build test serve
	@$(call configure,bench,build/bench)
	@cmake --build build/bench --target dibs -- --quiet
	@cc -O2 -Wall -Wextra -o build/bench/bare_http bench/bare_http.c -lmicrohttpd
	@python3 -B bench/bench_serve.py build/bench

chaos: ## put every store through every fault, and check what its users relied on (MINUTES=35)
	@tools/install-packages.sh build test
	@$(call configure,bench,build/bench)
	@cmake --build build/bench --target chaos check judge queue_ground event_ground job_ground run_ground sidecar_ground sim sim_quorum contract loops cluster_load \
		failovers test_quorum_faults test_quorum_slots with_redis with_redlock with_postgres \
		test_postgres_contend -- --quiet
	@tools/chaos.sh build/bench $(or $(MINUTES),35)

mutants: ## plant one mistake after the other, and show what catches it and how fast
	@tools/install-packages.sh build test
	@nice tools/mutants.sh

coverage: ## run the tests and print the lines of src/core and src/store they reach
	@tools/install-packages.sh build test
	@tools/coverage.sh

fuzz: ## feed the parsers made-up input (SECONDS_EACH=60)
	@tools/install-packages.sh build test
	@tools/fuzz.sh $(or $(SECONDS_EACH),60)

soak: ## hold 100,000 leases on a Redis server for a minute; none may be lost
	@tools/install-packages.sh build test
	@$(call configure,bench,build/bench)
	@cmake --build build/bench --target many_leases -- --quiet
	@build/bench/tests/redis/many_leases

load: ## put dibs serve under thousands of clients, good, slow and deaf, and kill it under 1,000 sessions (SECONDS=30)
	@tools/install-packages.sh build test serve
	@$(call configure,bench,build/bench)
	@cmake --build build/bench --target dibs -- --quiet
	@DIBS_LOAD=1 DIBS_BIN=$(CURDIR)/build/bench/dibs python3 tests/e2e/test_serve_threats.py
	@python3 -B bench/bench_load.py build/bench $(or $(SECONDS),30)

api-fuzz: ## send made-up requests to every route of dibs serve, by its OpenAPI document (EXAMPLES=40)
	@tools/install-packages.sh build test
	@$(call configure,bench,build/bench)
	@cmake --build build/bench --target dibs -- --quiet
	@DIBS_BIN=$(CURDIR)/build/bench/dibs python3 tools/api-fuzz.py build

promtool: ## let promtool judge the metrics page, the alert rules and their histories
	@tools/install-packages.sh build test
	@$(call configure,dev,build/dev)
	@cmake --build build/dev --target dibs -- --quiet
	@promtool=$$(tools/promtool.sh build) && DIBS_PROMTOOL=$$promtool DIBS_BIN=$(CURDIR)/build/dev/dibs \
	    python3 -B tests/e2e/test_serve_metrics.py

cron-peers: ## compare made-up cron expressions with croniter and robfig/cron (CASES=2000 SEED=N)
	@tools/install-packages.sh build test
	@$(MAKE) --no-print-directory all
	@python3 -B tests/jobs/peers/cron_peers.py build $(or $(CASES),2000)

spec: ## search the models of the lease rules, and see each rule missed when it is out
	@tools/install-packages.sh build test
	@spec/check.sh

web: ## try every page of the dashboard in chromium: states, accessibility, hostile texts, 99,000 locks, memory
	@tools/install-packages.sh build test
	@$(call configure,dev,build/dev)
	@cmake --build build/dev --target dibs two_locks -- --quiet
	@tests/web/run.sh build/dev

web-hour: ## keep the dashboard of a busy store open for an hour, and see that its memory stays (MINUTES=60 FASTER=1)
	@tools/install-packages.sh build test
	@$(call configure,dev,build/dev)
	@cmake --build build/dev --target dibs -- --quiet
	@DIBS_BIN=build/dev/dibs python3 -B tests/web/hour.py $(or $(MINUTES),60) $(or $(FASTER),1)

screenshots: ## make the pictures of the dashboard in docs/
	@tools/install-packages.sh build test
	@$(call configure,dev,build/dev)
	@cmake --build build/dev --target dibs two_locks -- --quiet
	@DIBS_BIN=build/dev/dibs DIBS_TWO_LOCKS=build/dev/tests/e2e/two_locks python3 -B tests/web/shots.py docs

format: ## lay out the C code with clang-format 14
	@tools/format.sh --fix

tidy: ## look the C code over with clang-tidy
	@tools/install-packages.sh build test
	@$(call configure,clang,build/clang)
	@tools/tidy.sh build/clang

install: all ## install under DESTDIR and PREFIX (/usr/local)
	@cmake --preset release -DCMAKE_INSTALL_PREFIX=$(PREFIX) --log-level=WARNING >/dev/null
	@DESTDIR="$(DESTDIR)" tools/install.sh build "$(PREFIX)"

uninstall: ## remove what make install put under DESTDIR and PREFIX
	@DESTDIR="$(DESTDIR)" tools/uninstall.sh "$(PREFIX)"

clean: ## remove build/
	@rm -rf build

help: ## list these targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-13s %s\n", $$1, $$2 }' Makefile
