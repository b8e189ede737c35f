# `make help` lists the targets.

CARGO ?= cargo
HOPYARD := target/release/hopyard

# What `make dist` builds for: the machine's own processor, with musl, which is linked statically.
DIST_TARGET := $(shell uname -m)-unknown-linux-musl

# What building needs beside a Rust toolchain; what compiles eBPF programs (`make bpf`); what tests and benchmarks use on top.
BUILD_PACKAGES := gcc libc6-dev
BPF_PACKAGES := clang llvm libbpf-dev
TEST_PACKAGES := $(BPF_PACKAGES) nftables iproute2 util-linux bsdutils strace openvswitch-switch qemu-system-x86 vde2 chromium? python3-venv golang-go man-db \
	passt? slirp4netns podman runc conmon busybox-static containernetworking-plugins openssh-server curl jq python3-yaml tcpdump ethtool \
	slurmctld slurmd slurm-client munge
# The program of path tun-vpn, which Debian does not have; below target/, for the tests alone.
BORINGTUN_VERSION := 0.7.1
BORINGTUN := target/tools/bin/boringtun-cli
PEER_PACKAGES := iperf3 iperf nuttcp sockperf nftables openvswitch-switch vde2 containernetworking-plugins

# Of each test program but the lab's, whose tests take turns by themselves.
TEST_THREADS ?= 5

# The release before turns, which `make bench` compares with; with `OLD=` it is this one with --turns off.
OLD ?= b5e5a44

# What reads the samples of a fleet in `make bench-fleet`.
DUCKDB_VERSION := 2.0.0
READERS := target/tools/readers
DUCKDB ?=

# What builds the book. It is installed below target/, nowhere else.
MDBOOK_VERSION := 0.5.4
MDBOOK := target/tools/bin/mdbook

# For others too (docs/libraries.md), in the order of publishing; what `make semver` compares with.
LIBRARIES := hopyard-bpf-build hopyard-net hopyard-switch hopyard-tap
BASE ?=

# How long each target is fuzzed.
FUZZ_SECONDS ?= 600

PEERS := target/release/peers
DECIDE = old=$(if $(OLD),$$(CARGO="$(CARGO)" scripts/old-release $(OLD))) && set -x && $(PEERS) decide $${old:+--old "$$old"}

# ADD and DEL of the CNI plugin beside the reference plugins, then DEL of a thousand.
ATTACH = mkdir -p target/release/cni && ln -sfn ../hopyard-cni target/release/cni/hopyard && \
	$(HOPYARD) attach --cni-path $(CURDIR)/target/release/cni --cni-path /opt/cni/bin --cni-path /usr/lib/cni \
		--ports 1,100,1000 --beside 1,16 && \
	scripts/cni-times target/release/hopyard-cni 10 1000

.DEFAULT_GOAL := help
.PHONY: help run build boringtun test-engines test-slurm dist bpf test format lint unit verify bench bench-fleet docs reports fuzz doctor deny packages semver clean toolchain root

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: root build ## the main job: measure every path this host has, two minutes
	$(HOPYARD) run

build: toolchain ## build the program and the CNI plugin (release)
	@scripts/need $(BUILD_PACKAGES)
	$(CARGO) build --release --locked -p hopyard -p hopyard-cni

test-engines: root build ## podman 5 and containerd of Debian 13 on the direct switch, in a throw-away root; that root as a guest, booted again
	@scripts/need debootstrap qemu-system-x86 e2fsprogs
	scripts/test-engines target/release

test-slurm: root toolchain ## fleets in a Slurm of eight nodes, parts of which are killed; some minutes
	@scripts/need $(BUILD_PACKAGES) slurmctld slurmd slurm-client munge iproute2
	$(CARGO) test --locked -p hopyard --test lab -- --ignored --nocapture slurm_

