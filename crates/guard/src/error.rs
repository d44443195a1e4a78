//! What can go wrong with an image as a whole. What is wrong with one kernel is its [`Reason`](crate::Reason).

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Cubin(#[from] cubin::Error),
    #[error("this image cannot be rewritten yet")]
    NotYet,
}
