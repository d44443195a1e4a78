#!/bin/sh
# Fills fuzz/corpus with the images and texts the crates are tested with.
set -eu
cd "$(dirname "$0")"
mkdir -p corpus/ptx corpus/fatbin corpus/cubin corpus/lower corpus/places corpus/ledger corpus/scenario corpus/results \
    corpus/rewrite corpus/profile corpus/configuration corpus/board_reader corpus/http
# Large inputs make slow runs, and the largest is mostly debug tables.
for file in $(find ../crates/ptx/test_data -name '*.ptx' -size -20k); do
    folder=$(basename "$(dirname "$file")")
    cp "$file" "corpus/ptx/$folder-$(basename "$file")"
done
cp ../crates/cubin/test_data/*.fatbin corpus/fatbin/
cp ../crates/cubin/test_data/*.cubin corpus/cubin/
cp ../crates/cubin/test_data/*.cubin corpus/rewrite/
for file in ../crates/guard/test_data/*.cubin; do
    cp "$file" "corpus/rewrite/guard-$(basename "$file")"
done
find ../conformance/kernels/ptx -name '*.compute_90.*.ptx' -size -12k -exec cp {} corpus/lower/ \;
# A loader's cache behind an empty library path, where this machine has one.
if [ -r /etc/ld.so.cache ]; then
    { printf '\000'; cat /etc/ld.so.cache; } > corpus/places/cache
fi
cp seeds/small.results corpus/results/
cp seeds/gemm.record seeds/gemm.batch corpus/profile/
for file in ../crates/scenario/suites/*/*.toml ../crates/scenario/test_data/bad/*.toml; do
    cp "$file" "corpus/scenario/$(basename "$(dirname "$file")")-$(basename "$file")"
done
# A scenario, a NUL and its trace.
{ cat seeds/trace.toml; printf '\0000\n10\n25.5\n'; } > corpus/scenario/trace
cp seeds/ebb.toml corpus/configuration/
# Two files, the later one over the earlier.
{ cat seeds/ebb.toml; printf '\000[policy]\nkind = "fair"\n[token]\nquantum = "20ms"\n'; } > corpus/configuration/two
# How long the pieces are, and what comes in them.
host='Host: localhost:9463\r\n'
printf "\037GET /api/stream?x=1 HTTP/1.1\r\n${host}Accept: text/event-stream\r\n\r\n" > corpus/http/get
printf "\007POST /api/tenants/GPU-1/5/pause HTTP/1.1\r\n${host}Origin: http://localhost:9463\r\nAuthorization: Bearer secret\r\nContent-Length: 4\r\n\r\nbody" \
    > corpus/http/post