dist: root toolchain ## the static programs, manual pages, completions and a Debian package, in dist/
	@scripts/need $(BUILD_PACKAGES) musl-tools binutils dpkg
	@! command -v rustup >/dev/null || rustup target add $(DIST_TARGET)
	$(CARGO) build --locked --profile dist --target $(DIST_TARGET) -p hopyard -p hopyard-load -p hopyard-cni
	@scripts/dist target/$(DIST_TARGET)/dist
	@scripts/dist-check

bpf: toolchain ## after a change of an eBPF program: its compiled object anew, which travels with the source
	@scripts/need $(BUILD_PACKAGES) $(BPF_PACKAGES)
	$(CARGO) run --quiet --locked -p hopyard-bpf-build --example renew -- $$(find crates bench -name '*.bpf.c' | sort)

test: root toolchain format unit ## lints and all tests, in throw-away namespaces; needs root

format: toolchain
	$(CARGO) fmt --all --check

lint: format ## lints alone
	@scripts/need $(BUILD_PACKAGES)
	$(CARGO) clippy --workspace --all-targets --locked -- -D warnings

# A service that builds from nothing each time has no use for what makes the next build quicker. Nor does it need line numbers in
# backtraces, since a panic says where it was: without them building takes less time, and programs are half as large.
ifdef CI
unit: export CARGO_INCREMENTAL := 0
unit: export CARGO_PROFILE_DEV_DEBUG := 0
endif

# What tests need is installed while they are built: the last part of building uses one CPU.
unit: root toolchain
	@scripts/need $(BUILD_PACKAGES)
	@scripts/need $(TEST_PACKAGES) & packages=$$!; \
		nice $(MAKE) --no-print-directory boringtun & tunnel=$$!; \
		CARGO=$(CARGO) scripts/cargo-test --no-run; built=$$?; \
		wait $$packages; installed=$$?; \
		wait $$tunnel && [ $$installed -eq 0 ] && [ $$built -eq 0 ]
	@PATH="$$PWD/target/tools/bin:$$PATH" CARGO=$(CARGO) RUST_TEST_THREADS=$(TEST_THREADS) scripts/unit

boringtun: toolchain
	@[ "$$($(BORINGTUN) --version 2>/dev/null)" = "boringtun $(BORINGTUN_VERSION)" ] || { \
		echo "installing boringtun $(BORINGTUN_VERSION) into target/tools, once, a minute"; \
		CARGO_PROFILE_DEV_DEBUG=0 $(CARGO) install boringtun-cli --version "=$(BORINGTUN_VERSION)" --locked --quiet --debug \
			--root target/tools --target-dir target/tools/build --force; }

verify: root toolchain ## experiments with a known answer: promised against seen, some forty minutes
	@scripts/need $(BUILD_PACKAGES) iperf3 nftables sockperf
	$(CARGO) build --release --locked -p hopyard -p hopyard-bench
	target/release/verify $(ARGS)

# Only the two of PEERS and DECIDE are judged by targets; plans and attach fail where something could not be measured.
bench: root toolchain ## beside iperf3, iperf2, nuttcp, sockperf, CNI plugins and the release before turns, and plans of the switches: two hours
	@scripts/need $(BUILD_PACKAGES) $(PEER_PACKAGES) $(if $(OLD),$(BPF_PACKAGES))
	$(CARGO) build --release --locked -p hopyard -p hopyard-bench -p hopyard-cni
ifeq ($(ARGS),)
	@status=0; \
	( $(PEERS) ) || status=1; \
	( $(DECIDE) ) || status=1; \
	for plan in direct-switch direct-switch-ports tap-switches; do $(HOPYARD) run $$plan || status=1; done; \
	( $(ATTACH) ) || status=1; \
	exit $$status
else ifeq ($(ARGS),attach)
	$(ATTACH)
else ifeq ($(firstword $(ARGS)),decide)
	@$(DECIDE) $(wordlist 2,$(words $(ARGS)),$(ARGS))
