#!/bin/bash -eu
# For ClusterFuzzLite, which sets CC, CFLAGS, LIB_FUZZING_ENGINE and OUT: builds each fuzzer of tests/fuzz, and puts it into
# $OUT with its dictionary, its seeds and the shared libraries that it needs.
make -s -j"$(nproc)" all build/tests/fuzz/seeds CC=gcc CFLAGS=-O1
make -s -j"$(nproc)" fuzz-cluster CLUSTER_CC="$CC" CLUSTER_FLAGS="$CFLAGS" CLUSTER_ENGINE="$LIB_FUZZING_ENGINE" \
	LDFLAGS="-Wl,-rpath,'\$\$ORIGIN/lib'"
sh tests/fuzz/seeds.sh build/fuzz/seeds
mkdir -p "$OUT/lib"
for fuzzer in build/fuzz/cluster/fuzz_*; do
	[ -x "$fuzzer" ] || continue
	name=$(basename "$fuzzer")
	words=tests/fuzz/${name#fuzz_}.dict
	cp "$fuzzer" "$OUT"
	[ ! -e "$words" ] || cp "$words" "$OUT/$name.dict"
	(cd "build/fuzz/seeds/${name#fuzz_}" && python3 -m zipfile -c "$OUT/${name}_seed_corpus.zip" ./*)
	ldd "$fuzzer" | awk '/=> \// && !/lib(c|m|pthread|dl|rt)\.so/ { print $3 }' | xargs -r cp -n -t "$OUT/lib"
done
