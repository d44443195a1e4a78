//! What can go wrong with an image as a whole. What is wrong with one kernel is its [`Reason`](crate::Reason).

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Cubin(#[from] cubin::Error),
    #[error("the text is not PTX: {0}")]
    Text(ptx::Error),
    #[error("the text does not say for which version and target it is")]
    Target,
    #[error("only modules with addresses of 64 bits can be rewritten")]
    AddressSize,
    #[error("the prologues do not fit the text: {0}")]
    Edit(ptx::EditError),
}