else
	$(PEERS) $(ARGS)
endif

bench-fleet: root toolchain ## what fleets cost: ssh beside nsenter, eight machines, a thousand simulated ones, ten million samples; ten minutes
	@scripts/need $(BUILD_PACKAGES) openssh-server iproute2 util-linux python3-venv
	$(CARGO) build --release --locked -p hopyard -p hopyard-bench
	target/release/fleet remote
	target/release/fleet pairs
	rm -rf target/fleet-1000
	@[ -n "$(DUCKDB)" ] || $(READERS)/bin/python -c 'import duckdb' 2>/dev/null || { echo "installing DuckDB $(DUCKDB_VERSION) for Python into $(READERS), once"; \
		python3 -m venv --clear $(READERS) && $(READERS)/bin/python -m pip install --quiet "duckdb==$(DUCKDB_VERSION)"; }
	HOPYARD_FLEET_MACHINES=1000 HOPYARD_FLEET_DIR=$(CURDIR)/target/fleet-1000 $(CARGO) test --locked -p hopyard-fleet --test many_machines -- --nocapture
	target/release/fleet samples target/fleet-1000 --duckdb $(or $(DUCKDB),$(READERS)/bin/python)

docs: toolchain ## the documentation as a book, in target/book, and a check of all its links; installs mdBook below target/
	@scripts/need $(BUILD_PACKAGES)
	@[ "$$($(MDBOOK) --version 2>/dev/null)" = "mdbook v$(MDBOOK_VERSION)" ] || { \
		echo "installing mdBook $(MDBOOK_VERSION) into target/tools, once, some four minutes"; \
		$(CARGO) install mdbook --version "=$(MDBOOK_VERSION)" --locked --no-default-features --features search \
			--root target/tools --target-dir target/tools/build --force; }
	$(MDBOOK) build docs
	$(CARGO) test --locked -p hopyard --test lab book::

reports: build ## the tables of docs/reports and docs/claims-table.md anew, from what `hopyard claims` measured: DIR="hopyard-runs/…-claims"
	@scripts/reports $(DIR)

fuzz: toolchain ## made-up input for every parser, ten minutes each (FUZZ_SECONDS=60 ARGS="plan diff" for less); needs nightly
	@scripts/need $(BUILD_PACKAGES) g++
	scripts/fuzz $(FUZZ_SECONDS) $(ARGS)

doctor: build ## what this host can build, and what would distort figures
	$(HOPYARD) doctor

deny: toolchain ## licences and advisories of all dependencies
	@command -v cargo-deny >/dev/null || { echo "installing cargo-deny"; $(CARGO) install --locked cargo-deny; }
	$(CARGO) deny check

packages: toolchain ## the packages of the libraries, each built from what it holds; nothing is uploaded
	@scripts/need $(BUILD_PACKAGES)
	$(CARGO) publish --dry-run --locked $(LIBRARIES:%=-p %)

semver: toolchain ## what the libraries change for whoever depends on them since a revision: BASE=v0.1.0
	@[ -n "$(BASE)" ] || { echo "say which revision to compare with: make semver BASE=v0.1.0" >&2; exit 1; }
	@command -v cargo-semver-checks >/dev/null || { echo "installing cargo-semver-checks"; $(CARGO) install --locked cargo-semver-checks; }
	$(CARGO) semver-checks --baseline-rev $(BASE) $(LIBRARIES:%=-p %)

clean: ## remove what an interrupted lab left, and the build
	@[ ! -x $(HOPYARD) ] || $(HOPYARD) clean
	$(CARGO) clean

toolchain:
	@command -v $(CARGO) >/dev/null || { \
		echo "no Rust toolchain: install one as https://rustup.rs says, then run make again" >&2; exit 1; }

root:
	@[ "$$(id -u)" -eq 0 ] || { echo "this makes network namespaces: run it as root" >&2; exit 1; }
