//! The suites that ebb carries with it: the folder `suites`, as it was when this was compiled.

pub(crate) struct Folder {
    pub name: &'static str,
    /// Names and texts, in order of the names.
    pub files: &'static [(&'static str, &'static str)],
}

macro_rules! folders {
    ($($name:literal: [$($file:literal),* $(,)?]),* $(,)?) => {
        &[$(Folder {
            name: $name,
            files: &[$(($file, include_str!(concat!("../suites/", $name, "/", $file)))),*],
        }),*]
    };
}

pub(crate) const BUILTIN: &[Folder] = folders! {
    "disb-a": ["published.toml", "scaled.toml", "suite.toml"],
    "disb-b": ["published.toml", "suite.toml"],
    "disb-c": ["published.toml", "suite.toml"],
    "disb-d": ["published.toml", "suite.toml"],
    "disb-e": ["published.toml", "suite.toml"],
    "disb-real": ["densenet201.trace", "distilbert.trace", "inception-v3.trace", "published.toml", "resnet152.trace", "suite.toml", "vgg19.trace"],
    "tally": ["loads-bert.toml", "loads-resnet50.toml", "pairs.toml", "suite.toml"],
    "burst-llm": ["pairs.toml", "suite.toml"],
    "micro": ["blocks.toml", "gaps.toml", "grids.toml", "suite.toml"],
    "stress": ["suite.toml", "twenty.toml"],
};

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::path::Path;

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        let mut names: Vec<_> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn all_of_the_folder_is_carried() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("suites");
        let mut carried: Vec<_> = BUILTIN.iter().map(|folder| folder.name).collect();
        for folder in BUILTIN {
            let files: Vec<_> = folder.files.iter().map(|(file, _)| *file).collect();
            assert_eq!(files, names(&root.join(folder.name)), "{}", folder.name);
        }
        carried.sort();
        assert_eq!(carried, names(&root));
    }
}
