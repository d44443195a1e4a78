//! Real images, whole and damaged.

use cubin::fatbin::{self, Compression, container_length};
use cubin::{Cubin, Entry, Error, Fatbin, Image, Kind};
use std::ops::Range;

const RAW: &[u8] = include_bytes!("../test_data/raw.fatbin");
const ZSTD: &[u8] = include_bytes!("../test_data/zstd.fatbin");
const ZSTD_ALL: &[u8] = include_bytes!("../test_data/zstd-all.fatbin");
const LZ4: &[u8] = include_bytes!("../test_data/lz4.fatbin");
const VARIANTS: &[u8] = include_bytes!("../test_data/variants.fatbin");
const SM_80: &[u8] = include_bytes!("../test_data/sm_80.cubin");
const SM_90: &[u8] = include_bytes!("../test_data/sm_90.cubin");
const ALL: [&[u8]; 7] = [RAW, ZSTD, ZSTD_ALL, LZ4, VARIANTS, SM_80, SM_90];

/// Everything there is to do with an image; what it gives must keep its promises.
fn use_all(bytes: &[u8]) -> Result<(), Error> {
    use_touched(bytes, 0..bytes.len())
}

/// The same, but of a container only the entries in which bytes were touched.
fn use_touched(bytes: &[u8], touched: Range<usize>) -> Result<(), Error> {
    match Image::read(bytes)? {
        Image::Ptx(text) => assert!(text.is_ascii()),
        Image::Cubin(cubin) => {
            let names: usize = cubin.kernels.iter().map(|name| name.len()).sum();
            assert!(names <= bytes.len());
        }
        Image::Fatbin(fatbin) => {
            let _ = (fatbin.best_ptx(90), fatbin.best_cubin(90));
            assert!(fatbin.to_string().len() < 2000);
            let next = fatbin.entries.iter().skip(1).map(|entry| entry.offset);
            let ends = next.chain([bytes.len()]);
            for (entry, end) in fatbin.entries.iter().zip(ends) {
                if entry.offset < touched.end && touched.start < end {
                    use_entry(entry)?;
                }
            }
        }
    }
    Ok(())
}

fn use_entry(entry: &Entry<'_>) -> Result<(), Error> {
    let payload = entry.payload.len() as u64;
    let data = entry.data()?;
    assert!(data.len() as u64 <= fatbin::decompressed_limit(entry.compression, payload));
    match entry.kind {
        Kind::Elf => Cubin::read(&data).map(drop),
        _ => entry.text().map(drop),
    }
}

#[test]
fn every_compression_gives_the_same_images() {
    let raw = Fatbin::read(RAW).expect("it is whole");
    for (bytes, ptx, elf) in [
        (RAW, Compression::None, Compression::None),
        (ZSTD, Compression::Zstd, Compression::None),
        (ZSTD_ALL, Compression::Zstd, Compression::Zstd),
        (LZ4, Compression::Lz4, Compression::None),
    ] {
        let fatbin = Fatbin::read(bytes).expect("it is whole");
        assert_eq!(fatbin.to_string(), "PTX for compute_80, machine code for sm_90, PTX for compute_90");
        let used = fatbin.entries.iter().map(|entry| entry.compression);
        assert_eq!(used.collect::<Vec<_>>(), [ptx, elf, ptx]);
        for (entry, raw) in fatbin.entries.iter().zip(&raw.entries) {
            assert_eq!(entry.version, raw.version);
            match entry.kind {
                Kind::Ptx => assert_eq!(entry.text(), raw.text()),
                _ => assert_eq!(entry.data(), raw.data()),
            }
        }
    }
    let text = raw.entries[0].text().expect("it is PTX");
    assert!(text.trim_start().starts_with(".version 9.0\n.target sm_80\n"));
    assert_eq!(raw.entries[0].version, (9, 0));
    assert_eq!(raw.entries[1].data().expect("it is whole"), SM_90);
}

#[test]
fn variants_options_and_names_are_told() {
    let fatbin = Fatbin::read(VARIANTS).expect("it is whole");
    assert_eq!(fatbin.to_string(), "machine code for sm_90a, PTX for compute_90a, PTX for compute_100f");
    let ptx = &fatbin.entries[1];
    assert_eq!(ptx.name, b"kernels.cu");
    assert_eq!(ptx.options.trim_ascii(), b"-O2  --generate-line-info");
    assert_eq!(fatbin.entries[0].options, b"");
}

