#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# `make check`: builds the unit tests and runs all that needs no root, the slowest files first. As root it runs them as an
# ordinary user would, for tests of the kernel take minutes: see `make test`.
set -eu
cd "$(dirname "$0")/.."

MAKE=${MAKE:-make}
BUILD=${BUILD:-build}
build="$MAKE --no-print-directory -s -j $(nproc) unit-programs"

# What another user has built stays as it is. Test programs that it lacks are built from a copy.
if ! [ -w "$BUILD" ] && [ -e "$BUILD" ] && ! $build -q; then
	copy=$(mktemp -d)
	trap 'rm -rf "$copy"' EXIT
	trap 'exit 130' INT
	trap 'exit 143' TERM
	cp -a "$BUILD/user" "$BUILD"/*.[ho] "$copy"
	BUILD=$copy
	build="$build BUILD=$copy"
fi
export BUILD
$build

as_user=
[ "$(id -u)" -ne 0 ] || ! unshare --user --map-user=1000 true 2>/dev/null || as_user='unshare --user --map-user=1000 --map-group=1000'
first=$(ls tests/unit/fleet/test_log_reader.c tests/unit/core/change/test_every_store.c tests/unit/core/change/test_readers.c tests/unit/core/host/test_protected_flows.c \
	tests/unit/core/table/test_table.c tests/unit/core/change/test_[fw]a*.c)
export TESTS="$first $(ls tests/unit/*/test_*.c tests/unit/*/*/test_*.c | grep -vxF "$first") $(grep -l '^NEEDS_ROOT=no' tests/namespace/test_*.sh)"
$as_user sh tests/run.sh
