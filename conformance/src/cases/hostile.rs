//! Images that no compiler wrote: the driver says no, and the process lives on.

use crate::answer::Code;
use crate::cases::modules::{FOREIGN_CUBIN, LZ4, RAW, ZSTD};
use crate::context::Context;
use crate::numbers::Random;
use crate::suite::Case;
use crate::{args, compare, source};
use anyhow::{Context as _, Result, ensure};
use std::ptr;

pub const CASES: &[Case] = &[
    Case::new("hostile/ptx_with_errors", ptx_errors),
    Case::new("hostile/ptx_truncated", ptx_truncated),
    Case::new("hostile/ptx_of_the_future", ptx_future),
    Case::new("hostile/ptx_deep_and_large", ptx_deep),
    Case::new("hostile/not_an_image", not_an_image),
    Case::new("hostile/fatbin_refusals", fatbin_refusals),
    Case::new("hostile/fatbin_headers", fatbin_headers).beyond_the_card(),
    Case::new("hostile/fatbin_corrupt_bodies", fatbin_bodies).beyond_the_card(),
    Case::new("hostile/elf_headers", elf_headers).beyond_the_card(),
];

/// What a driver may call a bad image. Which of these it is depends on how far it read.
const BAD: &[Code] = &[
    Code::INVALID_IMAGE,
    Code::INVALID_PTX,
    Code::UNSUPPORTED_PTX_VERSION,
    Code::NO_BINARY_FOR_GPU,
    Code::INVALID_SOURCE,
    Code::INVALID_VALUE,
    // What cannot be unpacked.
    Code::UNKNOWN,
];

/// Loads an image that must be refused; the bytes past its end are zeros, as far as a careless reader may go.
fn refused(context: &Context<'_>, image: &[u8], wants: &[Code]) -> Result<()> {
    let mut padded = image.to_vec();
    padded.extend([0u8; 4096]);
    let mut module = ptr::null_mut();
    let answer = context.cuModuleLoadData(&mut module, padded.as_ptr().cast());
    if answer.code == Code::SUCCESS {
        context.cuModuleUnload(module).ok()?;
    }
    answer.one_of(wants)
}

/// The proof that nothing was harmed.
fn still_works(context: &Context<'_>) -> Result<()> {
    let module = crate::module::Module::load(context, source!("vector_add").usual())?;
    let (a, b, c) = (context.buffer(&[1.0f32])?, context.buffer(&[2.0f32])?, context.zeros::<f32>(1)?);
    module.function("vector_add")?.run(1, 32, args![&a, &b, &c, 1i32])?;
    compare::equal(&c.read()?, &[3.0])
}

fn ptx_errors(context: &Context<'_>) -> Result<()> {
    let good = source!("vector_add").usual();
    let edits: &[(&str, &str)] = &[
        ("ld.param.u64", "ld.param.u65"),
        ("%ctaid.x", "%ctaid.q"),
        ("@%p1 bra", "@%p1 bra $nowhere; bra"),
        ("st.global.f32", "st.global.f32.wrong"),
        ("ret;", "ret"),
        (".address_size 64", ".address_size 63"),
        (".target sm_90", ".target sm_nonsense"),
        ("mad.lo.s32", "mad.lo.s32 %unknown,"),
        (".reg .b32", ".reg .b33"),
        ("{", "{{"),
        ("vector_add_param_3\n)", "vector_add_param_0\n)"),
        ("cvta.to.global.u64", "cvta.to.moon.u64"),
    ];
    for (from, to) in edits {
        ensure!(good.contains(from), "the kernel no longer contains {from:?}");
        let bad = good.replacen(from, to, 1);
        refused(context, bad.as_bytes(), &[Code::INVALID_PTX]).with_context(|| format!("{from} -> {to}"))?;
    }
    still_works(context)
}

fn ptx_truncated(context: &Context<'_>) -> Result<()> {
    let good = source!("reduction").usual();
    let body = good.find("{").expect("a kernel has a body");
    let end = good.rfind("}").expect("a kernel has an end");
    let mut random = Random::new(31);
    for _ in 0..40 {
        let cut = body + 1 + random.below((end - body - 1) as u32) as usize;
        // A cut between two functions leaves a whole text.
        let rest = &good[..cut];
        if rest.matches('{').count() == rest.matches('}').count() {
            continue;
        }
        refused(context, rest.as_bytes(), &[Code::INVALID_PTX]).with_context(|| format!("cut at {cut}"))?;
    }
    still_works(context)
}

fn ptx_future(context: &Context<'_>) -> Result<()> {
    let good = source!("vector_add").usual();
    for version in ["9.1", "9.9", "10.0", "99.0"] {
        let newer = good.replacen(".version 9.0", &format!(".version {version}"), 1);
        ensure!(newer != good);
        refused(context, newer.as_bytes(), &[Code::UNSUPPORTED_PTX_VERSION])?;
    }
    let nowhere = good.replacen(".target sm_90", ".target sm_103", 1);
    refused(context, nowhere.as_bytes(), &[Code::INVALID_PTX])?;
    still_works(context)
}

