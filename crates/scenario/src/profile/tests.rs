use proptest::prelude::*;

use super::*;

const GOOD: &str = r#"{"schema":1,"workload":"x-b1","recorded":{"gpu":"a card"},"sms":132,
    "parts":[{"name":"request","times":1,"host_us":20.5,"kernels":[[0,132,256,8,3.5],[4.25,1,32,32,0.5]]}]}"#;

fn refusal(text: &str) -> String {
    Profile::parse(text, "here").unwrap_err().to_string()
}

#[test]
fn a_profile_is_read_as_it_is_written() {
    let profile = Profile::parse(GOOD, "here").unwrap();
    let second = Kernel { at_us: 4.25, blocks: 1, threads: 32, per_sm: 32, block_us: 0.5 };
    assert_eq!(profile.parts[0].kernels[1], second);
    assert_eq!(profile.recorded["gpu"], "a card");
}

#[test]
fn every_number_is_checked() {
    let cases = [
        (r#""schema":1"#, r#""schema":2"#, "its schema is 2"),
        (r#""sms":132"#, r#""sms":0"#, "sms is 0"),
        (r#""times":1"#, r#""times":5000"#, "times is 5000, not between 1 and 4096"),
        (r#""host_us":20.5"#, r#""host_us":-1"#, "host_us is -1"),
        ("[4.25,1,", "[1e300,1,", "kernel 1: at_us is"),
        ("[0,132,", "[9,132,", "kernel 1: it is handed over before the one ahead of it"),
        ("[4.25,1,", "[4.25,0,", "blocks is 0"),
        ("1,32,32,0.5", "1,2048,32,0.5", "threads is 2048"),
        ("1,32,32,0.5", "1,32,33,0.5", "per_sm is 33"),
        ("1,32,32,0.5", "1,32,32,-0.5", "block_us is -0.5"),
        ("1,32,32,0.5", "1,32,32", "expected struct Kernel with 5 elements"),
        ("132,256,8,3.5", "-132,256,8,3.5", "invalid value"),
        (r#""name":"request","#, r#""name":"request","speed":1,"#, "unknown field `speed`"),
        (r#"[[0,132,256,8,3.5],[4.25,1,32,32,0.5]]"#, "[]", "there are 0 kernels"),
    ];
    for (old, new, expected) in cases {
        assert!(GOOD.contains(old), "{old}");
        let refusal = refusal(&GOOD.replace(old, new));
        assert!(refusal.contains(expected) && refusal.contains("here"), "{new}: {refusal}");
    }
    assert!(refusal(&GOOD[..GOOD.len() - 2]).contains("EOF"));
}

#[test]
fn the_files_of_the_folder_are_built_in_and_all_of_them_are_right() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("profiles");
    let mut files: Vec<String> = std::fs::read_dir(folder)
        .unwrap()
        .filter_map(|entry| {
            entry.unwrap().file_name().into_string().unwrap().strip_suffix(".json").map(str::to_owned)
        })
        .collect();
    files.sort();
    assert_eq!(Profile::names().collect::<Vec<_>>(), files);
    for name in Profile::names() {
        assert_eq!(Profile::built_in(name).unwrap().workload, name);
    }
}

#[test]
fn what_was_never_recorded_is_said_with_the_command_that_records_it() {
    let error = Profile::built_in("vgg19-inference-eager-b77").unwrap_err().to_string();
    assert!(error.contains("ebb lab record vgg19-inference-eager-b77"), "{error}");
}

#[test]
fn a_file_says_what_is_wrong_with_it() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(Profile::in_folder(folder.path(), "x-b1").unwrap(), None);
    std::fs::write(folder.path().join("x-b1.json"), GOOD).unwrap();
    assert!(Profile::in_folder(folder.path(), "x-b1").unwrap().is_some());
    std::fs::write(folder.path().join("y-b1.json"), GOOD).unwrap();
    let error = Profile::in_folder(folder.path(), "y-b1").unwrap_err().to_string();
    assert!(error.contains("this is a profile of x-b1"), "{error}");
    std::fs::create_dir(folder.path().join("z-b1.json")).unwrap();
    assert!(Profile::in_folder(folder.path(), "z-b1").unwrap_err().to_string().contains("no file"));
}

prop_compose! {
    fn kernels()(
        steps in prop::collection::vec((0u32..9999, 1..=MOST_BLOCKS, 1..=MOST_THREADS, 1..=MOST_PER_SM, 0u32..9999), 1..20)
    ) -> Vec<Kernel> {
        let mut at = 0;
        // Quarters are exact: what is read is asked to be the number that was written, to the last bit.
        let kernel = |(step, blocks, threads, per_sm, length)| {
            at += step;
            Kernel { at_us: f64::from(at) / 4.0, blocks, threads, per_sm, block_us: f64::from(length) / 4.0 }
        };
        steps.into_iter().map(kernel).collect()
    }
}

proptest! {
    #[test]
    fn what_is_written_is_read_again(name: String, workload: String, lists in prop::collection::vec(kernels(), 1..4)) {
        let part = |kernels| Part { name: name.clone(), times: 3, host_us: 12.5, kernels };
        let parts = lists.into_iter().map(part).collect();
        let recorded = BTreeMap::from([("command".to_owned(), name.clone())]);
        let profile = Profile { schema: SCHEMA, workload, recorded, sms: 132, parts };
        prop_assert_eq!(Profile::parse(&profile.to_string(), "here").unwrap(), profile);
    }

    #[test]
    fn no_text_makes_it_panic(text in r#"[\{\}\[\]0-9a-z":,.e-]{0,200}"#) {
        let _ = Profile::parse(&text, "here");
    }
}
