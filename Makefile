# xdp-cuckoo. `make help` lists the targets; everything generated goes under build/.

.DELETE_ON_ERROR:
MAKEFLAGS += --no-builtin-rules

CC ?= gcc
CLANG ?= clang
LLVM_STRIP ?= llvm-strip
BPFTOOL ?= $(firstword $(wildcard /usr/sbin/bpftool) bpftool)
BUILD ?= build
PREFIX ?= /usr/local
DESTDIR ?=
V ?= 0
WERROR ?= 0

# Debian 12 packages, by what needs them; tests/install-packages.sh installs what is missing.
BUILD_PACKAGES := clang llvm gcc libc6-dev linux-libc-dev pkg-config bpftool \
	libbpf-dev liblmdb-dev libjansson-dev libmnl-dev libcap-dev
TEST_PACKAGES := libcmocka-dev netbase iproute2 xdp-tools util-linux procps python3 ipset nftables groff-base
# Daemons that tests run themselves: their files are unpacked under build/, so that nothing is started here.
UNPACKED_PACKAGES := fail2ban prometheus-node-exporter
BENCH_PACKAGES := gnuplot-nox iptables
DISSECT_PACKAGES := python3-scapy
FUZZ_PACKAGES := libclang-rt-dev $(if $(AFL),afl++)
# For virtual machines with other kernels, and the compilers that tests/verify.sh knows.
KERNEL_PACKAGES := qemu-system-x86 kmod cpio
KERNELS := bookworm bookworm-backports
VERIFY_CLANGS = $(shell sed -n "s/^CLANGS='\(.*\)'.*/\1/p" tests/verify.sh)
LINT_PACKAGES := clang-tidy clang-format cppcheck shellcheck
FULL_PACKAGES := valgrind gcovr

Q := $(if $(filter 1,$(V)),,@)
say = $(if $(filter 1,$(V)),,@printf '  %-7s %s\n' '$(1)' '$(2)';)

WARNINGS := -Wall -Wextra $(if $(filter 1,$(WERROR)),-Werror)
# Both may be given on the command line, or by the environment, as packagers do; these are for all others.
CFLAGS ?= -O2 -g -fstack-protector-strong -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2 -fPIE
LDFLAGS ?= -pie -Wl,-z,relro,-z,now
LIBRARIES := libbpf lmdb jansson libmnl libcap
USER_CPPFLAGS = -D_GNU_SOURCE -Iinclude -Iuser -Ibpf -I$(BUILD)
TEST_CPPFLAGS = -Itests -DXDP_CUCKOO_BUILD='"$(BUILD)"' -DXDP_CUCKOO_OBJECT='"$(OBJECT)"'
USER_CFLAGS = -std=gnu11 $(WARNINGS) -Wmissing-prototypes -Wstrict-prototypes -Wshadow -pthread
LDLIBS = $(shell pkg-config --libs $(LIBRARIES))
BPF_CFLAGS := -O2 -g -target bpf -mcpu=v3 -std=gnu11 $(WARNINGS) -Iinclude -Ibpf -Itests \
	-idirafter /usr/include/$(shell gcc -print-multiarch 2>/dev/null)

