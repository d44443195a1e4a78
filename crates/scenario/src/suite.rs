//! Suites: folders of scenario files.
//!
//! Every `*.toml` of a folder is a scenario file but `suite.toml`, which says what they have in common. The built-in suites
//! are such folders too, carried inside the program.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use toml::Spanned;

use crate::builtin::{self, BUILTIN};
use crate::error::{Error, Mistake};
use crate::file::{self, Origin, SCHEMA};
use crate::scenario::Scenario;

/// What a folder says about itself.
const HEAD: &str = "suite.toml";

#[derive(Clone, Debug, PartialEq)]
pub struct Suite {
    pub name: String,
    pub title: String,
    pub about: Option<String>,
    /// In the order of their files' names; none is called like another.
    pub scenarios: Vec<Scenario>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Head {
    schema: Spanned<u32>,
    title: String,
    about: Option<String>,
}

impl Suite {
    /// The built-in ones.
    pub fn names() -> impl Iterator<Item = &'static str> {
        BUILTIN.iter().map(|folder| folder.name)
    }

    /// The built-in suite of this name.
    pub fn named(name: &str) -> Result<Suite, Error> {
        let folder =
            BUILTIN.iter().find(|folder| folder.name == name).ok_or_else(|| Error::UnknownSuite {
                name: name.to_owned(),
                known: Suite::names().collect::<Vec<_>>().join(", "),
            })?;
        let builtin::Folder { name, files } = folder;
        let called = |file: &str| format!("{name}/{file}");
        let texts = files.iter().filter(|(file, _)| file.ends_with(".toml")).map(|(file, text)| {
            ((*file).to_owned(), (*text).to_owned(), Origin::embedded(&called(file), files.to_vec()))
        });
        Suite::gather((*name).to_owned(), &called(HEAD), texts)
    }

    /// A folder of scenario files, or one such file as a suite of its own, named after its folder.
    pub fn at(path: &Path) -> Result<Suite, Error> {
        let unreadable = |source| Error::Unreadable { path: path.to_owned(), source };
        // The name of `.` is known only from where it really is.
        let whole = path.canonicalize().map_err(unreadable)?;
        let (folder, mut paths) = if whole.is_dir() {
            let entries =
                fs::read_dir(path).and_then(Iterator::collect::<Result<Vec<_>, _>>).map_err(unreadable)?;
            let paths = entries.into_iter().map(|entry| entry.path());
            let toml = paths.filter(|path| path.extension().is_some_and(|ending| ending == "toml"));
            (whole.as_path(), toml.collect())
        } else {
            (whole.parent().unwrap_or(&whole), vec![path.to_owned()])
        };
        paths.sort();
        let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let texts = paths.iter().map(read).collect::<Result<Vec<_>, _>>()?;
        if texts.iter().all(|(file, ..)| file == HEAD) {
            return Err(Error::Empty { path: path.to_owned() });
        }
        Suite::gather(name, &path.join(HEAD).display().to_string(), texts.into_iter())
    }

    /// What a user means by a word: a built-in suite, else a path.
    pub fn find(word: &str) -> Result<Suite, Error> {
        match Suite::named(word) {
            Err(Error::UnknownSuite { .. }) if Path::new(word).exists() => Suite::at(Path::new(word)),
            found => found,
        }
    }

    /// Makes a suite of the names, texts and origins of its files. Mistakes of all files are told together.
    fn gather(
        name: String,
        head_called: &str,
        texts: impl Iterator<Item = (String, String, Origin)>,
    ) -> Result<Suite, Error> {
        let mut suite = Suite { title: name.clone(), name, about: None, scenarios: Vec::new() };
        let mut mistakes = Vec::new();
        for (file, text, origin) in texts {
            if file == HEAD {
                match head(head_called, &text) {
                    Ok(head) => (suite.title, suite.about) = (head.title, head.about),
                    Err(mistake) => mistakes.push(mistake),
                }
                continue;
            }
            match file::parse(&text, &origin) {
                Ok(scenarios) => suite.scenarios.extend(scenarios),
                Err(Error::Wrong(wrong)) => mistakes.extend(wrong),
                Err(other) => return Err(other),
            }
        }
        let mut names = HashSet::new();
        for scenario in suite.scenarios.iter().filter(|scenario| !names.insert(&scenario.name)) {
            let message = format!("two scenarios of this suite are called {}", scenario.name);
            mistakes.push(Mistake { file: head_called.to_owned(), line: 1, message });
        }
        if mistakes.is_empty() { Ok(suite) } else { Err(Error::Wrong(mistakes)) }
    }
}

fn read(path: &PathBuf) -> Result<(String, String, Origin), Error> {
    let text = fs::read_to_string(path).map_err(|source| Error::Unreadable { path: path.clone(), source })?;
    let file = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    Ok((file, text, Origin::file(path)))
}

fn head(called: &str, text: &str) -> Result<Head, Mistake> {
    let wrong = |start: usize, message: String| {
        let line = text.as_bytes()[..start.min(text.len())].iter().filter(|&&byte| byte == b'\n').count() + 1;
        Mistake { file: called.to_owned(), line, message }
    };
    let head: Head = toml::from_str(text).map_err(|error| {
        wrong(error.span().unwrap_or_default().start, error.message().replace('\n', "; "))
    })?;
    if *head.schema.get_ref() != SCHEMA {
        let message = format!("schema is {}, and this ebb knows only {SCHEMA}", head.schema.get_ref());
        return Err(wrong(head.schema.span().start, message));
    }
    Ok(head)
}

#[cfg(test)]
mod tests;
