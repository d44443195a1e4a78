//! What can be wrong with a world.

use model::Nanos;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error("two tenants are called `{0}`")]
    SameName(String),
    #[error("{0} is too long for a simulation")]
    TooLong(Nanos),
    #[error("tenant `{name}`: {what}")]
    Tenant { name: String, what: &'static str },
}