fn ptx_deep(context: &Context<'_>) -> Result<()> {
    let head = ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k()\n";
    let nested = format!("{head}{}{}", "{".repeat(20_000), "ret;".repeat(3));
    refused(context, nested.as_bytes(), BAD).context("scopes without an end")?;
    let sums = "1+".repeat(50_000);
    let long = format!("{head}{{.reg .b32 %r<2>; mov.u32 %r1, ({sums}; ret;}}");
    refused(context, long.as_bytes(), BAD).context("an expression without an end")?;
    let huge = format!("{head}{{.local .b8 x[99999999999999999999]; ret;}}");
    refused(context, huge.as_bytes(), BAD).context("an array larger than numbers")?;
    let registers = format!("{head}{{.reg .b32 %r<4000000000>; mov.u32 %r1, %q; ret;}}");
    let too_much = [BAD, &[Code::OUT_OF_MEMORY]].concat();
    refused(context, registers.as_bytes(), &too_much).context("more registers than memory")?;
    still_works(context)
}

fn not_an_image(context: &Context<'_>) -> Result<()> {
    let mut random = Random::new(32);
    let noise = random.many(3000, |r| r.u32() as u8 | 0x80);
    for (what, image) in [
        ("empty", &b""[..]),
        ("a word", b"hello"),
        ("zeros", &[0u8; 64]),
        ("noise", &noise),
        ("only a header", b".version 7.0\n"),
        ("another ELF", b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x03\0\x3e\0\x01\0\0\0"),
    ] {
        refused(context, image, BAD).context(what)?;
    }
    still_works(context)
}

fn fatbin_refusals(context: &Context<'_>) -> Result<()> {
    let changed = |at: usize, bytes: &[u8]| {
        let mut image = ZSTD.to_vec();
        image[at..at + bytes.len()].copy_from_slice(bytes);
        image
    };
    refused(context, &changed(0, &[0x51]), &[Code::INVALID_IMAGE]).context("another magic number")?;
    refused(context, &changed(4, &[2]), &[Code::INVALID_IMAGE]).context("another version")?;
    refused(context, &changed(16, &[7]), &[Code::NO_BINARY_FOR_GPU]).context("an entry of unknown kind")?;
    refused(context, &changed(8, &[0; 8]), &[Code::NO_BINARY_FOR_GPU]).context("no entries at all")?;
    // The length after unpacking, too small and too large.
    let claim = u64::from_le_bytes(ZSTD[72..80].try_into().expect("eight bytes"));
    for wrong in [claim - 100, claim + 100] {
        refused(context, &changed(72, &wrong.to_le_bytes()), &[Code::UNKNOWN])
            .with_context(|| format!("{wrong} bytes promised, {claim} packed"))?;
    }
    still_works(context)
}

fn fatbin_headers(context: &Context<'_>) -> Result<()> {
    // Each field of the two headers, with the values that break careless arithmetic.
    for (at, width) in [(4, 2), (6, 2), (8, 8), (16, 2), (20, 4), (24, 8), (32, 4), (36, 4), (44, 4), (72, 8)]
    {
        for value in [0u64, 1, 0x7fff_ffff, 0xffff_ffff, 0xffff_ffff_ffff_fff0, u64::MAX] {
            for original in [RAW, ZSTD, LZ4] {
                let mut image = original.to_vec();
                image[at..at + width].copy_from_slice(&value.to_le_bytes()[..width]);
                let mut module = ptr::null_mut();
                image.extend([0u8; 4096]);
                // Some values mean nothing to a driver, so acceptance is no fault; a crash would be.
                let answer = context.cuModuleLoadData(&mut module, image.as_ptr().cast());
                if answer.code == Code::SUCCESS {
                    context.cuModuleUnload(module).ok()?;
                } else {
                    answer.one_of(BAD).with_context(|| format!("{value:#x} at byte {at}"))?;
                }
            }
        }
    }
    still_works(context)
}

fn fatbin_bodies(context: &Context<'_>) -> Result<()> {
    let mut random = Random::new(33);
    for original in [ZSTD, LZ4] {
        for _ in 0..40 {
            let mut image = original.to_vec();
            let at = 96 + random.below((image.len() - 96) as u32) as usize;
            image[at] ^= 1 << random.below(8);
            image.extend([0u8; 4096]);
            let mut module = ptr::null_mut();
            let answer = context.cuModuleLoadData(&mut module, image.as_ptr().cast());
            if answer.code == Code::SUCCESS {
                context.cuModuleUnload(module).ok()?;
            } else {
                answer.one_of(BAD).with_context(|| format!("a flipped bit in byte {at}"))?;
            }
        }
    }
    still_works(context)
}

fn elf_headers(context: &Context<'_>) -> Result<()> {
    let mut random = Random::new(34);
    // Program and section header offsets, counts and indices, then bits anywhere in the header.
    for (at, width) in [(32, 8), (40, 8), (52, 2), (54, 2), (56, 2), (58, 2), (60, 2), (62, 2)] {
        for value in [u64::MAX, 0x7fff_ffff_ffff_ffff, 0xffff] {
            let mut image = FOREIGN_CUBIN.to_vec();
            image[at..at + width].copy_from_slice(&value.to_le_bytes()[..width]);
            refused(context, &image, BAD).with_context(|| format!("{value:#x} at byte {at}"))?;
        }
    }
    for _ in 0..20 {
        let mut image = FOREIGN_CUBIN.to_vec();
        let at = 16 + random.below(48) as usize;
        image[at] ^= 1 << random.below(8);
        refused(context, &image, BAD).with_context(|| format!("a flipped bit in byte {at}"))?;
    }
    still_works(context)
}