#[test]
fn the_best_ptx_is_the_newest_that_fits() {
    let best = |bytes, capability| {
        let fatbin = Fatbin::read(bytes).expect("it is whole");
        fatbin.best_ptx(capability).map(ToString::to_string)
    };
    assert_eq!(best(ZSTD, 75), None);
    assert_eq!(best(ZSTD, 89).as_deref(), Some("PTX for compute_80"));
    assert_eq!(best(ZSTD, 90).as_deref(), Some("PTX for compute_90"));
    assert_eq!(best(ZSTD, 120).as_deref(), Some("PTX for compute_90"));
    assert_eq!(best(VARIANTS, 90).as_deref(), Some("PTX for compute_90a"));
    assert_eq!(best(VARIANTS, 103).as_deref(), Some("PTX for compute_100f"));
}

#[test]
fn the_best_machine_code_is_of_the_devices_own_generation() {
    fn best(bytes: &[u8], capability: u32) -> Option<String> {
        let fatbin = Fatbin::read(bytes).expect("it is whole");
        fatbin.best_cubin(capability).map(ToString::to_string)
    }
    assert_eq!(best(ZSTD, 90).as_deref(), Some("machine code for sm_90"));
    assert_eq!(best(ZSTD, 80), None, "what is above the device does not run on it");
    assert_eq!(best(ZSTD, 100), None, "nor does another generation's");
    // One container with the entries of two: the code for the very device comes first, wherever it stands.
    for [first, second] in [[ZSTD, VARIANTS], [VARIANTS, ZSTD]] {
        let entries = [&first[16..], &second[16..]].concat();
        let both = [&first[..8], &(entries.len() as u64).to_le_bytes(), &entries].concat();
        assert_eq!(best(&both, 90).as_deref(), Some("machine code for sm_90a"));
    }
}

#[test]
fn a_header_tells_the_length() {
    for bytes in [RAW, ZSTD, ZSTD_ALL, LZ4, VARIANTS] {
        let header = bytes.first_chunk().expect("it has a header");
        assert_eq!(container_length(header), Ok(bytes.len() as u64));
    }
    let mut header = *RAW.first_chunk().expect("it has a header");
    header[8..].fill(0xff);
    assert!(matches!(container_length(&header), Err(Error::Field { .. })));
}

#[test]
fn containers_may_stand_in_a_row() {
    let row = [RAW, LZ4, ZSTD].concat();
    let entries = |bytes: &[u8]| -> Vec<_> {
        let containers = Fatbin::read_all(bytes);
        containers.map(|c| c.map(|c| c.entries.len())).collect()
    };
    assert_eq!(entries(&row), [Ok(3), Ok(3), Ok(3)]);
    let broken = [RAW, b"\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", ZSTD].concat();
    assert_eq!(entries(&broken), [Ok(3), Err(Error::Unrecognised)]);
}

#[test]
fn cubins_name_their_target_and_kernels() {
    for (bytes, number) in [(SM_80, 80), (SM_90, 90)] {
        let cubin = Cubin::read(bytes).expect("it is whole");
        assert_eq!((cubin.target.number, cubin.abi), (number, 8));
        assert_eq!(cubin.kernels, ["offset", "scale"]);
    }
    // CUDA 12 keeps the number in another byte.
    let mut old = SM_90.to_vec();
    old[8] = 7;
    old[48..52].copy_from_slice(&0x005a_0d5a_u32.to_le_bytes());
    let cubin = Cubin::read(&old).expect("it is whole");
    assert_eq!((cubin.target.number, cubin.abi), (90, 7));

    let mut host = SM_90.to_vec();
    host[18] = 62;
    assert_eq!(Cubin::read(&host).map(drop), Err(Error::Machine(62)));
}

/// Wrong claims about a good zstd entry: each is found out, and says where.
#[test]
fn claims_are_checked() {
    let entry = 16;
    let claim = |value: u64| {
        let mut bytes = ZSTD.to_vec();
        bytes[entry + 56..entry + 64].copy_from_slice(&value.to_le_bytes());
        let fatbin = Fatbin::read(&bytes).expect("the container is whole");
        fatbin.entries[0].data().map(drop)
    };
    let fatbin = Fatbin::read(ZSTD).expect("it is whole");
    let size = fatbin.entries[0].data().expect("it is whole").len() as u64;
    assert_eq!(claim(size), Ok(()));
    let offset = entry;
    let (claimed, actual) = (size + 1, size);
    assert_eq!(claim(size + 1), Err(Error::Size { offset, claimed, actual }));
    assert!(matches!(claim(size - 1), Err(Error::Size { .. })));
    for huge in [1 << 32, u64::MAX] {
        assert!(matches!(claim(huge), Err(Error::TooLarge { claimed, .. }) if claimed == huge));
    }
}

