//! Rewritten cubins, whole and damaged: a kernel has all of its prologue, or is what it was.

use cubin::File;
use cubin::file::kind;
use cubin::kernel::{Description, Kernel};
use guard::machine::Generation;
use guard::prologue::for_architecture;
use guard::{Control, Reason, Rewritten, Rule, Verdict, rewrite_cubin};
use proptest::prelude::*;

const OUTSIDE_80: &[u8] = include_bytes!("../test_data/outside.sm_80.cubin");
const OUTSIDE_90: &[u8] = include_bytes!("../test_data/outside.sm_90.cubin");
const OUTSIDE_100: &[u8] = include_bytes!("../test_data/outside.sm_100.cubin");
const UNLINKED: &[u8] = include_bytes!("../test_data/near.sm_90.cubin");
const LINKED: &[u8] = include_bytes!("../test_data/linked.sm_90.cubin");
const EARLY: &[u8] = include_bytes!("../test_data/early.sm_90.cubin");
const SMALL_80: &[u8] = include_bytes!("../../cubin/test_data/sm_80.cubin");
const SMALL_90: &[u8] = include_bytes!("../../cubin/test_data/sm_90.cubin");
const SMALL_100: &[u8] = include_bytes!("../../cubin/test_data/sm_100.cubin");
/// Of the older ABI, in which other records count barriers.
const ABI_7: &[u8] = include_bytes!("../../cubin/test_data/sm_90-abi_7.cubin");
const ALL: [&[u8]; 10] =
    [OUTSIDE_80, OUTSIDE_90, OUTSIDE_100, UNLINKED, LINKED, EARLY, SMALL_80, SMALL_90, SMALL_100, ABI_7];
const SMALL: [&[u8]; 3] = [SMALL_80, SMALL_90, ABI_7];

const PLAIN: Verdict = Verdict::Guard(Rule::Plain);

fn rewritten(bytes: &[u8]) -> Rewritten {
    rewrite_cubin(bytes).expect("it is whole")
}

fn verdicts(bytes: &[u8]) -> Vec<(String, Verdict)> {
    let kernels = rewritten(bytes).kernels;
    let mut verdicts: Vec<_> = kernels.into_iter().map(|kernel| (kernel.name, kernel.verdict)).collect();
    verdicts.sort_by(|one, other| one.0.cmp(&other.0));
    verdicts
}

/// Everything a file says of one kernel.
struct Told<'a> {
    text: &'a [u8],
    info: &'a [u8],
    constants: &'a [u8],
    registers: Option<u32>,
    symbol_size: u64,
    text_flags: u64,
    text_info: u32,
}

fn told<'a>(file: &'a File<'_>, kernel: &Kernel<'_>) -> Told<'a> {
    let data = |index: Option<usize>| index.map_or(&[][..], |index| &file.sections()[index].data);
    let text = &file.sections()[kernel.text];
    Told {
        text: data(Some(kernel.text)),
        info: data(kernel.info),
        constants: data(kernel.constants),
        registers: file.register_counts().ok().and_then(|registers| registers.of(kernel.symbol)),
        symbol_size: file.symbols()[kernel.symbol].size,
        text_flags: text.flags,
        text_info: text.info,
    }
}

fn assert_untouched(old: &Told<'_>, new: &Told<'_>) {
    assert!(old.text == new.text && old.info == new.info && old.constants == new.constants);
    assert_eq!((old.registers, old.symbol_size), (new.registers, new.symbol_size));
    assert_eq!((old.text_flags, old.text_info), (new.text_flags, new.text_info));
}

/// An instruction as it is to be where kernels let nobody begin before they have ended.
fn held_back(generation: Generation, word: &[u8]) -> Vec<u8> {
    let mut word = word.to_vec();
    if generation == Generation::Hopper && (word[0], word[1] & 0xf) == (0x2d, 0x8) {
        (word[0], word[1]) = (0x18, word[1] & 0xf0 | 0x9);
    }
    word
}

