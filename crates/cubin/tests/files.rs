//! Cubins taken apart and put together.

use cubin::file::{File, kind};
use cubin::kernel::{Description, Parameter};
use proptest::prelude::*;

const SM_80: &[u8] = include_bytes!("../test_data/sm_80.cubin");
const SM_90: &[u8] = include_bytes!("../test_data/sm_90.cubin");
const SM_90_ABI_7: &[u8] = include_bytes!("../test_data/sm_90-abi_7.cubin");
/// To be linked first, which is why its sections have other kinds.
const SM_90_RELOCATABLE: &[u8] = include_bytes!("../test_data/sm_90-relocatable.cubin");
const SM_100: &[u8] = include_bytes!("../test_data/sm_100.cubin");
const SM_100_TABLE: &[u8] = include_bytes!("../test_data/sm_100-table.cubin");
const LOADABLE: [&[u8]; 5] = [SM_80, SM_90, SM_90_ABI_7, SM_100, SM_100_TABLE];
const ALL: [&[u8]; 6] = [SM_80, SM_90, SM_90_ABI_7, SM_90_RELOCATABLE, SM_100, SM_100_TABLE];

fn read(bytes: &[u8]) -> File<'_> {
    File::read(bytes).expect("it is whole")
}

/// The sections' names and bytes.
fn contents(file: &File<'_>) -> Vec<(String, Vec<u8>)> {
    let sections = file.sections().iter();
    sections.map(|section| (section.name.to_owned(), section.data.to_vec())).collect()
}

/// A number of 8 bytes.
fn word(bytes: &[u8], at: u64) -> u64 {
    let at = usize::try_from(at).expect("it is a place in a file");
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("the slice has 8 bytes"))
}

#[test]
fn an_unchanged_file_comes_out_as_it_went_in() {
    for bytes in ALL {
        assert_eq!(read(bytes).write(), bytes);
        // As in a container, where files are padded.
        let padded = [bytes, &[0; 5]].concat();
        assert_eq!(read(&padded).write(), padded);
    }
}

#[test]
fn targets_abis_and_what_is_to_be_linked_are_told() {
    let told = LOADABLE.map(|bytes| (read(bytes).target().number, read(bytes).abi()));
    assert_eq!(told, [(80, 8), (90, 8), (90, 7), (100, 8), (100, 8)]);
    assert!(LOADABLE.into_iter().all(|bytes| !read(bytes).is_relocatable()));
    assert!(read(SM_90_RELOCATABLE).is_relocatable());
}

#[test]
fn memory_that_begins_as_zeros_has_a_size_but_no_bytes() {
    for bytes in [SM_90, SM_90_RELOCATABLE] {
        let file = read(bytes);
        let shared = file.find(".nv.shared.offset").expect("it has shared memory");
        let shared = &file.sections()[shared];
        assert!(shared.data.is_empty() && shared.size() >= 128, "{}", shared.size());
    }
}

#[test]
fn kernels_are_described_the_same_by_every_compiler() {
    for (bytes, base) in [(SM_80, 0x160), (SM_90, 0x210), (SM_90_ABI_7, 0x210), (SM_100, 0x380)] {
        let file = read(bytes);
        let kernels = file.kernels();
        let mut names: Vec<_> = kernels.iter().map(|kernel| kernel.name).collect();
        names.sort_unstable();
        assert_eq!(names, ["offset", "scale"]);
        let registers = file.register_counts().expect("its records are whole");
        for kernel in kernels {
            let sections = file.sections();
            assert_eq!(sections[kernel.text].name, format!(".text.{}", kernel.name));
            let info = &sections[kernel.info.expect("it has records")];
            let description = Description::read(&info.data).expect("they are whole");
            let parameter = |(ordinal, offset, size)| Parameter { ordinal, offset, size };
            let (parameters, size): (&[_], _) = match kernel.name {
                "scale" => (&[(0, 0, 8), (1, 8, 4), (2, 12, 4)], 16),
                _ => (&[(0, 0, 8), (1, 8, 4)], 12),
            };
            let parameters: Vec<_> = parameters.iter().copied().map(parameter).collect();
            assert_eq!(description.parameters, parameters);
            assert_eq!(description.parameter_bytes, Some(size));
            assert_eq!(description.parameter_base, Some(base));
            let barriers = (kernel.name == "offset" && file.abi() == 8).then_some(1);
            assert_eq!(description.barriers, barriers);
            let constants = &sections[kernel.constants.expect("it has parameters")];
            assert_eq!(constants.data.len(), usize::from(base + size));
            assert_eq!(kernel.shared.is_some(), kernel.name == "offset");
            let registers = registers.of(kernel.symbol).expect("they are counted");
            assert!((4..32).contains(&registers), "{registers}");
        }
    }
}

