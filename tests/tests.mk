# What tests, benchmarks and the demo are built of and run by; the Makefile includes it.

# Debian packages, by what needs them.
DEMO_PACKAGES := iproute2 procps
DEMO_FLEET_PACKAGES := $(DEMO_PACKAGES) python3 redis-tools
TEST_PACKAGES := libcmocka-dev netbase iproute2 xdp-tools util-linux procps python3 ipset nftables iptables jq \
	groff-base zsh tcpdump openssl redis-tools liblua5.1-0-dev signify-openbsd dnsmasq-base udhcpc
# Daemons that tests run themselves: their files are unpacked under build/, so that nothing is started here. Debian 12 has
# no suricata.
UNPACKED_PACKAGES := bird2 crowdsec fail2ban fastnetmon gobgpd prometheus prometheus-node-exporter python3-exabgp \
	$(if $(shell grep -s '=bookworm$$' /etc/os-release),,suricata)
BENCH_PACKAGES := gnuplot-nox time
DISSECT_PACKAGES := python3-scapy tshark
FUZZ_PACKAGES := libclang-rt-dev $(if $(AFL),afl++)
# For virtual machines with other kernels, and the compilers that tests/checks/verify.sh knows.
KERNEL_PACKAGES := qemu-system-x86 kmod cpio ethtool wireguard-tools $(if $(filter arm64,$(ARCH)),gcc-aarch64-linux-gnu)
KERNELS := bookworm bookworm-backports bookworm-backports-$(if $(filter arm64,$(ARCH)),16k,full)
VERIFY_CLANGS = $(shell sed -n "s/^CLANGS='\(.*\)'.*/\1/p" tests/checks/verify.sh)
LINT_PACKAGES := clang-tidy clang-format cppcheck shellcheck
FULL_PACKAGES := valgrind gcovr

TEST_CPPFLAGS = -Itests -DXDP_CUCKOO_BUILD='"$(BUILD)"' -DXDP_CUCKOO_OBJECT='"$(OBJECT)"'