fn assert_complete(file: &File<'_>, old: &Told<'_>, new: &Told<'_>, control_offset: u32) {
    let number = file.target().number;
    let prologue = for_architecture(number).expect("it was rewritten with one");
    let generation = Generation::of(number).expect("its encodings are known");

    let first =
        [&new.text[..8], &new.text[8..16]].map(|half| u64::from_le_bytes(half.try_into().expect("8")));
    let start = old.text.len().next_multiple_of(128);
    assert_eq!(generation.branch_target(0, first), Some(start as u64), "it begins with its prologue");
    let same = |(old, new): (&[u8], &[u8])| new == held_back(generation, old);
    let mut both = old.text.chunks_exact(16).zip(new.text.chunks_exact(16)).skip(1);
    assert!(both.all(same), "nothing of it moved");
    assert!(new.text.len() >= start + prologue.len() * 16);
    assert_eq!(new.symbol_size, new.text.len() as u64);

    let before = Description::read(old.info).expect("it was understood");
    let after = Description::read(new.info).expect("it is understood");
    let (last, others) = after.parameters.split_last().expect("it has the control words");
    assert_eq!(others, before.parameters);
    assert_eq!((u32::from(last.offset), last.size), (control_offset, Control::SIZE));
    let bytes = control_offset + Control::SIZE;
    assert_eq!(after.parameter_bytes.map(u32::from), Some(bytes));
    assert_eq!(new.constants.len(), (prologue.parameter_base + bytes) as usize);
    assert!(new.constants.starts_with(old.constants));

    assert!(new.registers >= Some(prologue.registers) && new.registers >= old.registers);
    assert!(new.text_info >> 24 == 0 || new.registers <= Some(new.text_info >> 24));
    let barriers = match file.abi() {
        ..8 => (new.text_flags >> 20 & 0x7f) as u32,
        _ => after.barriers.unwrap_or(0).into(),
    };
    assert!(barriers >= prologue.barriers && barriers >= before.barriers.unwrap_or(0).into());
}

/// Every kernel is complete or untouched, and so is everything else.
fn assert_all_or_nothing(bytes: &[u8]) -> Option<Rewritten> {
    let rewritten = rewrite_cubin(bytes).ok()?;
    let old = File::read(bytes).expect("it was rewritten");
    let new = File::read(&rewritten.image).expect("what is rewritten can be read");
    let (before, after) = (old.kernels(), new.kernels());
    assert_eq!(before.len(), rewritten.kernels.len());
    let mut changed = vec![false; old.sections().len()];
    for ((one, other), kernel) in before.iter().zip(&after).zip(&rewritten.kernels) {
        assert_eq!((one.name, one.text), (other.name, other.text));
        let (told_before, told_after) = (told(&old, one), told(&new, other));
        match kernel.verdict {
            Verdict::Guard(_) => {
                assert_complete(&new, &told_before, &told_after, kernel.control_offset);
                [Some(one.text), one.info, one.constants]
                    .iter()
                    .flatten()
                    .for_each(|&part| changed[part] = true);
            }
            Verdict::Refuse(_) => assert_untouched(&told_before, &told_after),
        }
    }
    for ((one, other), changed) in old.sections().iter().zip(new.sections()).zip(changed) {
        assert_eq!(one.name, other.name);
        // What these say of kernels was looked at above.
        let about_kernels = one.kind == kind::SYMBOLS || one.name == ".nv.info";
        let kept = if about_kernels { one.data.len() == other.data.len() } else { one.data == other.data };
        assert!(changed || kept, "{}", one.name);
    }
    if rewritten.kernels.iter().all(|kernel| matches!(kernel.verdict, Verdict::Refuse(_))) {
        assert!(rewritten.image == bytes, "nothing was to be done");
    }
    Some(rewritten)
}

#[test]
fn kernels_are_rewritten_wholly_or_not_at_all() {
    for bytes in ALL {
        assert_all_or_nothing(bytes).expect("it is whole");
    }
}

#[test]
fn what_nobody_writes_may_be_read() {
    let refused = Verdict::Refuse(Reason::TouchesModuleMemory);
    for (bytes, large) in
        [(OUTSIDE_80, Verdict::Refuse(Reason::ParametersTooLarge)), (OUTSIDE_90, PLAIN), (OUTSIDE_100, PLAIN)]
    {
        let expected = [
            ("asserts", PLAIN),
            ("large", large),
            ("odd", PLAIN),
            ("prints", PLAIN),
            ("prints_and_counts", refused),
            ("sine", PLAIN),
        ];
        assert_eq!(verdicts(bytes), expected.map(|(name, verdict)| (name.to_owned(), verdict)));
    }
}

