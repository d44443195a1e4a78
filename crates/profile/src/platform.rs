//! What a measurement holds for: a kind of GPU, a driver, a version of ebb.
//!
//! Another GPU runs a kernel in another time, another driver may compile it to other code, and another ebb puts another prologue
//! before it. So each combination has a file of its own, and two versions of ebb on one machine do not meet.

use xxhash_rust::xxh3::xxh3_64;

use crate::header::FORMAT;

#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Platform {
    gpu: String,
    driver: String,
    ebb: String,
}

/// How names of files end. A file of another format has another name, and the same ending.
pub(crate) const ENDING: &str = "profile";

/// Of names, in bytes; what is longer is cut.
const LONGEST: usize = 128;
/// Of each in the name of a file.
const LONGEST_WORD: usize = 40;

impl Platform {
    /// Of the names as the driver and the build give them. They are data from outside: what is no text in them is replaced.
    pub fn new(gpu: &str, driver: &str, ebb: &str) -> Platform {
        Platform { gpu: clean(gpu), driver: clean(driver), ebb: clean(ebb) }
    }

    /// For this version of ebb.
    pub fn here(gpu: &str, driver: &str) -> Platform {
        Platform::new(gpu, driver, env!("CARGO_PKG_VERSION"))
    }

    /// As the driver calls it, such as `NVIDIA H200`.
    pub fn gpu(&self) -> &str {
        &self.gpu
    }

    pub fn driver(&self) -> &str {
        &self.driver
    }

    /// The version of ebb.
    pub fn ebb(&self) -> &str {
        &self.ebb
    }

    /// A name that people can read, and that no two platforms share.
    pub(crate) fn file_name(&self) -> String {
        let words = [&self.gpu, &self.driver, &self.ebb].map(|name| word(name));
        // Names without NULs, so that a NUL between them tells where one ends.
        let whole = format!("{}\0{}\0{}\0{FORMAT}", self.gpu, self.driver, self.ebb);
        format!("{}-{:08x}.{ENDING}", words.join("-"), xxh3_64(whole.as_bytes()) >> 32)
    }
}

fn clean(name: &str) -> String {
    let mut clean = model::text::printable(name.trim());
    clean.truncate(clean.floor_char_boundary(LONGEST));
    clean
}

/// Letters, digits and points; a line for all that lies between.
fn word(name: &str) -> String {
    let parts = name.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '.');
    let mut word = parts.filter(|part| !part.is_empty()).collect::<Vec<_>>().join("_");
    word.truncate(LONGEST_WORD);
    word
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_named_so_that_people_know_what_it_is() {
        let name = Platform::new("NVIDIA H200 NVL", "580.159.04", "0.1.0").file_name();
        assert!(
            name.starts_with("NVIDIA_H200_NVL-580.159.04-0.1.0-") && name.ends_with(".profile"),
            "{name}"
        );
    }

    #[test]
    fn no_two_platforms_share_a_file() {
        let platforms = [
            Platform::new("NVIDIA H200", "580.1", "0.1.0"),
            Platform::new("NVIDIA_H200", "580.1", "0.1.0"),
            Platform::new("NVIDIA H200", "580.2", "0.1.0"),
            Platform::new("NVIDIA H200", "580.1", "0.2.0"),
            Platform::new("NVIDIA H200 580.1", "", "0.1.0"),
        ];
        let mut names: Vec<_> = platforms.iter().map(Platform::file_name).collect();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), platforms.len());
    }

    #[test]
    fn no_name_leads_out_of_the_folder_or_onto_the_screen() {
        let name = Platform::new("../../etc/passwd\n", "\u{1b}[31m", &"ü".repeat(300)).file_name();
        assert!(!name.contains('/') && !name.contains(char::is_control) && name.len() < 255, "{name}");
        let platform = Platform::new("", "", &"ü".repeat(300));
        assert_eq!(platform.ebb().chars().count(), LONGEST / 2);
        assert!(platform.file_name().ends_with(".profile"));
    }
}