#[test]
fn a_bomb_is_refused() {
    // One zstd frame of 8 GiB of zeros in 256 KiB: blocks of one repeated byte, 128 KiB each.
    let mut frame = vec![0x28, 0xb5, 0x2f, 0xfd, 0x00, 0x58];
    for _ in 0..65_536 {
        frame.extend([0x02, 0x00, 0x10, 0x00]);
    }
    for claimed in [8 << 30, 1 << 30, 100 << 20, 1 << 20, 0] {
        let container = container_of(0x8011, &frame, claimed);
        let fatbin = Fatbin::read(&container).expect("the container is whole");
        assert!(fatbin.entries[0].data().is_err(), "{claimed}");
    }
}

/// A container with one PTX entry.
fn container_of(flags: u64, payload: &[u8], claimed: u64) -> Vec<u8> {
    let mut entry = vec![0; 64];
    entry[0] = 1;
    entry[4] = 64;
    entry[8..16].copy_from_slice(&(payload.len() as u64).to_le_bytes());
    entry[16..20].copy_from_slice(&(payload.len() as u32).to_le_bytes());
    entry[28] = 90;
    entry[40..48].copy_from_slice(&flags.to_le_bytes());
    entry[56..64].copy_from_slice(&claimed.to_le_bytes());
    let mut bytes = [0x50, 0xed, 0x55, 0xba, 1, 0, 16, 0].to_vec();
    bytes.extend(((entry.len() + payload.len()) as u64).to_le_bytes());
    bytes.extend(entry);
    bytes.extend(payload);
    bytes
}

/// An empty list of entries, but behind the last byte.
#[test]
fn a_container_ends_inside_its_bytes() {
    let mut bytes = [0_u8; 40];
    bytes[..8].copy_from_slice(&[0x50, 0xed, 0x55, 0xba, 1, 0, 48, 0]);
    assert!(matches!(Fatbin::read(&bytes), Err(Error::Truncated { offset: 48, have: 0, .. })));
    bytes[6] = 40;
    assert_eq!(Fatbin::read(&bytes).expect("it is whole").to_string(), "nothing");
}

#[test]
fn no_truncation_is_taken_for_whole() {
    for bytes in [RAW, ZSTD, ZSTD_ALL, LZ4, VARIANTS] {
        for end in 0..bytes.len() {
            assert!(Image::read(&bytes[..end]).is_err(), "{end}");
        }
    }
    for bytes in [SM_80, SM_90] {
        for end in 0..bytes.len() {
            let _ = use_all(&bytes[..end]);
        }
    }
}

#[test]
fn damage_never_panics() {
    for bytes in ALL {
        let mut damaged = bytes.to_vec();
        for at in 0..bytes.len() {
            for value in [!bytes[at], bytes[at] ^ 0x01] {
                damaged[at] = value;
                let _ = use_touched(&damaged, at..at + 1);
            }
            damaged[at] = bytes[at];
        }
    }
}

mod properties {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn any_bytes_after_a_magic(which in 0..3_usize, rest in prop::collection::vec(any::<u8>(), 0..600)) {
            let magic = [&RAW[..8], &SM_90[..20], &b".version"[..]][which];
            let _ = use_all(&[magic, &rest].concat());
        }

        #[test]
        fn several_bytes_changed(
            which in 0..ALL.len(),
            changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..20),
        ) {
            let mut bytes = ALL[which].to_vec();
            for (at, value) in changes {
                let at = at.index(bytes.len());
                bytes[at] = value;
            }
            let _ = use_all(&bytes);
        }

        #[test]
        fn any_lz4_and_zstd(flags in prop::sample::select(&[0x11_u64, 0x2011, 0x8011, 0xa011][..]),
                            payload in prop::collection::vec(any::<u8>(), 0..300), claimed in 0..100_000_u64) {
            let _ = use_all(&container_of(flags, &payload, claimed));
            let frame = [&[0x28, 0xb5, 0x2f, 0xfd][..], &payload].concat();
            let _ = use_all(&container_of(flags, &frame, claimed));
        }
    }
}
