//! What can be wrong with words that are said to be a sketch.

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error("a sketch has {expected} words, and these are {found}")]
    Length { expected: usize, found: usize },
    #[error("this is no sketch, or one of another version")]
    Kind,
    #[error("the counts of a sketch do not agree with each other")]
    Counts,
}
