//! Which kernel somebody means.

use anyhow::{Result, bail};
use model::Kernel;

use super::kept::{Kept, contains};
use crate::run::report::{cut, readable};

/// Fewer letters of an id fit too many.
const SHORTEST_ID: usize = 4;
/// So many are named when somebody must choose.
const NAMED: usize = 8;
const NAME: usize = 90;

/// Leaves the kernels that are meant: those with this id; if there are none, those of this name; else the one of whose name
/// this is a part.
pub fn choose(mut kept: Kept, wanted: &str) -> Result<Kept> {
    let ways: [fn(&Kernel, &str) -> bool; 3] = [has_id, has_name, has_part];
    let known = || kept.platforms.iter().flat_map(|known| &known.kernels).map(|known| &known.kernel);
    let Some(fits) = ways.into_iter().find(|fits| known().any(|kernel| fits(kernel, wanted))) else {
        bail!("no kernel that is known is called `{wanted}`; `ebb profile list` shows which there are");
    };
    let mut names: Vec<&str> =
        known().filter(|kernel| fits(kernel, wanted)).map(|kernel| kernel.name.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    if names.len() > 1 {
        let list: Vec<_> =
            names.iter().take(NAMED).map(|name| format!("\n  {}", cut(&readable(name), NAME))).collect();
        let more = if names.len() > NAMED { "\n  …" } else { "" };
        let count = names.len();
        bail!(
            "`{wanted}` fits {count} kernels; say more of the name, or an id of `ebb profile list`:{}{more}",
            list.concat()
        );
    }
    let name = names.first().map(|name| (*name).to_owned()).unwrap_or_default();
    for known in &mut kept.platforms {
        known.kernels.retain(|known| fits(&known.kernel, wanted));
    }
    kept.platforms.retain(|known| !known.kernels.is_empty());
    kept.demoted.retain(|demoted| demoted.name == name);
    Ok(kept)
}

fn has_id(kernel: &Kernel, wanted: &str) -> bool {
    wanted.len() >= SHORTEST_ID && kernel.id().to_string().starts_with(&wanted.to_lowercase())
}

fn has_name(kernel: &Kernel, wanted: &str) -> bool {
    kernel.name == wanted || readable(&kernel.name) == wanted
}

fn has_part(kernel: &Kernel, wanted: &str) -> bool {
    !wanted.is_empty() && (contains(&kernel.name, wanted) || contains(&readable(&kernel.name), wanted))
}
