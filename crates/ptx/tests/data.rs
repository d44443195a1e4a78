//! Every file of `test_data` against its snapshot.

mod support;

use std::path::Path;

fn check(folder: &str, may_be_wrong: bool) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("test_data").join(folder);
    let mut files: Vec<_> = std::fs::read_dir(&folder)
        .expect("the folder is part of the crate")
        .map(|entry| entry.expect("it can be read").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "ptx"))
        .collect();
    files.sort();
    assert!(!files.is_empty());

    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path(folder.join("snapshots"));
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| {
        for file in files {
            let text = std::fs::read_to_string(&file).expect("it can be read");
            let parse = ptx::parse(text.as_str());
            assert_eq!(parse.module.verify(), Ok(()), "{}", file.display());
            assert_eq!(parse.module.print(), text, "{}", file.display());
            if !may_be_wrong {
                assert_eq!(parse.errors, [], "{}", file.display());
            }
            let name = file.file_stem().expect("it has a name").to_string_lossy();
            insta::assert_snapshot!(&*name, support::dump(&parse));
        }
    });
}

#[test]
fn written_files_are_understood() {
    check("written", false);
}

#[test]
fn compiled_files_are_understood() {
    check("nvcc", false);
}

#[test]
fn wrong_files_are_told_where_they_are_wrong() {
    check("bad", true);
}
