//! Arithmetic, by family: each file turns an operation and its type into the function that does it.
//!
//! A function is written once, as a closure over the lanes of a row, and compiled twice: for any processor,
//! and for one with AVX2 and FMA. Lowering runs on the machine that executes, so it picks the right one.

pub(crate) mod bits;
pub(crate) mod carry;
pub(crate) mod compare;
pub(crate) mod convert;
pub(crate) mod float;
pub(crate) mod half;
pub(crate) mod integer;
pub(crate) mod moves;
pub(crate) mod video;

/// Whether the processor has what the second version needs.
#[cfg(target_arch = "x86_64")]
pub(crate) fn fast() -> bool {
    std::arch::is_x86_feature_detected!("avx2") && std::arch::is_x86_feature_detected!("fma")
}

/// Makes an [`Execute`](crate::isa::Execute) of a function that is always inlined.
#[cfg(target_arch = "x86_64")]
macro_rules! twice {
    ($body:path) => {{
        fn plain(
            m: &mut crate::simt::Machine<'_>,
            i: &crate::isa::Instruction,
            mask: u32,
        ) -> crate::simt::Flow {
            $body(m, i, mask)
        }
        #[target_feature(enable = "avx2,fma")]
        fn fast(
            m: &mut crate::simt::Machine<'_>,
            i: &crate::isa::Instruction,
            mask: u32,
        ) -> crate::simt::Flow {
            $body(m, i, mask)
        }
        if crate::simt::ops::fast() { fast as crate::isa::Execute } else { plain as crate::isa::Execute }
    }};
}

#[cfg(not(target_arch = "x86_64"))]
macro_rules! twice {
    ($body:path) => {{
        fn plain(
            m: &mut crate::simt::Machine<'_>,
            i: &crate::isa::Instruction,
            mask: u32,
        ) -> crate::simt::Flow {
            $body(m, i, mask)
        }
        plain as crate::isa::Execute
    }};
}

/// `d = f(a)`, `d = f(a, b)`, `d = f(a, b, c)` over lanes. The closure's types say how wide the rows are.
macro_rules! lanes {
    ($map:ident, $f:expr) => {{
        #[inline(always)]
        fn body(
            m: &mut crate::simt::Machine<'_>,
            i: &crate::isa::Instruction,
            mask: u32,
        ) -> crate::simt::Flow {
            m.$map(i, mask, $f);
            crate::simt::Flow::Next
        }
        crate::simt::ops::twice!(body)
    }};
}

macro_rules! lanes1 {
    ($f:expr) => {
        crate::simt::ops::lanes!(map1, $f)
    };
}

macro_rules! lanes2 {
    ($f:expr) => {
        crate::simt::ops::lanes!(map2, $f)
    };
}

macro_rules! lanes3 {
    ($f:expr) => {
        crate::simt::ops::lanes!(map3, $f)
    };
}

/// As `lanes2`, with `aux` of the instruction as a further argument.
macro_rules! lanes_aux {
    ($map:ident, |$aux:ident| $f:expr) => {{
        #[inline(always)]
        fn body(
            m: &mut crate::simt::Machine<'_>,
            i: &crate::isa::Instruction,
            mask: u32,
        ) -> crate::simt::Flow {
            let $aux = i.aux;
            m.$map(i, mask, $f);
            crate::simt::Flow::Next
        }
        crate::simt::ops::twice!(body)
    }};
}

pub(crate) use {lanes, lanes_aux, lanes1, lanes2, lanes3, twice};
