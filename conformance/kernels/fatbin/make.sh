#!/bin/sh
# Makes the fat binaries of this folder from stencil.cu, with the nvcc that `cargo xtask kernels` uses: NVCC=path ./make.sh
set -eu
cd "$(dirname "$0")/.."
ptx=arch=compute_80,code=compute_80
"$NVCC" -fatbin -gencode $ptx --compress-mode=none stencil.cu -o fatbin/stencil.raw.fatbin
"$NVCC" -fatbin -gencode $ptx --compress-mode=size stencil.cu -o fatbin/stencil.zstd.fatbin
"$NVCC" -fatbin -gencode $ptx --compress-mode=speed stencil.cu -o fatbin/stencil.lz4.fatbin
# Machine code for another generation beside PTX, and alone: the first can be loaded, the others cannot.
"$NVCC" -fatbin -gencode arch=compute_75,code=[sm_75,compute_75] -gencode $ptx stencil.cu -o fatbin/stencil.several.fatbin
"$NVCC" -fatbin -gencode arch=compute_75,code=sm_75 stencil.cu -o fatbin/stencil.foreign.fatbin
"$NVCC" -cubin -arch=sm_75 stencil.cu -o fatbin/stencil.foreign.cubin
