//! Who a tenant is, and how tenants share a GPU.

use std::fmt;
use std::str::FromStr;

/// What a tenant was promised.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// Runs as if alone.
    Latency,
    /// Gets everything else: nice(1) for GPUs, and the default for that reason.
    #[default]
    BestEffort,
}

/// How the contexts of different tenants share one GPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Domain {
    /// One context at a time, a hardware context switch between them, no shared fate.
    #[default]
    Isolated,
    /// All contexts at the same time, as under MPS.
    Shared,
}

/// A word that is not in the vocabulary.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownWord {
    pub word: String,
    pub expected: &'static str,
}

impl fmt::Display for UnknownWord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` is not one of {}", self.word, self.expected)
    }
}

impl std::error::Error for UnknownWord {}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Class::Latency => "latency",
            Class::BestEffort => "best-effort",
        })
    }
}

impl FromStr for Class {
    type Err = UnknownWord;

    fn from_str(word: &str) -> Result<Class, UnknownWord> {
        match word {
            "latency" => Ok(Class::Latency),
            "best-effort" => Ok(Class::BestEffort),
            _ => Err(UnknownWord { word: word.to_owned(), expected: "latency, best-effort" }),
        }
    }
}

impl fmt::Display for Domain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Domain::Isolated => "isolated",
            Domain::Shared => "shared",
        })
    }
}

impl FromStr for Domain {
    type Err = UnknownWord;

    fn from_str(word: &str) -> Result<Domain, UnknownWord> {
        match word {
            "isolated" => Ok(Domain::Isolated),
            "shared" => Ok(Domain::Shared),
            _ => Err(UnknownWord { word: word.to_owned(), expected: "isolated, shared" }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_round_trip() {
        for class in [Class::Latency, Class::BestEffort] {
            assert_eq!(class.to_string().parse(), Ok(class));
        }
        for domain in [Domain::Isolated, Domain::Shared] {
            assert_eq!(domain.to_string().parse(), Ok(domain));
        }
    }

    #[test]
    fn an_unknown_word_names_the_known_ones() {
        let error = "fast".parse::<Class>().unwrap_err();
        assert_eq!(error.to_string(), "`fast` is not one of latency, best-effort");
    }
}