#[test]
fn relocations_name_what_a_kernel_uses() {
    let file = read(SM_100_TABLE);
    let addresses = file.find(".nv.constant4").expect("it has addresses");
    let relocations: Vec<_> = file.relocations_of(addresses).collect();
    let [relocation] = relocations[..] else { panic!("{relocations:?}") };
    assert_eq!(relocation.offset, 0);
    let symbol = file.symbols()[relocation.symbol];
    assert_eq!((symbol.name, symbol.size, symbol.is_object()), ("table", 16, true));
    assert_eq!(file.sections()[symbol.section].name, ".nv.global.init");
}

#[test]
fn what_is_behind_a_section_that_grew_moves() {
    for bytes in ALL {
        let mut file = read(bytes);
        let kernel = file.kernels()[0];
        let before = contents(&file);
        file.section_mut(kernel.text).data.to_mut().extend_from_slice(&[7; 200]);
        let length = file.sections()[kernel.text].size();
        file.resize_symbol(kernel.symbol, length);
        let written = file.write();

        let again = read(&written);
        assert_eq!(again.symbols()[kernel.symbol].size, length);
        for (index, (section, (name, data))) in again.sections().iter().zip(&before).enumerate() {
            assert_eq!(section.name, name);
            match index == kernel.text {
                true => assert_eq!(section.data[..], [&data[..], &[7; 200]].concat()),
                // The symbols differ in one size.
                false if section.kind == kind::SYMBOLS => assert_eq!(section.data.len(), data.len()),
                false => assert_eq!(section.data[..], data[..], "{name}"),
            }
        }
    }
}

/// Where the header of the segment with instructions is.
fn executable(bytes: &[u8]) -> u64 {
    let (at, count) = (word(bytes, 32), bytes[56]);
    let mut headers = (0..u64::from(count)).map(|index| at + 56 * index);
    headers.find(|at| word(bytes, *at) == 0x5_0000_0001).expect("instructions are mapped")
}

/// Segments are what a loader maps: the one with instructions must have all of them.
#[test]
fn segments_follow_their_sections() {
    for bytes in LOADABLE {
        let mut file = read(bytes);
        let kernel = file.kernels()[0];
        let executable = |bytes: &[u8]| {
            let header = executable(bytes);
            (word(bytes, header + 8), word(bytes, header + 32), word(bytes, header + 40))
        };
        let (start, length, memory) = executable(bytes);
        assert_eq!(length, memory);
        file.section_mut(kernel.text).data.to_mut().extend_from_slice(&[0; 256]);
        let written = file.write();
        assert_eq!(executable(&written), (start, length + 256, memory + 256));
        // The table of segments is one itself, and still begins where the file's header says.
        assert_eq!(word(&written, word(&written, 32) + 8), word(&written, 32));
    }
}

