#!/bin/sh
# Fills fuzz/corpus with the images and texts the crates are tested with.
set -eu
cd "$(dirname "$0")"
mkdir -p corpus/ptx corpus/fatbin corpus/cubin corpus/lower corpus/places corpus/ledger corpus/scenario corpus/results \
    corpus/rewrite corpus/profile corpus/configuration corpus/board_reader corpus/http corpus/event_log corpus/trace \
    corpus/kept_image corpus/demotions corpus/mps_logs corpus/password_file corpus/card
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
# Heads of two rings and of the course, and a slot: where each piece begins, how long it is, and what stands there.
{ printf '\000\000\000\010\001\000\000\000\000\000\000\000'; printf '\000\000\001\010\002\000\000\000\000\000\000\000';
  printf '\100\000\000\010\377\377\377\377\377\377\377\377'; } > corpus/event_log/heads
# Since when, how it is divided, and three words for each event: time, kind and numbers, length.
{ printf '\000\200'; for kind in 00 01 02 03 04 05 06 07 10 11 12 13 14 15 16 17; do
  printf "\\001\\000\\000\\000\\000\\000\\000\\000\\0$kind\\000\\000\\000\\000\\000\\000\\000\\012\\000\\000\\000\\000\\000\\000\\000"; done; } > corpus/trace/kinds
# No kernel and an image; the target adds the sum.
printf '\000\000\000\000\004\000\000\000\177ELF' > corpus/kept_image/none
# A kernel without parameters, called `add`.
printf '\001\000\000\000\001\000\020\000\000\000\000\000\000\000\003\000\000\000add\000\000\000\000' > corpus/kept_image/one
printf '00000000000000000000000000000007 waits-for-others 17 void add(int, int)\n00000000000000000000000000000007 ordered 18 scan\n' \
    > corpus/demotions/two
printf '\007[2026-11-15 10:00:00.000 Server 41] Client process 71 encountered a fatal GPU error.\n[x Control 40] Server 41 exited with status 1\n' \
    > corpus/mps_logs/fault
printf '# readers\nprometheus:$2b$04$9eovBu2ifo7pbLojN4okzO/LXRBRupjZPZV1dNA7e.OWyagu6.StC\n\000Basic cHJvbWV0aGV1czpvcGVuIHNlc2FtZQ==' \
    > corpus/password_file/one
# The settings, all ones.
{ printf '\000\000\000\060'; printf '\377%.0s' $(seq 48); } > corpus/card/settings
