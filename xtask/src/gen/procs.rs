//! Which symbol does `cuGetProcAddress(name, version, flag)` mean?
//!
//! The headers answer in two halves. `cudaTypedefs.h` says that `cuCtxCreate` was published in CUDA 2.0, 3.2,
//! 11.4 and 12.5; `cuda.h` declares `cuCtxCreate`, `_v2`, `_v3` and `_v4`. Nothing there joins the two, but
//! both are in order of time, so the k-th version means the k-th symbol. A difference in number or in
//! signature would show that the reasoning has failed for some name, and stops the generator.

use std::collections::BTreeMap;

use anyhow::{Result, bail};

use super::surface::{Published, Surface, split_per_thread};

/// The versions of one name, oldest first: the version of CUDA and the symbol.
#[derive(Debug, Default)]
pub struct Proc {
    pub plain: Vec<(u32, String)>,
    pub per_thread: Vec<(u32, String)>,
}

/// A name's symbols in order of their `_vN`.
type Symbols<'a> = BTreeMap<(&'a str, bool), BTreeMap<u32, &'a str>>;
type Versions<'a> = BTreeMap<(&'a str, bool), BTreeMap<u32, &'a Published>>;

pub fn join(surface: &Surface) -> Result<BTreeMap<String, Proc>> {
    let mut symbols = Symbols::new();
    for symbol in surface.functions.keys() {
        let (base, number, per_thread) = split_symbol(symbol);
        symbols.entry((base, per_thread)).or_default().insert(number, symbol);
    }
    let mut versions = Versions::new();
    for published in &surface.published {
        let key = (published.base.as_str(), published.per_thread);
        versions.entry(key).or_default().insert(published.since, published);
    }
    let mut problems = Vec::new();
    let mut procs = BTreeMap::<String, Proc>::new();
    for (key @ (base, per_thread), versions) in &versions {
        let none = BTreeMap::new();
        let symbols = symbols.remove(key).unwrap_or(none);
        match pair(surface, versions, &symbols) {
            Ok(pairs) => {
                let proc = procs.entry(base.to_string()).or_default();
                *(if *per_thread { &mut proc.per_thread } else { &mut proc.plain }) = pairs;
            }
            Err(problem) => problems.push(format!("{base}: {problem}")),
        }
    }
    problems.extend(symbols.keys().map(|(base, _)| format!("{base}: declared, but never published")));
    if !problems.is_empty() {
        bail!("the versions of these names cannot be told:\n{}", problems.join("\n"));
    }
    Ok(procs)
}

fn pair(
    surface: &Surface,
    versions: &BTreeMap<u32, &Published>,
    symbols: &BTreeMap<u32, &str>,
) -> Result<Vec<(u32, String)>> {
    if versions.len() != symbols.len() {
        bail!("{:?} against {:?}", versions.keys(), symbols.values());
    }
    let mut pairs = Vec::new();
    for ((since, published), symbol) in versions.iter().zip(symbols.values()) {
        if !surface.alike(&published.signature, &surface.functions[*symbol]) {
            bail!("{since} and {symbol} differ in their signatures");
        }
        pairs.push((*since, symbol.to_string()));
    }
    Ok(pairs)
}

/// `cuMemcpyHtoD_v2_ptds` is base `cuMemcpyHtoD`, number 2, per thread.
fn split_symbol(symbol: &str) -> (&str, u32, bool) {
    let (stem, per_thread) = split_per_thread(symbol);
    let numbered = stem.rsplit_once("_v").and_then(|(base, number)| Some((base, number.parse().ok()?)));
    let (base, number) = numbered.unwrap_or((stem, 1));
    (base, number, per_thread)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn symbols_split_into_base_number_and_stream() {
        assert_eq!(split_symbol("cuInit"), ("cuInit", 1, false));
        assert_eq!(split_symbol("cuCtxCreate_v4"), ("cuCtxCreate", 4, false));
        assert_eq!(split_symbol("cuMemcpyHtoD_v2_ptds"), ("cuMemcpyHtoD", 2, true));
        assert_eq!(split_symbol("cuLaunchKernel_ptsz"), ("cuLaunchKernel", 1, true));
    }
}
