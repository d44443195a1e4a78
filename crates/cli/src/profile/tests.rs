use model::{Dim3, Geometry, Kernel, ModuleHash, Nanos, Rung, Site};
use profile::{Certificate, Damage, Demoted, Key, Platform, Profile, Record, Word};

use super::kept::{Kept, Known};
use super::{choice, csv, json, text};

const HOUR: u64 = 3_600_000_000_000;
/// 2026-11-15.
const NOW: Nanos = Nanos(1_794_700_800_000_000_000);

fn kernel(name: &str, blocks: u32, rung: Rung) -> Kernel {
    let geometry =
        Geometry { grid: Dim3::new(blocks, 4, 1), block: Dim3::new(128, 1, 1), shared_bytes: 49_152 };
    Kernel { module: ModuleHash(7 << 100), name: name.to_owned(), geometry, rung }
}

fn record(launches: u64, micros: &[u64], hours: u64) -> Record {
    Record {
        duration: micros.iter().map(|&time| Nanos::from_micros(time)).collect(),
        block: micros.iter().map(|&time| Nanos::from_micros(time / 6)).collect(),
        gap: micros.iter().map(|_| Nanos::from_micros(4)).collect(),
        launches,
        last_seen: Nanos(NOW.0 - hours * HOUR),
        ..Record::default()
    }
}

const REDUCE: &str = "_ZN2at6native13reduce_kernelILi512ELi1EEEvT_";

/// A platform with kernels of several kinds, and one of an older ebb.
fn kept() -> Kept {
    let mut profile = Profile::default();
    let at = |kernel: &Kernel, site| Key { kernel: kernel.clone(), site };
    let gemm = kernel("gemm, \"large\"", 64, Rung::Guard);
    let certificate = Some(Certificate { latency: Nanos::from_micros(95), since: Nanos(NOW.0 - HOUR) });
    let mut known =
        Record { certificate, stops: 12, broken: 1, ..record(1000, &[300, 310, 320, 350, 900], 0) };
    known.demote(Word::new("broke-certificate").unwrap(), Nanos(NOW.0 - HOUR / 2));
    profile.merge(at(&gemm, None), &known);
    profile.merge(at(&gemm, Some(Site(0xab))), &record(800, &[300, 310], 0));
    profile.merge(at(&gemm, Some(Site(0xcd))), &record(200, &[900], 2));
    profile.merge(at(&kernel("gemm, \"large\"", 8, Rung::Guard), None), &record(5, &[40], 30));
    profile.merge(at(&kernel(REDUCE, 1, Rung::None), None), &record(5000, &[8, 9], 500));
    profile.merge(at(&kernel("never_timed", 1, Rung::Hold), None), &record(1, &[], 0));
    let old = Platform::new("NVIDIA L4", "580.159.04", "0.0.9");
    let mut other = Profile::default();
    other.merge(at(&kernel("copy", 2, Rung::Switch), Some(Site(1))), &record(3, &[100], 50));
    let damage = Damage { bytes: 77, places: 1 };
    let here = Platform::new("NVIDIA H200", "580.159.04", "0.1.0");
    let demoted = Demoted {
        code: 9,
        reason: Word::new("waits-for-others").unwrap(),
        when: Nanos(NOW.0 - 72 * HOUR),
        name: REDUCE.to_owned(),
    };
    Kept {
        platforms: vec![
            Known::new(here, 41_234, &profile, Damage::default()),
            Known::new(old, 900, &other, damage),
        ],
        demoted: vec![demoted],
        remarks: Vec::new(),
        folder: "/cache/ebb/profiles".to_owned(),
    }
}

fn chosen(wanted: &str) -> Kept {
    choice::choose(kept(), wanted).unwrap()
}

fn names(kept: &Kept) -> Vec<(&str, String)> {
    let all = kept.platforms.iter().flat_map(|known| &known.kernels);
    all.map(|known| (known.kernel.name.as_str(), known.kernel.geometry.grid.to_string())).collect()
}

#[test]
fn a_list_of_kernels() {
    insta::assert_snapshot!(text::list(&kept(), NOW));
}

#[test]
fn a_list_of_nothing() {
    let folder = "/cache/ebb/profiles".to_owned();
    insta::assert_snapshot!(text::list(&Kept { folder, ..Kept::default() }, NOW));
}

#[test]
fn all_about_a_kernel() {
    insta::assert_snapshot!(text::show(&chosen("gemm"), NOW));
}

#[test]
fn all_about_a_kernel_that_the_guard_knows_too() {
    insta::assert_snapshot!(text::show(&chosen("reduce"), NOW));
}

#[test]
fn the_list_for_programs() {
    insta::assert_snapshot!(json::list(&kept()).to_string());
}

#[test]
fn every_record_for_programs() {
    insta::assert_snapshot!(json::all(&chosen("gemm")).to_string());
}

#[test]
fn every_record_as_a_table() {
    insta::assert_snapshot!(csv::all(&kept()));
}

#[test]
fn a_kernel_is_found_by_id_name_or_part_of_a_name() {
    let gemm = "gemm, \"large\"";
    assert_eq!(names(&chosen("GEMM")), [(gemm, "64x4x1".to_owned()), (gemm, "8x4x1".to_owned())]);
    assert_eq!(names(&chosen(gemm)).len(), 2);
    for name in [REDUCE, "at::native::reduce_kernel<512, 1>", "reduce_k"] {
        assert_eq!(names(&chosen(name)), [(REDUCE, "1x4x1".to_owned())], "{name}");
    }
    let id = kernel(gemm, 8, Rung::Guard).id().to_string();
    for id in [&id[..], &id[..8], &id[..8].to_uppercase()] {
        assert_eq!(names(&chosen(id)), [(gemm, "8x4x1".to_owned())], "{id}");
    }
}

#[test]
fn what_fits_none_or_several_is_an_error_that_helps() {
    let error = |wanted: &str| choice::choose(kept(), wanted).unwrap_err().to_string();
    assert!(error("conv").contains("`ebb profile list`"), "{}", error("conv"));
    assert!(error("").contains("no kernel"), "{}", error(""));
    let several = error("e");
    assert!(several.starts_with("`e` fits 3 kernels"), "{several}");
    assert!(
        several.contains("\n  at::native::reduce_kernel<512, 1>") && several.contains("\n  never_timed"),
        "{several}"
    );
}

#[test]
fn those_that_keep_the_gpu_busy_longest_come_first() {
    let names: Vec<_> = kept().platforms[0].kernels.iter().map(|known| known.kernel.name.clone()).collect();
    assert_eq!(names, ["gemm, \"large\"", REDUCE, "gemm, \"large\"", "never_timed"]);
}
