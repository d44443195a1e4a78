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

pub fn limit(
    option: Option<Bytes>,
    variables: impl IntoIterator<Item = (OsString, OsString)>,
) -> Result<Option<Setting>> {
    if let Some(Bytes(limit)) = option {
        return Ok(Some((VARIABLE, limit.to_string().into())));
    }
    for (name, value) in variables {
        let wrong = value.to_str().is_none_or(|value| value.parse::<Bytes>().is_err());
        if wrong && !value.is_empty() && name.to_str().is_some_and(is_a_limit) {
            bail!(
                "the variable {} cannot be {}: {}; unset it, or use --mem instead",
                name.display(),
                value.display(),
                model::NoSize
            );
        }
    }
    Ok(None)
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

    fn given(option: Option<Bytes>, name: &str, value: &str) -> Result<Option<Setting>> {
        limit(option, [(OsString::from(name), OsString::from(value))])
    }

    #[test]
    fn the_option_is_above_all() {
        let setting = given(Some(Bytes(20 << 30)), VARIABLE, "nonsense").unwrap();
        assert_eq!(setting, Some((VARIABLE, "21474836480".into())));
        assert_eq!(given(Some(Bytes::ZERO), VARIABLE, "1g").unwrap(), Some((VARIABLE, "0".into())));
    }

    #[test]
    fn variables_stay_and_must_make_sense() {
        for name in [VARIABLE, ALIAS, "CUDA_DEVICE_MEMORY_LIMIT_0", "CUDA_DEVICE_MEMORY_LIMIT_12"] {
            assert_eq!(given(None, name, "2027m").unwrap(), None);
            assert_eq!(given(None, name, "").unwrap(), None);
            let message = given(None, name, "half").unwrap_err().to_string();
            assert!(
                message.contains(name) && message.contains("half") && message.contains("--mem"),
                "{message}"
            );
        }
        for other in ["CUDA_DEVICE_MEMORY_LIMITED", "CUDA_DEVICE_MEMORY_LIMIT_", "CUDA_DEVICE_MEMORY_LIMIT_x"]
        {
            assert_eq!(given(None, other, "half").unwrap(), None);
        }
    }
}
