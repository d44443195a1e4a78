//! Any bytes as the surroundings of a program: every place where a driver may be is a path that can be opened.
#![no_main]

use std::ops::ControlFlow;

use installation::search::{Source, Surroundings, each_candidate};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Some((&length, rest)) = data.split_first() else { return };
    let (library_path, cache) = rest.split_at(rest.len().min(usize::from(length)));
    let surroundings = Surroundings { setting: None, library_path: Some(library_path), cache };
    let mut visited = 0;
    each_candidate(&surroundings, &mut |source, path| {
        assert!(path.to_bytes().starts_with(b"/") && path.to_bytes_with_nul().len() <= 4096);
        assert!(source != Source::Setting);
        visited += 1;
        ControlFlow::Continue(())
    });
    assert!(visited <= data.len() + 64, "more places than there are bytes to name them");
    let mut first = 0;
    each_candidate(&surroundings, &mut |_, _| {
        first += 1;
        ControlFlow::Break(())
    });
    assert_eq!(first, 1, "the usual folders are always there");
    if library_path.is_empty() {
        return;
    }
    let surroundings = Surroundings { setting: Some(library_path), ..surroundings };
    each_candidate(&surroundings, &mut |source, path| {
        assert!(source == Source::Setting && path.to_bytes() == library_path);
        ControlFlow::Continue(())
    });
});