UNIT_TESTS := $(patsubst tests/unit/%.c,$(BUILD)/tests/unit/%,$(wildcard tests/unit/*/test_*.c tests/unit/*/*/test_*.c))
HELPERS := $(patsubst tests/helpers/%.c,$(BUILD)/tests/helpers/%,$(wildcard tests/helpers/*.c))
HELPERS := $(patsubst %.bpf,%.bpf.o,$(HELPERS))
BENCHES := $(patsubst tests/bench/%.c,$(BUILD)/tests/bench/%,$(wildcard tests/bench/*.c))
BENCH_OBJECTS := $(patsubst tests/bench/%.bpf.c,$(BUILD)/tests/bench/%.bpf.o,$(wildcard tests/bench/*.bpf.c))
BENCHES := $(filter-out %.bpf,$(BENCHES))
SOAKS := $(patsubst tests/soak/%.c,$(BUILD)/tests/soak/%,$(wildcard tests/soak/*.c))

comma := ,

# ---- programs ----

$(BUILD)/tests/%.bpf.o: BPF_CFLAGS += -Itests
$(BUILD)/tests/%.bpf.o: tests/%.bpf.c
	$(compile_bpf)

# The object by another compiler, which the file is named after, also for arm64.
$(BUILD)/verify/%.bpf.o $(BUILD)/verify/%-arm64.bpf.o $(BUILD)/verify/%-tc.bpf.o $(BUILD)/verify/%-conntrack.bpf.o \
	$(BUILD)/verify/%-tc-conntrack.bpf.o $(BUILD)/verify/%-bench.bpf.o: override CLANG = $*
$(BUILD)/verify/%-arm64.bpf.o: BPF_ARCH := arm64
$(BUILD)/verify/%-arm64.bpf.o: bpf/xdp_cuckoo.bpf.c
	$(compile_bpf)

$(BUILD)/verify/%-conntrack.bpf.o $(BUILD)/verify/%-tc-conntrack.bpf.o: BPF_CFLAGS += -DASKS_CONNTRACK
$(BUILD)/verify/%-conntrack.bpf.o: bpf/xdp_cuckoo.bpf.c
	$(compile_bpf)

$(BUILD)/verify/%-tc-conntrack.bpf.o: bpf/xdp_cuckoo_tc.bpf.c
	$(compile_bpf)

$(BUILD)/verify/%-bench.bpf.o: bpf/bench.bpf.c
	$(compile_bpf)

$(BUILD)/verify/%-tc.bpf.o: bpf/xdp_cuckoo_tc.bpf.c
	$(compile_bpf)

$(BUILD)/verify/%.bpf.o: bpf/xdp_cuckoo.bpf.c
	$(compile_bpf)

# Its kernel is in memory: its own functions come before those of user/core/kernel/.
$(patsubst %,$(BUILD)/tests/unit/core/change/test_%,every_store readers watchdog failures query running session) \
	$(BUILD)/tests/unit/core/library/test_library_in_memory: private LDFLAGS += -Wl,--allow-multiple-definition
# The compiler calls its functions before each load: tests/steps/readers.h. Not beside other sanitizers.
ifeq ($(findstring -fsanitize,$(CFLAGS)),)
$(BUILD)/tests/unit/core/change/test_readers.o: private USER_CFLAGS += -fsanitize=thread -Wno-tsan -DCALLS_BEFORE_LOADS
$(BUILD)/tests/unit/core/change/test_readers: private LDFLAGS += -nodefaultlibs -lc -lgcc
endif
$(BUILD)/tests/unit/core/change/test_watchdog: private LDFLAGS += $(patsubst %,-Wl$(comma)--wrap=%,fork setsid dup2 close_range sigaction \
	clock_nanosleep clock_pause waiting_be_called syslog __syslog_chk _exit)
$(BUILD)/tests/unit/core/change/test_failures: private LDFLAGS += $(patsubst %,-Wl$(comma)--wrap=%,malloc calloc realloc)
$(BUILD)/tests/unit/core/library/test_library_in_memory: private LDFLAGS += $(patsubst %,-Wl$(comma)--wrap=%,store_lists store_get store_each \
	store_info store_settings store_shapes store_list_delete query_decide rule_set_add guard_open change_check_guard timerfd_create \
	timerfd_settime asprintf __asprintf_chk kernel_find_filters \
	kernel_catch_messages kernel_catch_no_messages session_open session_open_store change_make_equal tally_add)
$(BUILD)/tests/unit/core/counters/test_hottest_keys: private LDFLAGS += -Wl,--wrap=calloc
$(BUILD)/tests/unit/core/counters/test_tally: private LDFLAGS += $(patsubst %,-Wl$(comma)--wrap=%,calloc free array_grow kernel_cpus \
	kernel_row_counters kernel_find_filters kernel_filters_free filter_open_tables filter_tables_close store_shapes store_each)
$(BUILD)/tests/unit/core/base/test_system_calls: private LDFLAGS += $(patsubst %,-Wl$(comma)--wrap=%,fopen reallocarray free getrandom \
	nanosleep flock prctl syscall)
$(BUILD)/tests/unit/core/base/test_unprivileged: private LDFLAGS += $(patsubst %,-Wl$(comma)--wrap=%,close_range setsid setgroups setresgid \
	setresuid setrlimit prctl privileges_has privileges_keep privileges_gain_none fopen getppid fork socketpair poll recv kill \
	clock_ms)
$(BUILD)/tests/unit/exporter/test_store_summary: private LDFLAGS += $(patsubst %,-Wl$(comma)--wrap=%,rule_counts_open \
	list_counts_read unprivileged_receive)
$(BUILD)/tests/unit/core/host/test_protected_flows: private LDFLAGS += -Wl,--wrap=netlink_dump,--wrap=netlink_ask,--wrap=array_grow
$(BUILD)/tests/unit/core/kernel/test_wanted: private LDFLAGS += -Wl,--wrap=bpf_prog_load,--wrap=bpf_prog_test_run_opts
# Their kernel is in memory, below libbpf: tests/steps/system_calls.h.
$(patsubst %,$(BUILD)/tests/unit/core/kernel/test_%,attach find pins replace samples): private LDFLAGS += $(patsubst %,-Wl$(comma)--wrap=%, \
	malloc calloc realloc reallocarray free mmap munmap privileges_has uname access fstatfs readlink libbpf_num_possible_cpus \
	if_nameindex if_freenameindex if_indextoname clock_ns clock_ms clock_seconds clock_pause)
$(BUILD)/tests/unit/core/change/test_lockout: private LDFLAGS += -Wl,--wrap=store_each

# Where the kernel loads no BPF for us, packets meet its programs on the host.
HOST_BPF := $(patsubst %,$(BUILD)/tests/steps/%.o,host_bpf xdp_on_host tc_on_host)
$(BUILD)/tests/unit/packets/%: private LDFLAGS += $(patsubst %,-Wl$(comma)--wrap=%,bpf_object__load bpf_map__fd bpf_program__fd \
	bpf_object__find_map_fd_by_name bpf_prog_test_run_opts bpf_map_lookup_elem bpf_map_update_elem kernel_tick)
$(filter $(BUILD)/tests/unit/packets/%,$(UNIT_TESTS)): $(HOST_BPF)

# Each test program is one file, linked with the layers that it tests and those below.
archives_of = $(addprefix $(BUILD)/,$(if $(filter tests/unit/core/% tests/unit/packets/%,$1),core.a,$(if $(filter tests/unit/cli/%,$1),cli.a core.a,programs.a cli.a core.a)))
$(BUILD)/tests/%.o: tests/%.c | $$(call archives_of,tests/%) $(OBJECT)
	@mkdir -p $(@D)
	$(call say,CC,$@)$(CC) $(USER_CPPFLAGS) $(TEST_CPPFLAGS) $(CFLAGS) $(USER_CFLAGS) -MMD -MP -c $< -o $@

$(BUILD)/tests/%: $(BUILD)/tests/%.o $$(call archives_of,tests/%)
	$(call say,TEST,$@)$(CC) $(CFLAGS) $(filter %.o,$^) $(filter %.a,$^) $(LDFLAGS) -pthread $(ALL_LDLIBS) \
		$(if $(filter $(BUILD)/tests/unit/%,$@),-lcmocka) -o $@

.PRECIOUS: $(BUILD)/tests/%.o

ALL_LDLIBS = $(call libs_of,$(foreach program,$(OTHER_PROGRAMS),$(LIBRARIES_$(program))))
$(BUILD)/tests/unit/tool/test_help.o: $(HELP_TEXTS)

# The appliers of its followers are functions of its own.
$(BUILD)/tests/helpers/fleet_load: private LDFLAGS += -pthread -Wl,--wrap=follow_send,--wrap=follow_receive

$(BUILD)/tests/%.so: tests/%.so.c
	@mkdir -p $(@D)
	$(call say,SO,$@)$(CC) -D_GNU_SOURCE $(CFLAGS) $(USER_CFLAGS) -shared -fPIC $< $(filter-out -pie,$(LDFLAGS)) -o $@

# ---- fault injection: the tool once more, such that it fails where it is told to: tests/fault/runtime.c ----

FAULTY_TOOL := $(BUILD)/tests/fault/xdp-cuckoo
FAULTY_PROGRAMS := $(PROGRAMS:$(BUILD)/%=$(BUILD)/tests/fault/%)
FAULTS := $(BUILD)/tests/fault/faults

$(BUILD)/tests/fault/user/core/kernel/load_program.o $(BUILD)/tests/fault/user/core/kernel/bench_program.o: $(SKELETONS)
$(BUILD)/tests/fault/user/fleet/publisher.o: $(BUILD)/fleet.lua.h
$(PROGRAM_FOLDERS:%=$(BUILD)/tests/fault/user/%/main.o): $(BUILD)/tests/fault/user/%/main.o: $(BUILD)/help-%.h
$(BUILD)/tests/fault/user/cli/command/help.o: $(BUILD)/commit.h

$(BUILD)/tests/fault/user/%.o: user/%.c
	@mkdir -p $(@D)
	$(call say,FAULT,$@)$(CC) $(USER_CPPFLAGS) $(CFLAGS) -O1 -g1 $(USER_CFLAGS) -fsanitize=thread -Wno-tsan -MMD -MP -c $< -o $@

$(BUILD)/tests/fault/runtime.o: tests/fault/runtime.c
	@mkdir -p $(@D)
	$(call say,CC,$@)$(CC) -D_GNU_SOURCE $(CFLAGS) $(USER_CFLAGS) -MMD -MP -c $< -o $@

faulty_of = $(patsubst $(BUILD)/%,$(BUILD)/tests/fault/%,$(call objects_of,$1 $(filter core/% cli/%,$(LAYERS))))
link_faulty = $(call say,LINK,$@)$(CC) $(CFLAGS) $(LDFLAGS) -Wl,--gc-sections -pthread -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc $^ \
	$(ALL_LDLIBS) -o $@
$(FAULTY_TOOL): $(call faulty_of,tool) $(BUILD)/tests/fault/runtime.o | $(FAULTY_PROGRAMS)
	$(link_faulty)

$(FAULTY_PROGRAMS): $(BUILD)/tests/fault/xdp-cuckoo-%: $$(call faulty_of,%) $(BUILD)/tests/fault/runtime.o
	$(link_faulty)

# ---- simulation: the fleet in one process; what the linker wraps is in tests/simulation/nodes.c ----

SIMULATION := $(BUILD)/tests/simulation/simulation
SIMULATION_OBJECTS := $(patsubst %.c,$(BUILD)/%.o,$(wildcard tests/simulation/*.c))
SIMULATION_WRAPS := $(shell grep -oh '__wrap_[a-z_]*' tests/simulation/nodes.c | sed 's/__wrap_//' | sort -u)

$(BUILD)/tests/simulation/%.o: tests/simulation/%.c
	@mkdir -p $(@D)
	$(call say,CC,$@)$(CC) $(USER_CPPFLAGS) $(TEST_CPPFLAGS) $(CFLAGS) $(USER_CFLAGS) -MMD -MP -c $< -o $@

$(SIMULATION): $(SIMULATION_OBJECTS) $(ENGINE_OBJECTS)
	$(call say,LINK,$@)$(CC) $(CFLAGS) $(LDFLAGS) -rdynamic -pthread $(addprefix -Wl$(comma)--wrap=,$(SIMULATION_WRAPS)) $^ \
		$(ALL_LDLIBS) -llua5.1 -o $@

# ---- fuzzing: the sources once more, each way with a compiler and sanitizers of its own ----

FUZZ_TARGETS := $(patsubst tests/fuzz/%.c,%,$(wildcard tests/fuzz/fuzz_*.c))
FUZZ_CHECKS := -fsanitize=address,undefined,float-cast-overflow -fno-sanitize-recover=all -fno-omit-frame-pointer
FUZZ_T = $(or $(T),60)

# $1: the way; $2: its compiler; $3: flags of what is fuzzed; $4: flags of linking; $5: main(), where it needs one
define fuzz_way
build/fuzz/$1/user/%.o: user/%.c | $$(GENERATED)
	@mkdir -p $$(@D)
	$$(call say,CC,$$@)$2 $$(USER_CPPFLAGS) -O1 -g $$(USER_CFLAGS) $3 -MMD -MP -c $$< -o $$@

build/fuzz/$1/engine.a: $$(patsubst $(BUILD)/%,build/fuzz/$1/%,$$(ENGINE_OBJECTS))
	$$(call say,AR,$$@)rm -f $$@ && ar rcs $$@ $$^

build/fuzz/$1/fuzz_%: tests/fuzz/fuzz_%.c $5 build/fuzz/$1/engine.a
	@mkdir -p $$(@D)
	$$(call say,FUZZ,$$@)$2 $$(USER_CPPFLAGS) -Itests -O1 -g $$(USER_CFLAGS) $3 -MMD -MP -MF $$@.d -MT $$@ \
		$$(filter %.c %.a,$$^) $4 $$(LDFLAGS) $$(ALL_LDLIBS) -o $$@

fuzz-$1: $$(addprefix build/fuzz/$1/,$$(FUZZ_TARGETS))
.PHONY: fuzz-$1
endef

# A replay is short: what compiles fast is best.
$(eval $(call fuzz_way,replay,$$(CC),-O0 -g1 $(FUZZ_CHECKS),,tests/fuzz/replay.c))
$(eval $(call fuzz_way,libfuzzer,$$(CLANG),$(FUZZ_CHECKS) -fsanitize=fuzzer-no-link,-fsanitize=fuzzer))
# By the flags of ClusterFuzzLite: see .clusterfuzzlite/build.sh.
$(eval $(call fuzz_way,cluster,$$(CLUSTER_CC),$$(CLUSTER_FLAGS),$$(CLUSTER_ENGINE)))
$(eval $(call fuzz_way,afl,AFL_QUIET=1 afl-clang-fast,$(FUZZ_CHECKS),-fsanitize=fuzzer))
$(eval $(call fuzz_way,cover,$$(CLANG),-fprofile-instr-generate -fcoverage-mapping -Wno-pass-failed,,tests/fuzz/replay.c))

# ---- what to run ----

packages: ## install the Debian packages that building and testing need
	$(Q)sh tests/packages/install.sh $(BUILD_PACKAGES) $(TEST_PACKAGES)
	$(Q)sh tests/packages/unpack.sh $(BUILD)/packages $(UNPACKED_PACKAGES)

# Packages first, then a make of its own: what to build with is only known when they are there. Without a virtual
# machine the test that needs one is skipped.
test: packages ## install what is missing, build, run every test
	$(Q)sh tests/packages/install.sh $(KERNEL_PACKAGES) && sh tests/kernels/fetch.sh $(firstword $(KERNELS)) || :
	$(Q)$(MAKE) --no-print-directory -s -j "$$(nproc)" test-programs
	$(Q)sh tests/run.sh

# No root, no network, and no package beyond those of the build and cmocka. `make test` runs all of it, too.
check: ## the tests that need no root, in a minute: unit tests, and every store of drawn changes judged
	$(Q)sh tests/check.sh

mutants: unit-programs ## change lines of a folder, and see whether `make check` notices: make mutants [DIR=user/core/change] [SEED=1] [N=20]
	$(Q)python3 tests/helpers/mutants.py $(or $(DIR),user/core/change) $(or $(SEED),1) $(or $(N),20)

test-programs: all unit-programs $(HELPERS) $(BENCHES) $(BENCH_OBJECTS) $(SOAKS) fuzz-replay $(BUILD)/tests/fuzz/seeds \
	$(FAULTY_TOOL) $(FAULTS) $(SIMULATION)

unit-programs: $(UNIT_TESTS)

# What is not loaded into programs of others.
sanitized-programs: $(TOOL) $(UNIT_TESTS) $(filter-out %.so %.bpf.o,$(HELPERS)) $(SOAKS)

machine-programs: all $(filter $(BUILD)/tests/unit/packets/% %/test_protected_flows,$(UNIT_TESTS)) $(HELPERS) $(SOAKS) $(FAULTY_TOOL) $(FAULTS)

# The same for the processor arm64, with Debian's headers and libraries for it.
ARM64_ROOT := $(CURDIR)/build/kernels/arm64/root
machine-programs-arm64: all
	$(Q)env PKG_CONFIG_SYSROOT_DIR=$(ARM64_ROOT) PKG_CONFIG_LIBDIR=$(ARM64_ROOT)/usr/lib/aarch64-linux-gnu/pkgconfig \
		$(MAKE) --no-print-directory CC='aarch64-linux-gnu-gcc --sysroot=$(ARM64_ROOT)' BUILD=build/kernels/arm64/build \
		NATIVE_TOOL=$(TOOL) machine-programs unit-programs

N ?= 10000
test-faults: packages ## kill the tool N times, at its steps, and see what is left: make test-faults [N=10000]
	$(Q)$(MAKE) --no-print-directory -s all $(FAULTY_TOOL) $(FAULTS) $(HELPERS)
	$(Q)sh tests/fault/run.sh $(N)

test-kernels: packages ## run tests on Debian's kernels, emulated: make test-kernels [ARCH=arm64] [SUITES='growth ...']
	$(Q)sh tests/packages/install.sh $(KERNEL_PACKAGES)
	$(Q)ARCH='$(ARCH)' sh tests/kernels/fetch.sh --emulator $(KERNELS)
	$(Q)$(MAKE) --no-print-directory -s -j "$$(nproc)" machine-programs$(if $(filter arm64,$(ARCH)),-arm64)
	$(Q)for clang in $(VERIFY_CLANGS); do sh tests/packages/install.sh $$clang; \
		! command -v $$clang >/dev/null || $(MAKE) --no-print-directory -s build/verify/$$clang.bpf.o || exit; done
	$(Q)ARCH='$(ARCH)' KERNELS='$(KERNELS)' sh tests/kernels/run.sh $(SUITES)

test-full: test ## make test, then again on builds that look on: sanitizers, valgrind, coverage
	$(Q)sh tests/packages/install.sh $(FULL_PACKAGES)
	$(Q)sh tests/full/run.sh

test-sanitized: packages ## the tests under sanitizers of addresses, undefined behaviour and leaks: make test-sanitized [SUITES='confirm ...']
	$(Q)$(MAKE) --no-print-directory -s -j "$$(nproc)" test-programs
	$(Q)SUITES='$(SUITES)' sh tests/full/run.sh sanitize

test-deb: deb ## install, upgrade and remove the Debian package in a bare root
	$(Q)sh tests/packages/install.sh debootstrap
	$(Q)sh tests/packages/deb.sh

# Slow: five builds for each release.
RELEASES ?= bookworm trixie
test-roots: ## build packages, demo and clang's build in bare roots of Debian 12 and 13: make test-roots [RELEASES=trixie]
	$(Q)sh tests/packages/install.sh debootstrap
	$(Q)RELEASES='$(RELEASES)' sh tests/packages/roots.sh

# Slow: two boots of an emulated machine.
test-systemd: deb ## install the package under a live systemd, boot, upgrade, remove it, in an emulated machine
	$(Q)sh tests/packages/install.sh debootstrap $(KERNEL_PACKAGES) e2fsprogs || :
	$(Q)sh tests/systemd/machine.sh

lint: packages ## gcc -fanalyzer, clang-tidy, cppcheck, shellcheck: make lint [TOOLS='tidy ...']
	$(Q)sh tests/packages/install.sh $(LINT_PACKAGES)
	$(Q)$(MAKE) --no-print-directory -s findings

findings: export USER_FLAGS = $(USER_CPPFLAGS) -Iuser/core/library $(TEST_CPPFLAGS) $(USER_CFLAGS)
findings: export BPF_FLAGS = $(BPF_CFLAGS) -Itests
findings: $(GENERATED)
	$(Q)sh tests/checks/lint.sh $(TOOLS)

demo: ## show it on live traffic: make demo [LIST=file]
	$(Q)sh tests/packages/install.sh $(BUILD_PACKAGES) $(DEMO_PACKAGES)
	$(Q)$(MAKE) --no-print-directory -s -j "$$(nproc)" $(OBJECT) $(TOOL) $(addprefix $(BUILD)/tests/helpers/,traffic list_flows)
	$(Q)sh tests/demo/filter.sh $(if $(LIST),'$(LIST)')

demo-fleet: ## show a fleet of three hosts, whose broker is killed and comes back
	$(Q)sh tests/packages/install.sh $(BUILD_PACKAGES) $(DEMO_FLEET_PACKAGES)
	$(Q)$(MAKE) --no-print-directory -s -j "$$(nproc)" $(TOOL)
	$(Q)sh tests/demo/fleet.sh

test-fleet: packages ## the tests of a fleet in full: 100 hosts, 10 killed brokers, 20 failovers, a million rules
	$(Q)$(MAKE) --no-print-directory -s all $(HELPERS)
	$(Q)HOSTS=100 TRIES=50 BROKER_KILLS=10 FAILOVERS=20 RULES=1000000 CONNECTIONS=1000 LIMIT_S=7200 JOBS=1 \
		sh tests/run.sh namespace/test_fleet

bench: packages ## measure beside rivals on this machine, and draw plots: make bench [FULL=1]
	$(Q)sh tests/packages/install.sh $(BENCH_PACKAGES)
	$(Q)$(MAKE) --no-print-directory -s -j "$$(nproc)" test-programs
	$(Q)sh tests/bench/run.sh $(if $(FULL),--full)

plots: ## draw the plots of the READMEs from tests/bench/results.txt
	$(Q)sh tests/packages/install.sh $(BENCH_PACKAGES)
	$(Q)sh tests/bench/readme_plots.sh

test-model: packages ## random commands and frames beside a model of the documentation: make test-model [T=3600] [SEED=N]
	$(Q)$(MAKE) --no-print-directory -s all
	$(Q)SECONDS_MAX=$(or $(T),3600) LIMIT_S=$$(($(or $(T),3600) + 900)) STEPS=60 FRAMES=500 $(if $(SEED),SEED='$(SEED)') sh tests/run.sh namespace/test_model

test-seeds: packages ## the tests that draw cases, with 100 seeds each: make test-seeds [SEEDS=100] [SUITES='bounded ...'] [MAX_S=N a file]
	$(Q)$(MAKE) --no-print-directory -s -j "$$(nproc)" test-programs
	$(Q)sh tests/full/seeds.sh $(SUITES)

test-simulation: packages ## a fleet on simulated time, network and disks: make test-simulation [SEEDS=1000] [SEED=1]
	$(Q)$(MAKE) --no-print-directory -s all $(SIMULATION)
	$(Q)$(SIMULATION) -c -s $(or $(SEED),1) -n 20 -j "$$(nproc)"
	$(Q)$(SIMULATION) -s $(or $(SEED),1) -n $(or $(SEEDS),1000) -j "$$(nproc)"

soak crowd: packages
	$(Q)$(MAKE) --no-print-directory -s all $(SOAKS) $(HELPERS)
	$(Q)sh tests/soak/run.sh $@ $(or $(T),3600)
soak: ## change a filter for T seconds, writers killed, every packet checked: make soak [T=3600]
crowd: ## 50 processes at once that change and read one filter for T seconds: make crowd [T=3600]

dissect: packages ## the parser beside scapy and tshark: make dissect [PCAP='FILE|DIR...'] [COUNT=FRAMES]
	$(Q)sh tests/packages/install.sh $(DISSECT_PACKAGES)
	$(Q)$(MAKE) --no-print-directory -s all $(BUILD)/tests/helpers/dissect $(BUILD)/tests/unit/packets/test_random_frames
	$(Q)PCAP='$(PCAP)' COUNT=$(or $(COUNT),100000) sh tests/run.sh dissection

fuzz: packages ## fuzz what hostile packets and files reach: make fuzz [T=SECONDS] [AFL=1] [TARGETS='parse ...']
	$(Q)sh tests/packages/install.sh $(FUZZ_PACKAGES)
	$(Q)$(MAKE) --no-print-directory -s fuzz-cover fuzz-$(if $(AFL),afl,libfuzzer) $(BUILD)/tests/fuzz/seeds
	$(Q)sh tests/fuzz/run.sh $(if $(AFL),afl,libfuzzer) $(FUZZ_T) $(TARGETS)

verify: packages ## show what the verifier makes of the program, and hold it to a budget
	$(Q)$(MAKE) --no-print-directory -s $(BUILD)/tests/helpers/verify
	$(Q)sh tests/checks/verify.sh

.PHONY: packages check mutants test test-programs unit-programs sanitized-programs machine-programs machine-programs-arm64 test-faults test-kernels test-full test-sanitized test-deb test-roots test-systemd lint findings demo demo-fleet test-fleet bench soak crowd \
	dissect fuzz verify test-model test-simulation plots test-seeds
