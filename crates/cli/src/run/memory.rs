//! How much of a GPU's memory a command may have.
//!
//! The option becomes a variable, which the shim reads, and is above all others. Variables that are there already stay: those
//! of a run around this one, and those by which schedulers of clusters say the same. They must make sense, or somebody
//! believes in a limit that is none.

use std::ffi::OsString;

use anyhow::{Result, bail};
use model::Bytes;

use super::environment::Setting;

const VARIABLE: &str = "EBB_MEM_LIMIT";
/// Followed by nothing, or by an underscore and the number of a device.
const ALIAS: &str = "CUDA_DEVICE_MEMORY_LIMIT";

/// What a command finds of it.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Limit {
    pub setting: Option<Setting>,
    /// Whether there is one, for at least one GPU.
    pub holds: bool,
}

pub fn limit(
    option: Option<Bytes>,
    variables: impl IntoIterator<Item = (OsString, OsString)>,
) -> Result<Limit> {
    if let Some(limit) = option {
        let setting = (VARIABLE, limit.0.to_string().into());
        return Ok(Limit { setting: Some(setting), holds: limit != Bytes::ZERO });
    }
    // What our own variable says is above what the others say.
    let (mut own, mut others) = (None, false);
    for (name, value) in variables {
        if value.is_empty() || !name.to_str().is_some_and(is_a_limit) {
            continue;
        }
        let Some(Ok(said)) = value.to_str().map(str::parse::<Bytes>) else {
            bail!(
                "the variable {} cannot be {}: {}; unset it, or use --mem instead",
                name.display(),
                value.display(),
                model::NoSize
            );
        };
        match name == VARIABLE {
            true => own = Some(said != Bytes::ZERO),
            false => others |= said != Bytes::ZERO,
        }
    }
    Ok(Limit { setting: None, holds: own.unwrap_or(others) })
}

fn is_a_limit(name: &str) -> bool {
    let of_device = |rest: &str| {
        rest.strip_prefix('_')
            .is_some_and(|number| !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()))
    };
    name == VARIABLE || name.strip_prefix(ALIAS).is_some_and(|rest| rest.is_empty() || of_device(rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(option: Option<Bytes>, name: &str, value: &str) -> Result<Limit> {
        limit(option, [(OsString::from(name), OsString::from(value))])
    }

    #[test]
    fn the_option_is_above_all() {
        let limited = given(Some(Bytes(20 << 30)), VARIABLE, "nonsense").unwrap();
        assert_eq!(limited, Limit { setting: Some((VARIABLE, "21474836480".into())), holds: true });
        let free = given(Some(Bytes::ZERO), VARIABLE, "1g").unwrap();
        assert_eq!(free, Limit { setting: Some((VARIABLE, "0".into())), holds: false });
    }

    #[test]
    fn variables_stay_and_must_make_sense() {
        for name in [VARIABLE, ALIAS, "CUDA_DEVICE_MEMORY_LIMIT_0", "CUDA_DEVICE_MEMORY_LIMIT_12"] {
            assert_eq!(given(None, name, "2027m").unwrap(), Limit { setting: None, holds: true });
            assert_eq!(given(None, name, "").unwrap(), Limit::default());
            assert_eq!(given(None, name, "0").unwrap(), Limit::default());
            let message = given(None, name, "half").unwrap_err().to_string();
            assert!(
                message.contains(name) && message.contains("half") && message.contains("--mem"),
                "{message}"
            );
        }
        for other in ["CUDA_DEVICE_MEMORY_LIMITED", "CUDA_DEVICE_MEMORY_LIMIT_", "CUDA_DEVICE_MEMORY_LIMIT_x"]
        {
            assert_eq!(given(None, other, "half").unwrap(), Limit::default());
        }
    }

    #[test]
    fn our_own_variable_says_that_there_is_none_whatever_others_say() {
        let both = [(ALIAS, "1g"), (VARIABLE, "0"), ("CUDA_DEVICE_MEMORY_LIMIT_1", "1g")];
        let both = both.map(|(name, value)| (OsString::from(name), OsString::from(value)));
        assert_eq!(limit(None, both).unwrap(), Limit::default());
    }
}
