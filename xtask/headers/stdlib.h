/* The C library as far as the CUDA headers use it: one type. With it the output of `cargo xtask gen` does
   not depend on the machine's own headers. */
#pragma once
#include <stddef.h>
