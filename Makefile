# xdp-cuckoo. `make help` lists the targets; everything generated goes under build/.

.DELETE_ON_ERROR:
MAKEFLAGS += --no-builtin-rules

CC ?= gcc
CLANG ?= clang
LLVM_STRIP ?= llvm-strip
BPFTOOL ?= $(firstword $(wildcard /usr/sbin/bpftool) bpftool)
BUILD ?= build
PREFIX ?= /usr/local
SBINDIR ?= $(PREFIX)/sbin
LIBDIR ?= $(PREFIX)/lib
LIBEXECDIR ?= $(PREFIX)/libexec
DESTDIR ?=
V ?= 0
WERROR ?= 0

# Debian packages that building needs; tests/packages/install.sh installs what is missing.
BUILD_PACKAGES := gcc libc6-dev \
	$(shell sed -n '/^Build-Depends:/,/^[A-Z]/s/^ \([a-z0-9-]*\).*/\1/p' user/package/debian/control)
DEB_PACKAGES := build-essential debhelper lintian

Q := $(if $(filter 1,$(V)),,@)
say = $(if $(filter 1,$(V)),,@printf '  %-7s %s\n' '$(1)' '$(2)';)

WARNINGS := -Wall -Wextra $(if $(filter 1,$(WERROR)),-Werror)
# Packagers give these two and CPPFLAGS in the environment or on the command line.
CFLAGS ?= -O2 -g -fstack-protector-strong -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2 -fPIE
LDFLAGS ?= -pie -Wl,-z,relro,-z,now
LIBRARY_NEEDS := libbpf lmdb libmnl
LIBRARIES := $(LIBRARY_NEEDS) jansson zlib
USER_CPPFLAGS = -D_GNU_SOURCE -Iinclude -Iuser/core -Iuser/cli -Iuser -Ibpf -I$(BUILD) -DLIBEXECDIR='"$(LIBEXECDIR)"'
USER_CFLAGS = -std=gnu11 $(WARNINGS) -Wmissing-prototypes -Wstrict-prototypes -Wshadow -pthread \
	-ffunction-sections -fdata-sections
# What a program needs beside $(LIBRARIES). libm is needed only where the compiler does not inline what is used of it.
LIBRARIES_watch := ncursesw
LIBRARIES_feed := libcurl libcrypto
LIBRARIES_fleet := hiredis libssl libcrypto
LIBRARIES_exporter := libmicrohttpd
libs_of = -Wl,--as-needed $(shell $(PKG_CONFIG) --libs $(LIBRARIES) $1) -lm
LDLIBS = $(call libs_of)
# If $(CC) compiles for another processor, $(NATIVE_CC) makes a second tool, which prints the man page.
NATIVE_CC ?= gcc
TARGET := $(shell $(CC) -dumpmachine)
processor = $(firstword $(subst -, ,$1))
NATIVE := $(or $(shell $(NATIVE_CC) -dumpmachine 2>/dev/null),$(TARGET))
IS_CROSS := $(filter-out $(call processor,$(NATIVE)),$(call processor,$(TARGET)))
PREFIX_OF_TOOLS := $(if $(IS_CROSS),$(TARGET)-)
OBJCOPY ?= $(PREFIX_OF_TOOLS)objcopy
PKG_CONFIG ?= $(if $(shell command -v $(PREFIX_OF_TOOLS)pkg-config),$(PREFIX_OF_TOOLS))pkg-config
ifeq ($(origin AR),default)
AR := $(PREFIX_OF_TOOLS)ar
endif
# The processor, as BPF programs call it: see ABI_LOADS_IN_ORDER.
BPF_ARCH := $(patsubst x86_64,x86,$(call processor,$(TARGET)))
# Its byte order. Where bpftool runs with the other one and is too old to read such objects, it says so and the build ends.
BPF_TARGET := $(if $(shell $(CC) -dM -E - </dev/null 2>/dev/null | grep '__BYTE_ORDER__ .*BIG'),bpfeb,bpfel)
# BTF names the source files: the same in every folder.
BPF_CFLAGS = -O2 -g -target $(BPF_TARGET) -D__TARGET_ARCH_$(BPF_ARCH) -mcpu=v3 -std=gnu11 $(WARNINGS) -ffile-prefix-map=$(CURDIR)=. -Iinclude -Ibpf \
	-idirafter /usr/include/$(shell gcc -print-multiarch 2>/dev/null)

