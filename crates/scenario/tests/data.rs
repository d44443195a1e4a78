//! Wrong files, each against the snapshot of what is said about it.

use std::fs;
use std::path::Path;

use scenario::{Error, Origin, parse};

#[test]
fn wrong_files_are_told_where_they_are_wrong_and_what_is_allowed() {
    // Relative, because the path is part of what is said; tests run in the crate's folder.
    let folder = Path::new("test_data/bad");
    let mut files: Vec<_> = fs::read_dir(folder)
        .expect("the folder is part of the crate")
        .map(|entry| entry.expect("it can be read").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "toml"))
        .collect();
    files.sort();
    assert!(!files.is_empty());

    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path(Path::new(env!("CARGO_MANIFEST_DIR")).join(folder).join("snapshots"));
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| {
        for file in files {
            let text = fs::read_to_string(&file).expect("it can be read");
            let Err(error) = parse(&text, &Origin::file(&file)) else {
                panic!("{} is right", file.display())
            };
            assert!(matches!(error, Error::Wrong(_)), "{error}");
            let name = file.file_stem().expect("it has a name").to_string_lossy();
            insta::assert_snapshot!(&*name, error);
        }
    });
}