OBJECT := $(BUILD)/xdp_cuckoo.bpf.o
OBJECTS := $(patsubst bpf/%.bpf.c,$(BUILD)/%.bpf.o,$(wildcard bpf/*.bpf.c))
SKELETONS := $(OBJECTS:.bpf.o=.skel.h)
TOOL := $(BUILD)/xdp-cuckoo
USER_OBJECTS := $(patsubst user/%.c,$(BUILD)/user/%.o,$(wildcard user/*.c))
ENGINE_OBJECTS := $(filter-out $(BUILD)/user/main.o,$(USER_OBJECTS))
UNIT_TESTS := $(patsubst tests/unit/%.c,$(BUILD)/tests/unit/%,$(wildcard tests/unit/test_*.c))
HELPERS := $(patsubst tests/helpers/%.c,$(BUILD)/tests/helpers/%,$(wildcard tests/helpers/*.c))
HELPERS := $(patsubst %.bpf,%.bpf.o,$(HELPERS))
BENCHES := $(patsubst tests/bench/%.c,$(BUILD)/tests/bench/%,$(wildcard tests/bench/*.c))
BENCH_OBJECTS := $(patsubst tests/bench/%.bpf.c,$(BUILD)/tests/bench/%.bpf.o,$(wildcard tests/bench/*.bpf.c))
BENCHES := $(filter-out %.bpf,$(BENCHES))
SOAKS := $(patsubst tests/soak/%.c,$(BUILD)/tests/soak/%,$(wildcard tests/soak/*.c))

MAN_PAGE := $(BUILD)/man/xdp-cuckoo.8
RULES_PAGE := user/man/xdp-cuckoo-rules.5

# The tool once more, such that it fails where it is told to: tests/fault/runtime.c.
FAULTY_TOOL := build/tests/fault/xdp-cuckoo
FAULTY_OBJECTS := $(patsubst user/%.c,build/tests/fault/user/%.o,$(wildcard user/*.c))
FAULTS := build/tests/fault/faults

UNITS := $(notdir $(wildcard user/systemd/*))
UNIT_DIR = $(DESTDIR)$(PREFIX)/lib/systemd/system
LIBRARY_DIR = $(DESTDIR)$(PREFIX)/lib/xdp-cuckoo
MAN_DIR = $(DESTDIR)$(PREFIX)/share/man
FAIL2BAN_ACTION = $(DESTDIR)/etc/fail2ban/action.d/xdp-cuckoo.conf

all: $(OBJECT) $(TOOL) $(MAN_PAGE) ## build the BPF object, the tool and its man page (default)

define compile_bpf
	@mkdir -p $(@D)
	$(call say,BPF,$@)$(CLANG) $(BPF_CFLAGS) -MMD -MP -MF $(@:.o=.d) -MT $@ -c $< -o $@
	$(Q)$(LLVM_STRIP) -g $@
endef

$(OBJECTS): $(BUILD)/%.bpf.o: bpf/%.bpf.c
	$(compile_bpf)

$(BUILD)/tests/%.bpf.o: tests/%.bpf.c
	$(compile_bpf)

# The object by another compiler, which the file is named after.
$(BUILD)/verify/%.bpf.o: override CLANG = $*
$(BUILD)/verify/%.bpf.o: bpf/xdp_cuckoo.bpf.c
	$(compile_bpf)

$(SKELETONS): $(BUILD)/%.skel.h: $(BUILD)/%.bpf.o
	$(call say,SKEL,$@)$(BPFTOOL) gen skeleton $< name $* > $@

$(BUILD)/user/kernel.o: $(BUILD)/xdp_cuckoo.skel.h
$(BUILD)/user/kernel_bench.o: $(BUILD)/bench.skel.h

$(BUILD)/user/%.o: user/%.c
	@mkdir -p $(@D)
	$(call say,CC,$@)$(CC) $(USER_CPPFLAGS) $(CFLAGS) $(USER_CFLAGS) -MMD -MP -c $< -o $@

$(TOOL): $(USER_OBJECTS)
	$(call say,LINK,$@)$(CC) $(CFLAGS) $(LDFLAGS) -pthread $^ $(LDLIBS) -o $@

$(MAN_PAGE): $(TOOL) $(wildcard user/man/*)
	@mkdir -p $(@D)
	$(call say,MAN,$@)sh user/man/make.sh $(TOOL) $(PREFIX)/lib/systemd/system > $@

# Each test program is one file, linked with everything of the tool but main().
$(BUILD)/tests/%: tests/%.c $(ENGINE_OBJECTS) $(OBJECT)
	@mkdir -p $(@D)
	$(call say,TEST,$@)$(CC) $(USER_CPPFLAGS) $(TEST_CPPFLAGS) $(CFLAGS) $(USER_CFLAGS) \
		-MMD -MP -MF $@.d -MT $@ $< $(ENGINE_OBJECTS) $(LDFLAGS) $(LDLIBS) -lcmocka -lm -o $@

$(BUILD)/tests/%.so: tests/%.so.c
	@mkdir -p $(@D)
	$(call say,SO,$@)$(CC) -D_GNU_SOURCE $(CFLAGS) $(USER_CFLAGS) -shared -fPIC $< $(filter-out -pie,$(LDFLAGS)) -o $@

# ---- fuzzing: the sources once more, each way with a compiler and sanitizers of its own ----

FUZZ_TARGETS := $(patsubst tests/fuzz/%.c,%,$(wildcard tests/fuzz/fuzz_*.c))
FUZZ_CHECKS := -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer
FUZZ_T = $(or $(T),60)

# $1: the way; $2: its compiler; $3: flags of what is fuzzed; $4: flags of linking; $5: main(), where it needs one
define fuzz_way
build/fuzz/$1/user/%.o: user/%.c | $$(SKELETONS)
	@mkdir -p $$(@D)
	$$(call say,CC,$$@)$2 $$(USER_CPPFLAGS) -O1 -g $$(USER_CFLAGS) $3 -MMD -MP -c $$< -o $$@

build/fuzz/$1/engine.a: $$(patsubst $(BUILD)/%,build/fuzz/$1/%,$$(ENGINE_OBJECTS))
	$$(call say,AR,$$@)rm -f $$@ && ar rcs $$@ $$^

build/fuzz/$1/fuzz_%: tests/fuzz/fuzz_%.c $5 build/fuzz/$1/engine.a
	@mkdir -p $$(@D)
	$$(call say,FUZZ,$$@)$2 $$(USER_CPPFLAGS) -Itests -O1 -g $$(USER_CFLAGS) $3 -MMD -MP -MF $$@.d -MT $$@ \
		$$(filter %.c %.a,$$^) $4 $$(LDFLAGS) $$(LDLIBS) -lm -o $$@

fuzz-$1: $$(addprefix build/fuzz/$1/,$$(FUZZ_TARGETS))
.PHONY: fuzz-$1
endef

$(eval $(call fuzz_way,replay,$$(CC),$(FUZZ_CHECKS),,tests/fuzz/replay.c))
$(eval $(call fuzz_way,libfuzzer,$$(CLANG),$(FUZZ_CHECKS) -fsanitize=fuzzer-no-link,-fsanitize=fuzzer))
$(eval $(call fuzz_way,afl,AFL_QUIET=1 afl-clang-fast,$(FUZZ_CHECKS),-fsanitize=fuzzer))
$(eval $(call fuzz_way,cover,$$(CLANG),-fprofile-instr-generate -fcoverage-mapping -Wno-pass-failed,,tests/fuzz/replay.c))
build/tests/fault/user/kernel.o: build/xdp_cuckoo.skel.h
build/tests/fault/user/kernel_bench.o: build/bench.skel.h

build/tests/fault/user/%.o: user/%.c
	@mkdir -p $(@D)
	$(call say,FAULT,$@)$(CC) $(USER_CPPFLAGS) $(CFLAGS) $(USER_CFLAGS) -fsanitize=thread -Wno-tsan -MMD -MP -c $< -o $@

build/tests/fault/runtime.o: tests/fault/runtime.c
	@mkdir -p $(@D)
	$(call say,CC,$@)$(CC) -D_GNU_SOURCE $(CFLAGS) $(USER_CFLAGS) -MMD -MP -c $< -o $@

$(FAULTY_TOOL): $(FAULTY_OBJECTS) build/tests/fault/runtime.o
	$(call say,LINK,$@)$(CC) $(CFLAGS) $(LDFLAGS) -pthread -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc $^ \
		$(LDLIBS) -o $@

packages: ## install the Debian packages that building and testing need
	$(Q)sh tests/install-packages.sh $(BUILD_PACKAGES) $(TEST_PACKAGES)
	$(Q)sh tests/unpack-packages.sh $(BUILD)/packages $(UNPACKED_PACKAGES)

# Packages first, then a make of its own: what to build with is only known when they are there. Without a virtual
# machine the test that needs one is skipped.
test: packages ## install what is missing, build, run every test
	$(Q)sh tests/install-packages.sh $(KERNEL_PACKAGES) && sh tests/kernels/fetch.sh $(firstword $(KERNELS)) || :
	$(Q)$(MAKE) --no-print-directory -s test-programs
	$(Q)sh tests/run.sh

test-programs: all unit-programs $(HELPERS) $(BENCHES) $(BENCH_OBJECTS) $(SOAKS) fuzz-replay $(BUILD)/tests/fuzz/seeds $(FAULTY_TOOL) $(FAULTS)

unit-programs: $(UNIT_TESTS)

N ?= 10000
test-faults: packages ## kill the tool N times, at its steps, and see what is left: make test-faults [N=10000]
	$(Q)$(MAKE) --no-print-directory -s all $(FAULTY_TOOL) $(FAULTS) $(HELPERS)
	$(Q)sh tests/faults.sh $(N)

test-kernels: packages ## run tests on Debian's kernels 6.1 and 6.12, emulated: make test-kernels [SUITES='growth ...']
	$(Q)sh tests/install-packages.sh $(KERNEL_PACKAGES)
	$(Q)sh tests/kernels/fetch.sh $(KERNELS)
	$(Q)$(MAKE) --no-print-directory -s test-programs
	$(Q)for clang in $(VERIFY_CLANGS); do sh tests/install-packages.sh $$clang; \
		! command -v $$clang >/dev/null || $(MAKE) --no-print-directory -s build/verify/$$clang.bpf.o || exit; done
	$(Q)KERNELS='$(KERNELS)' sh tests/kernels/run.sh $(SUITES)
test-full: test ## make test, then again on builds that look on: sanitizers, valgrind, coverage
	$(Q)sh tests/install-packages.sh $(FULL_PACKAGES)
	$(Q)sh tests/full.sh

lint: packages ## gcc -fanalyzer, clang-tidy, cppcheck, shellcheck: make lint [TOOLS='tidy ...']
	$(Q)sh tests/install-packages.sh $(LINT_PACKAGES)
	$(Q)$(MAKE) --no-print-directory -s findings

findings: export USER_FLAGS = $(USER_CPPFLAGS) $(TEST_CPPFLAGS) $(USER_CFLAGS)
findings: export BPF_FLAGS = $(BPF_CFLAGS)
findings: $(SKELETONS)
	$(Q)sh tests/lint.sh $(TOOLS)

demo: packages ## show it on live traffic: make demo [LIST=file]
	$(Q)$(MAKE) --no-print-directory -s all $(HELPERS)
	$(Q)sh tests/demo.sh $(if $(LIST),'$(LIST)')

bench: packages ## measure beside rivals on this machine, and draw plots: make bench [FULL=1]
	$(Q)sh tests/install-packages.sh $(BENCH_PACKAGES)
	$(Q)$(MAKE) --no-print-directory -s test-programs
	$(Q)sh tests/bench/run.sh $(if $(FULL),--full)

soak crowd: packages
	$(Q)$(MAKE) --no-print-directory -s all $(SOAKS) $(HELPERS)
	$(Q)sh tests/soak/run.sh $@ $(or $(T),3600)
soak: ## change a filter for T seconds, writers killed, every packet checked: make soak [T=3600]
crowd: ## 50 processes at once that change and read one filter for T seconds: make crowd [T=3600]

dissect: packages ## the parser beside scapy: make dissect [PCAP='FILE...'] [COUNT=FRAMES]
	$(Q)sh tests/install-packages.sh $(DISSECT_PACKAGES)
	$(Q)$(MAKE) --no-print-directory -s all $(BUILD)/tests/helpers/dissect $(BUILD)/tests/unit/test_random_frames
	$(Q)PCAP='$(PCAP)' COUNT=$(or $(COUNT),100000) sh tests/run.sh dissection

fuzz: packages ## fuzz what hostile packets and files reach: make fuzz [T=SECONDS] [AFL=1] [TARGETS='parse ...']
	$(Q)sh tests/install-packages.sh $(FUZZ_PACKAGES)
	$(Q)$(MAKE) --no-print-directory -s fuzz-cover fuzz-$(if $(AFL),afl,libfuzzer) $(BUILD)/tests/fuzz/seeds
	$(Q)sh tests/fuzz/run.sh $(if $(AFL),afl,libfuzzer) $(FUZZ_T) $(TARGETS)

verify: packages ## show what the verifier makes of the program, and hold it to a budget
	$(Q)$(MAKE) --no-print-directory -s $(BUILD)/tests/helpers/verify
	$(Q)sh tests/verify.sh

install: all ## install under DESTDIR/PREFIX
	install -D -m 0755 $(TOOL) $(DESTDIR)$(PREFIX)/sbin/xdp-cuckoo
	install -D -m 0644 $(OBJECT) $(LIBRARY_DIR)/xdp_cuckoo.bpf.o
	install -m 0755 user/crowdsec/xdp-cuckoo-bouncer $(LIBRARY_DIR)
	install -m 0644 user/fail2ban/xdp-cuckoo.conf $(LIBRARY_DIR)/fail2ban-action.conf
	install -D -m 0644 $(MAN_PAGE) $(MAN_DIR)/man8/xdp-cuckoo.8
	install -D -m 0644 $(RULES_PAGE) $(MAN_DIR)/man5/xdp-cuckoo-rules.5
	install -d $(UNIT_DIR)
	for unit in $(UNITS); do \
		sed 's,@SBINDIR@,$(PREFIX)/sbin,' user/systemd/$$unit >$(UNIT_DIR)/$$unit || exit; done
	if [ -d $(dir $(FAIL2BAN_ACTION)) ]; then \
		ln -sf $(PREFIX)/lib/xdp-cuckoo/fail2ban-action.conf $(FAIL2BAN_ACTION); fi

uninstall: ## remove what install put there
	rm -f $(DESTDIR)$(PREFIX)/sbin/xdp-cuckoo $(FAIL2BAN_ACTION) $(addprefix $(UNIT_DIR)/,$(UNITS))
	rm -f $(MAN_DIR)/man8/xdp-cuckoo.8 $(MAN_DIR)/man5/xdp-cuckoo-rules.5
	rm -rf $(LIBRARY_DIR)

format: ## format all C files with clang-format
	clang-format -i $$(git ls-files '*.c' '*.h')

clean: ## remove build/
	rm -rf $(BUILD)

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(firstword $(MAKEFILE_LIST)) | expand -t 16

.PHONY: all packages test test-programs unit-programs demo bench verify install uninstall format clean help soak crowd dissect fuzz test-faults test-kernels test-full lint findings
export BUILD
-include $(shell find $(BUILD) -name '*.d' -type f 2>/dev/null)