OBJECT := $(BUILD)/xdp_cuckoo.bpf.o
OBJECTS := $(patsubst bpf/%.bpf.c,$(BUILD)/%.bpf.o,$(wildcard bpf/*.bpf.c))
# For kernels with connection tracking: see bpf/new_only.h.
OBJECTS_CONNTRACK := $(patsubst %,$(BUILD)/%_conntrack.bpf.o,xdp_cuckoo xdp_cuckoo_tc)
SKELETONS := $(patsubst %.bpf.o,%.skel.h,$(OBJECTS) $(OBJECTS_CONNTRACK))
TOOL := $(BUILD)/xdp-cuckoo
NATIVE_TOOL := $(if $(IS_CROSS),$(BUILD)/native/xdp-cuckoo,$(TOOL))
LAYERS := $(shell sed 's/\#.*//' user/layers)
LIBRARY_FOLDERS := $(patsubst %*,%,$(filter %*,$(LAYERS)))
# The folders that are programs: user/tool is xdp-cuckoo, which starts the others.
PROGRAM_FOLDERS := $(filter-out core/% cli/%,$(LAYERS))
OTHER_PROGRAMS := $(filter-out tool,$(PROGRAM_FOLDERS))
PROGRAMS := $(OTHER_PROGRAMS:%=$(BUILD)/xdp-cuckoo-%)
sources_of = $(wildcard $(patsubst %,user/%/*.c,$(subst *,,$1)) $(patsubst %,user/%/*/*.c,$(filter $(PROGRAM_FOLDERS),$1)))
objects_of = $(patsubst %.c,$(BUILD)/%.o,$(call sources_of,$1))
USER_SOURCES := $(call sources_of,$(LAYERS))
USER_OBJECTS := $(patsubst %.c,$(BUILD)/%.o,$(USER_SOURCES))
ENGINE_OBJECTS := $(filter-out %/main.o,$(USER_OBJECTS))
LIBRARY_OBJECTS := $(call objects_of,$(LIBRARY_FOLDERS))
HELP_TEXTS := $(PROGRAM_FOLDERS:%=$(BUILD)/help-%.h)
GENERATED := $(SKELETONS) $(BUILD)/fleet.lua.h $(HELP_TEXTS)
SONAME := libxdp-cuckoo.so.1
SHARED := $(BUILD)/$(SONAME)
ARCHIVE := $(BUILD)/libxdp-cuckoo.a

MAN_PAGE := $(BUILD)/man/xdp-cuckoo.8
FORMAT_PAGES := user/package/man/xdp-cuckoo-rules.5 user/package/man/xdp-cuckoo.conf.5
CONCEPTS_PAGES := $(wildcard user/package/man/*.7)

UNITS := $(notdir $(wildcard user/package/systemd/*))
# Links: names of before that still work.
OLD_UNITS := xdp-cuckoo-refresh@.service xdp-cuckoo-refresh@.timer
INSTALLED = $(DESTDIR)$(SBINDIR)/xdp-cuckoo
PROGRAM_DIR = $(DESTDIR)$(LIBEXECDIR)/xdp-cuckoo
UNIT_DIR = $(DESTDIR)$(PREFIX)/lib/systemd/system
SYSUSERS = $(DESTDIR)$(PREFIX)/lib/sysusers.d/xdp-cuckoo.conf
LIBRARY_DIR = $(DESTDIR)$(PREFIX)/lib/xdp-cuckoo
MAN_DIR = $(DESTDIR)$(PREFIX)/share/man
SHARE_DIR = $(DESTDIR)$(PREFIX)/share/xdp-cuckoo
DOC_DIR = $(DESTDIR)$(PREFIX)/share/doc/xdp-cuckoo
BASH_COMPLETION = $(DESTDIR)$(PREFIX)/share/bash-completion/completions/xdp-cuckoo
# Debian's packages have another place for it.
ZSH_FUNCTIONS ?= $(PREFIX)/share/zsh/site-functions
ZSH_COMPLETION = $(DESTDIR)$(ZSH_FUNCTIONS)/_xdp-cuckoo
VERSION = $(shell sed -n 's/^\#define VERSION "\(.*\)"$$/\1/p' user/core/base/version.h)
FAIL2BAN_ACTION = $(DESTDIR)/etc/fail2ban/action.d/xdp-cuckoo.py

all: $(OBJECT) $(TOOL) $(PROGRAMS) $(MAN_PAGE) $(SHARED) $(ARCHIVE) ## build BPF object, tool, man page and library (default)

define compile_bpf
	@mkdir -p $(@D)
	$(call say,BPF,$@)$(CLANG) $(BPF_CFLAGS) -MMD -MP -MF $(@:.o=.d) -MT $@ -c $< -o $@
	$(Q)$(LLVM_STRIP) -g $@
endef

$(OBJECTS): $(BUILD)/%.bpf.o: bpf/%.bpf.c
	$(compile_bpf)

$(OBJECTS_CONNTRACK): BPF_CFLAGS += -DASKS_CONNTRACK
$(OBJECTS_CONNTRACK): $(BUILD)/%_conntrack.bpf.o: bpf/%.bpf.c
	$(compile_bpf)

$(SKELETONS): $(BUILD)/%.skel.h: $(BUILD)/%.bpf.o
	$(call say,SKEL,$@)$(BPFTOOL) gen skeleton $< name $* > $@

$(BUILD)/user/core/kernel/load_program.o $(BUILD)/user/core/kernel/bench_program.o: $(SKELETONS)

# A text as one C string.
embed := sed 's/\\/\\\\/g; s/"/\\"/g; s/.*/"&\\n"/'

# The broker's functions.
$(BUILD)/fleet.lua.h: user/fleet/fleet.lua
	@mkdir -p $(@D)
	$(call say,EMBED,$@)$(embed) $< > $@

# A row for each command: its name and its help.
.SECONDEXPANSION:
$(HELP_TEXTS): $(BUILD)/help-%.h: $$(sort $$(wildcard user/%/help/*.txt))
	@mkdir -p $(@D)
	$(call say,EMBED,$@)for text in $^; do \
		echo "{ \"$$(basename $$text .txt)\","; $(embed) $$text; echo '},'; done > $@

$(BUILD)/user/fleet/publisher.o: $(BUILD)/fleet.lua.h
$(PROGRAM_FOLDERS:%=$(BUILD)/user/%/main.o): $(BUILD)/user/%/main.o: $(BUILD)/help-%.h
$(BUILD)/user/cli/command/help.o: $(BUILD)/commit.h

# The commit of a clone; "" in a tarball, so that each build of it is the same. Where root may not read the clone of
# another user, what that user has built stays.
$(BUILD)/commit.h: FORCE
	@mkdir -p $(@D)
	$(Q)commit=$$([ ! -e .git ] || git describe --always --dirty --abbrev=12 --exclude='*' 2>/dev/null); \
	[ -z "$$commit" -a -e .git -a -e $@ ] || echo "#define COMMIT \"$$commit\"" | cmp -s - $@ || \
		echo "#define COMMIT \"$$commit\"" >$@
FORCE:

$(BUILD)/user/%.o: user/%.c
	@mkdir -p $(@D)
	$(call say,CC,$@)$(CC) $(USER_CPPFLAGS) $(CPPFLAGS) $(CFLAGS) $(USER_CFLAGS) -fPIC -fvisibility=hidden \
		-MMD -MP -c $< -o $@

# What links them takes what it needs. The program folders are here for tests.
$(BUILD)/core.a: $(call objects_of,$(filter core/%,$(LAYERS)))
$(BUILD)/cli.a: $(call objects_of,$(filter cli/%,$(LAYERS)))
$(BUILD)/programs.a: $(filter-out %/main.o,$(call objects_of,$(PROGRAM_FOLDERS)))
$(BUILD)/core.a $(BUILD)/cli.a $(BUILD)/programs.a:
	$(call say,AR,$@)rm -f $@ && $(AR) rcsT $@ $^

link_program = $(call say,LINK,$@)$(CC) $(CFLAGS) $(LDFLAGS) -Wl,--gc-sections -pthread $^ $(LDLIBS) -o $@
$(TOOL): $(call objects_of,tool) $(BUILD)/cli.a $(BUILD)/core.a | $(PROGRAMS)
	$(link_program)

$(PROGRAMS): LDLIBS = $(call libs_of,$(LIBRARIES_$(@:$(BUILD)/xdp-cuckoo-%=%)))
$(PROGRAMS): $(BUILD)/xdp-cuckoo-%: $$(call objects_of,%) $(BUILD)/cli.a $(BUILD)/core.a
	$(link_program)

# It stays when it is closed: libbpf goes on calling what it prints by.
$(SHARED): $(LIBRARY_OBJECTS) user/core/library/xdp-cuckoo.map
	$(call say,LINK,$@)$(CC) $(CFLAGS) $(filter-out -pie,$(LDFLAGS)) -pthread -shared -Wl,--gc-sections -Wl,-soname,$(SONAME) \
		-Wl,-z,defs -Wl,-z,nodelete -Wl,--version-script=user/core/library/xdp-cuckoo.map $(LIBRARY_OBJECTS) \
		$$($(PKG_CONFIG) --libs $(LIBRARY_NEEDS)) -o $@

# One object, so that what is hidden can be local to it.
$(ARCHIVE): $(LIBRARY_OBJECTS)
	$(call say,AR,$@)$(CC) $(CFLAGS) -nostdlib -r $^ -o $(@:.a=.o)
	$(Q)$(OBJCOPY) --localize-hidden $(@:.a=.o)
	$(Q)rm -f $@ && $(AR) rcs $@ $(@:.a=.o)

$(MAN_PAGE): $(NATIVE_TOOL) $(PROGRAMS) $(wildcard user/package/man/*)
	@mkdir -p $(@D)
	$(call say,MAN,$@)sh user/package/man/make.sh $(NATIVE_TOOL) $(PREFIX)/lib/systemd/system > $@

$(BUILD)/native/xdp-cuckoo: $(TOOL)
	$(Q)env -u CPPFLAGS -u CFLAGS -u LDFLAGS -u PKG_CONFIG_LIBDIR -u PKG_CONFIG_SYSROOT_DIR -u MAKEFLAGS -u MAKEOVERRIDES \
		make -s -j "$$(nproc)" CC=$(NATIVE_CC) BUILD=$(BUILD)/native V=$(V) $@

install: all ## install under DESTDIR/PREFIX
	install -D -m 0755 $(TOOL) $(INSTALLED)
	install -D -m 0755 -t $(PROGRAM_DIR) $(PROGRAMS)
	install -D -m 0644 -t $(LIBRARY_DIR) $(OBJECT)
	install -m 0755 user/integrations/fastnetmon/xdp-cuckoo-notify $(LIBRARY_DIR)
	install -m 0644 user/integrations/fail2ban/xdp-cuckoo.py $(LIBRARY_DIR)/fail2ban-action.py
	install -D -m 0644 $(MAN_PAGE) $(MAN_DIR)/man8/xdp-cuckoo.8
	install -d $(MAN_DIR)/man5
	install -m 0644 $(FORMAT_PAGES) $(MAN_DIR)/man5
	install -d $(MAN_DIR)/man7
	install -m 0644 $(CONCEPTS_PAGES) $(MAN_DIR)/man7
	install -D -m 0644 user/integrations/examples/default.conf $(DOC_DIR)/default.conf
	install -m 0644 user/integrations/README.md $(DOC_DIR)/integrations.md
	install -d $(UNIT_DIR)
	for unit in $(UNITS); do \
		sed 's,@SBINDIR@,$(SBINDIR),' user/package/systemd/$$unit >$(UNIT_DIR)/$$unit || exit; done
	for unit in $(OLD_UNITS); do ln -sf xdp-cuckoo-reload@.$${unit##*.} $(UNIT_DIR)/$$unit || exit; done
	install -D -m 0644 user/package/xdp-cuckoo.sysusers $(SYSUSERS)
	install -D -m 0644 user/package/completion/xdp-cuckoo.bash $(BASH_COMPLETION)
	install -D -m 0644 user/package/completion/_xdp-cuckoo $(ZSH_COMPLETION)
	install -D -m 0644 user/integrations/grafana/xdp-cuckoo.json $(SHARE_DIR)/grafana/xdp-cuckoo.json
	install -D -m 0644 user/integrations/prometheus/alerts.yml $(SHARE_DIR)/prometheus/alerts.yml
	if [ -d $(dir $(FAIL2BAN_ACTION)) ]; then \
		ln -sf $(PREFIX)/lib/xdp-cuckoo/fail2ban-action.py $(FAIL2BAN_ACTION); fi
	install -D -m 0644 user/core/library/xdp-cuckoo.h $(DESTDIR)$(PREFIX)/include/xdp-cuckoo.h
	install -D -m 0644 $(SHARED) $(DESTDIR)$(LIBDIR)/$(SONAME)
	ln -sf $(SONAME) $(DESTDIR)$(LIBDIR)/libxdp-cuckoo.so
	install -m 0644 $(ARCHIVE) $(DESTDIR)$(LIBDIR)
	install -d $(DESTDIR)$(LIBDIR)/pkgconfig
	sed 's,@PREFIX@,$(PREFIX),; s,@LIBDIR@,$(LIBDIR),; s,@NEEDS@,$(LIBRARY_NEEDS),; s,@VERSION@,$(VERSION),' \
		user/core/library/xdp-cuckoo.pc >$(DESTDIR)$(LIBDIR)/pkgconfig/xdp-cuckoo.pc
	if [ -z '$(DESTDIR)' ] && [ "$$(id -u)" -eq 0 ]; then ldconfig; \
		! command -v systemd-sysusers >/dev/null || systemd-sysusers $(SYSUSERS); fi

uninstall: ## remove what install put there; warns if filters are running
	@$(INSTALLED) status --json 2>/dev/null | sed -n \
		's,.*"interface": "\([^"]*\)".*,warning: \1 keeps its filter; $(TOOL) unload \1 removes it,p' >&2
	rm -f $(INSTALLED) $(SYSUSERS) $(FAIL2BAN_ACTION) $(addprefix $(UNIT_DIR)/,$(UNITS) $(OLD_UNITS))
	rm -f $(MAN_DIR)/man8/xdp-cuckoo.8 $(addprefix $(MAN_DIR)/man7/,$(notdir $(CONCEPTS_PAGES)))
	rm -f $(addprefix $(MAN_DIR)/man5/,$(notdir $(FORMAT_PAGES)))
	rm -f $(BASH_COMPLETION) $(ZSH_COMPLETION)
	rm -f $(DESTDIR)$(PREFIX)/include/xdp-cuckoo.h $(DESTDIR)$(LIBDIR)/pkgconfig/xdp-cuckoo.pc
	rm -f $(addprefix $(DESTDIR)$(LIBDIR)/,$(SONAME) libxdp-cuckoo.so libxdp-cuckoo.a)
	rm -rf $(PROGRAM_DIR) $(LIBRARY_DIR) $(SHARE_DIR) $(DOC_DIR)

# The signature is made by signify: signify-openbsd in Debian.
dist: ## pack the sources into build/dist, with an SPDX file: make dist [SIGN_KEY=file.sec]
	$(Q)tarball=$$(sh user/package/tarball.sh $(BUILD)/dist) && sh user/package/spdx.sh "$$tarball" >"$${tarball%.tar.gz}.spdx.json" && \
		echo "$$tarball" $(if $(SIGN_KEY),&& signify-openbsd -S -s '$(SIGN_KEY)' -m "$$tarball" && echo "$$tarball.sig")

deb: ## build the Debian packages into build/deb, checked by lintian
	$(Q)sh tests/packages/install.sh $(BUILD_PACKAGES) $(DEB_PACKAGES)
	$(Q)tarball=$$(sh user/package/tarball.sh $(BUILD)/dist) && sh user/package/debian/build.sh $(BUILD)/deb "$$tarball"

rpm: ## build RPM packages into build/rpm (on Debian, without its dependencies)
	$(Q)! command -v apt-get >/dev/null || sh tests/packages/install.sh $(BUILD_PACKAGES) rpm
	$(Q)tarball=$$(sh user/package/tarball.sh $(BUILD)/dist) && sh user/package/rpm/build.sh $(BUILD)/rpm "$$tarball"

format: ## format all C files with clang-format
	clang-format -i $$(git ls-files '*.c' '*.h')

clean: ## remove build/
	rm -rf $(BUILD)

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' Makefile tests/tests.mk | expand -t 16

.PHONY: all install uninstall dist deb rpm format clean help
export BUILD

include tests/tests.mk
-include $(shell find $(BUILD) \
	\( $(foreach other,deb rpm roots systemd kernels,-path $(BUILD)/$(other) -o) -false \) -prune -o -name '*.d' -type f -print 2>/dev/null)
