//! Any bytes as a cubin to be rewritten: what comes out can be read, and has the same kernels, guarded or as they were.
#![no_main]

use cubin::File;
use guard::{Verdict, rewrite_cubin};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Ok(rewritten) = rewrite_cubin(data) else { return };
    let old = File::read(data).expect("it was rewritten");
    assert_eq!(old.write(), data);
    let new = File::read(&rewritten.image).expect("what is rewritten can be read");
    let kernels = old.kernels().into_iter().zip(new.kernels()).zip(&rewritten.kernels);
    for ((before, after), kernel) in kernels {
        assert_eq!((before.name, before.text), (after.name, after.text));
        let part = |file: &File<'_>, index: Option<usize>| index.map(|index| file.sections()[index].data.to_vec());
        for (before, after) in [
            (Some(before.text), Some(after.text)),
            (before.info, after.info),
            (before.constants, after.constants),
        ] {
            let same = part(&old, before) == part(&new, after);
            assert_eq!(same, matches!(kernel.verdict, Verdict::Refuse(_)));
        }
    }
});