/// No compiler makes such a segment, but what could be read must be readable when it was written.
#[test]
fn a_segment_may_end_within_a_section() {
    let mut bytes = SM_90.to_vec();
    let length_at = executable(&bytes) + 32;
    let length = word(&bytes, length_at) - 8;
    let place = usize::try_from(length_at).expect("it is a place");
    bytes[place..place + 8].copy_from_slice(&length.to_le_bytes());
    let mut file = read(&bytes);
    let kernel = file.kernels()[0];
    file.section_mut(kernel.text).data.to_mut().extend_from_slice(&[0; 256]);
    let written = file.write();
    assert_eq!(word(&written, executable(&written) + 32), length + 256);
    assert_eq!(contents(&read(&written)), contents(&file));
}

#[test]
fn bytes_may_be_shared_but_not_overlap() {
    let file = read(SM_100_TABLE);
    let shared = file.sections().iter().filter(|section| section.is_shared());
    let shared: Vec<_> = shared.map(|section| section.name).collect();
    let names = [".nv.constant4", ".nv.global.init", ".nv.merc.nv.constant.pic", ".nv.merc.nv.global.init"];
    assert_eq!(shared, names);
    // A section that begins one byte early reaches into the one before it.
    let mut bytes = SM_90.to_vec();
    let sections_at = word(&bytes, 40);
    let kernel = read(SM_90).kernels()[0];
    let offset_at = usize::try_from(sections_at).expect("it is a place") + 64 * (kernel.text + 1) + 24;
    bytes[offset_at] -= 1;
    assert_eq!(File::read(&bytes).map(drop).expect_err("it overlaps").to_string(), OVERLAP);
}

const OVERLAP: &str = "the cubin is damaged: its sections overlap";

/// Whatever can be read can be written, and is then what it was.
fn reads_and_writes(bytes: &[u8]) {
    let Ok(file) = File::read(bytes) else { return };
    assert!(file.write() == bytes);
    let kept: usize = file.sections().iter().map(|section| section.name.len()).sum();
    assert!(kept <= bytes.len());
    for kernel in file.kernels() {
        let info = kernel.info.map(|info| Description::read(&file.sections()[info].data));
        let _ = info.transpose();
        let _ = file.relocations_of(kernel.text).count();
    }
    let _ = file.register_counts();
}

#[test]
fn damage_is_found_or_kept() {
    for bytes in ALL {
        let mut damaged = bytes.to_vec();
        for at in 0..bytes.len() {
            for value in [!bytes[at], bytes[at] ^ 0x01] {
                damaged[at] = value;
                reads_and_writes(&damaged);
            }
            damaged[at] = bytes[at];
        }
        for length in 0..bytes.len() {
            reads_and_writes(&bytes[..length]);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn several_bytes_changed(
        which in 0..ALL.len(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..40),
    ) {
        let mut bytes = ALL[which].to_vec();
        // Half of the changes go to headers, where numbers are.
        let headers = usize::try_from(word(&bytes, 40)).expect("it is a place");
        for (turn, (at, value)) in changes.into_iter().enumerate() {
            let first = if turn % 2 == 0 { headers } else { 0 };
            let at = first + at.index(bytes.len() - first);
            bytes[at] = value;
        }
        reads_and_writes(&bytes);
    }

    #[test]
    fn sections_of_any_length_survive(
        which in 0..ALL.len(),
        growths in prop::collection::vec((any::<prop::sample::Index>(), 0..700_usize), 0..8),
    ) {
        let mut file = read(ALL[which]);
        let reserved = |file: &File<'_>, index: usize| {
            let section = &file.sections()[index];
            // Names and symbols are read by their offsets, which stay.
            section.is_shared() || section.data.is_empty() || section.kind == kind::SYMBOLS
        };
        for (index, length) in growths {
            let index = index.index(file.sections().len());
            if !reserved(&file, index) {
                file.section_mut(index).data.to_mut().extend(std::iter::repeat_n(9, length));
            }
        }
        let written = file.write();
        let again = read(&written);
        prop_assert_eq!(contents(&again), contents(&file));
        prop_assert_eq!(again.write(), written);
    }
}
