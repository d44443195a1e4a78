//! Kernels of every kind, compiled for every architecture, get the verdict they deserve.

use guard::{Reason, Rule, Verdict, rewrite_cubin};
use std::path::Path;

const ARCHITECTURES: [&str; 7] = ["80", "86", "89", "90", "90a", "100", "120"];

const PLAIN: Verdict = Verdict::Guard(Rule::Plain);
const ORDERED: Verdict = Verdict::Guard(Rule::Ordered);

/// What the kernels of `kernels.cu` are, whatever they are compiled for.
const EXPECTED: [(&str, Verdict); 15] = [
    ("plain", PLAIN),
    ("plain_loop", PLAIN),
    ("plain_shared", PLAIN),
    ("last_block", PLAIN),
    ("lets_begin", PLAIN),
    ("look_back", ORDERED),
    ("semaphore", ORDERED),
    ("volatile_spin", ORDERED),
    ("lock", ORDERED),
    ("called_spin", ORDERED),
    ("grid_barrier", Verdict::Refuse(Reason::Cooperative)),
    ("counts", Verdict::Refuse(Reason::TouchesModuleMemory)),
    ("weighs", Verdict::Refuse(Reason::TouchesModuleMemory)),
    ("without_parameters", Verdict::Refuse(Reason::NoParameters)),
    ("ncclDevKernel_Test", Verdict::Refuse(Reason::Nccl)),
];

fn image(architecture: &str) -> Vec<u8> {
    let name = format!("test_data/sm_{architecture}.cubin");
    std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join(name)).expect("it is committed")
}

#[test]
fn every_kernel_gets_the_same_verdict_on_every_architecture() {
    for architecture in ARCHITECTURES {
        let rewritten = rewrite_cubin(&image(architecture)).expect("it is a cubin");
        assert_eq!(rewritten.kernels.len(), EXPECTED.len(), "sm_{architecture}");
        for (name, verdict) in EXPECTED {
            let kernel = rewritten.kernels.iter().find(|kernel| kernel.name == name);
            let kernel = kernel.unwrap_or_else(|| panic!("{name} is missing in sm_{architecture}"));
            assert_eq!(kernel.verdict, verdict, "{name} of sm_{architecture}");
        }
    }
}

#[test]
fn guarded_kernels_take_control_words_behind_their_parameters() {
    for architecture in ARCHITECTURES {
        let rewritten = rewrite_cubin(&image(architecture)).expect("it is a cubin");
        let find = |name: &str| rewritten.kernels.iter().find(|kernel| kernel.name == name);
        let plain = find("plain").expect("it is there");
        let places: Vec<_> = plain.parameters.iter().map(|p| (p.offset, p.size)).collect();
        assert_eq!(places, [(0, 4), (8, 8), (16, 8), (24, 4)], "sm_{architecture}");
        assert_eq!(plain.control_offset, 32, "sm_{architecture}");
        assert_eq!(find("counts").expect("it is there").control_offset, 0, "a refused kernel takes none");
    }
}

/// Of machine code, every guarded kernel of architectures that can do it.
#[test]
fn launches_overlap_from_sm_90_on() {
    for architecture in ARCHITECTURES {
        let rewritten = rewrite_cubin(&image(architecture)).expect("it is a cubin");
        for kernel in rewritten.kernels {
            let can = !architecture.starts_with('8') && matches!(kernel.verdict, Verdict::Guard(_));
            assert_eq!(kernel.overlaps, can, "{} of sm_{architecture}", kernel.name);
        }
    }
}

/// For a kernel that has the prologue already, a second one would be a mistake: its control words would be the program's.
#[test]
fn what_was_rewritten_is_not_rewritten_again() {
    for architecture in ARCHITECTURES {
        let once = rewrite_cubin(&image(architecture)).expect("it is a cubin");
        let twice = rewrite_cubin(&once.image).expect("it is still one");
        assert_eq!(twice.image, once.image, "sm_{architecture}");
        assert!(twice.kernels.iter().all(|kernel| matches!(kernel.verdict, Verdict::Refuse(_))));
    }
}

#[test]
fn every_reason_is_explained() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guard.md");
    let text = std::fs::read_to_string(path).expect("it is committed");
    let rows: Vec<&str> = text.lines().filter(|line| line.starts_with("| `")).collect();
    for reason in Reason::ALL {
        let explained = rows.iter().filter(|row| row.starts_with(&format!("| `{}` |", reason.name())));
        assert_eq!(explained.count(), 1, "{}", reason.name());
    }
}
