//! What can be wrong with a world.

use model::Nanos;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error("two tenants are called `{0}`")]
    SameName(String),
    #[error("{0} is too long for a simulation")]
    TooLong(Nanos),
    /// What was to be put on the stage is not as it should be.
    #[error("{0}")]
    Stage(String),
    #[error("tenant `{name}`: {what}")]
    Tenant { name: String, what: &'static str },
}