#[test]
fn what_functions_elsewhere_do_counts() {
    let refused = Verdict::Refuse(Reason::TouchesModuleMemory);
    let expected = [
        ("adds", Verdict::Guard(Rule::Ordered)),
        ("calls", refused),
        ("counts", refused),
        ("launches", Verdict::Refuse(Reason::DynamicParallelism)),
        ("nothing", PLAIN),
    ];
    assert_eq!(verdicts(LINKED), expected.map(|(name, verdict)| (name.to_owned(), verdict)));
}

#[test]
fn what_is_to_be_linked_first_is_left() {
    let rewritten = rewritten(UNLINKED);
    assert_eq!(rewritten.image, UNLINKED);
    assert_eq!(rewritten.kernels.len(), 5);
    let verdicts = rewritten.kernels.iter().map(|kernel| kernel.verdict);
    assert!(verdicts.into_iter().all(|verdict| verdict == Verdict::Refuse(Reason::Relocatable)));
}

#[test]
fn architectures_without_a_prologue_are_left() {
    let mut bytes = SMALL_90.to_vec();
    // The second byte of the flags.
    bytes[49] = 75;
    let rewritten = rewritten(&bytes);
    assert_eq!(rewritten.image, bytes);
    let unknown = Verdict::Refuse(Reason::UnknownArchitecture);
    assert!(rewritten.kernels.iter().all(|kernel| kernel.verdict == unknown));
}

/// A function in a section of its own stays as it is. So what calls it may let the next launch begin early, and in its file nobody
/// is sure who does.
#[test]
fn launches_overlap_where_nobody_is_let_begin_early() {
    let overlap = |bytes: &[u8]| {
        let kernels = rewritten(bytes).kernels;
        let guarded = kernels.iter().filter(|kernel| matches!(kernel.verdict, Verdict::Guard(_)));
        let mut overlap: Vec<bool> = guarded.map(|kernel| kernel.overlaps).collect();
        overlap.dedup();
        assert!(kernels.iter().all(|kernel| matches!(kernel.verdict, Verdict::Guard(_)) || !kernel.overlaps));
        overlap
    };
    for bytes in [OUTSIDE_90, OUTSIDE_100, LINKED, SMALL_90, SMALL_100, ABI_7] {
        assert_eq!(overlap(bytes), [true]);
    }
    assert_eq!(overlap(EARLY), [false]);
    for bytes in [OUTSIDE_80, SMALL_80] {
        assert_eq!(overlap(bytes), [false]);
    }
}

#[test]
fn control_words_lie_behind_the_parameters() {
    let kernels = rewritten(OUTSIDE_90).kernels;
    let offset = |name: &str| {
        let kernel = kernels.iter().find(|kernel| kernel.name == name).expect("it is there");
        (kernel.parameters.len(), kernel.control_offset)
    };
    assert_eq!(offset("odd"), (3, 8));
    assert_eq!(offset("sine"), (2, 16));
    assert_eq!(offset("large"), (2, 5008));
    assert_eq!(offset("prints_and_counts"), (1, 0));
}

#[test]
fn every_damaged_byte_leaves_kernels_whole() {
    for bytes in SMALL {
        let mut damaged = bytes.to_vec();
        for at in 0..bytes.len() {
            damaged[at] = !bytes[at];
            assert_all_or_nothing(&damaged);
            damaged[at] = bytes[at] ^ 1;
            assert_all_or_nothing(&damaged);
            damaged[at] = bytes[at];
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn damage_leaves_kernels_whole(
        which in 0..ALL.len(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..12),
    ) {
        let mut bytes = ALL[which].to_vec();
        // Half of the changes go to headers, where a little changes much.
        let headers = u64::from_le_bytes(bytes[40..48].try_into().expect("8 bytes")) as usize;
        for (turn, (at, value)) in changes.into_iter().enumerate() {
            let first = if turn % 2 == 0 { headers } else { 0 };
            let at = first + at.index(bytes.len() - first);
            bytes[at] = value;
        }
        assert_all_or_nothing(&bytes);
    }

    #[test]
    fn any_bytes_are_refused_or_kept(rest in prop::collection::vec(any::<u8>(), 0..600)) {
        let bytes = [&SMALL_90[..20], &rest].concat();
        assert_all_or_nothing(&bytes);
    }
}
