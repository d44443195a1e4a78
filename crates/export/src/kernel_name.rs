//! What people call a kernel.
//!
//! A module calls it by the mangled name of its compiler, which says everything and can be read by nobody. In a report
//! for people stands the function as its source has it, without its parameters.

use cpp_demangle::{DemangleOptions, Symbol};

/// The name as in the source, where it is a C++ name that can be understood; else the name as it is.
pub fn readable(name: &str) -> String {
    let options = DemangleOptions::new().no_params().no_return_type();
    let whole = Symbol::new(name).ok().and_then(|symbol| symbol.demangle_with_options(&options).ok());
    whole.map(|whole| untagged(&whole)).or_else(|| qualified(name)).unwrap_or_else(|| name.to_owned())
}

/// Without tags of the ABI, in which Numba keeps the version and the types of a function.
fn untagged(name: &str) -> String {
    let mut parts = name.split("[abi:");
    let first = parts.next().unwrap_or_default();
    parts.fold(first.to_owned(), |whole, part| whole + part.split_once(']').map_or("", |(_, rest)| rest))
}

/// The namespaces and the function at the beginning of a nested name. A ledger cuts long names, and what is cut cannot
/// be understood as a whole.
fn qualified(name: &str) -> Option<String> {
    let mut rest = name.strip_prefix("_ZN")?;
    let mut parts = Vec::new();
    while let Some(digits) = rest.find(|c: char| !c.is_ascii_digit()).filter(|&digits| digits > 0) {
        let length: usize = rest[..digits].parse().ok()?;
        let end = digits.checked_add(length)?;
        parts.push(rest.get(digits..end)?);
        rest = &rest[end..];
    }
    let arguments = if rest.starts_with('I') { "<…>" } else { "" };
    (!parts.is_empty()).then(|| parts.join("::") + arguments)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_cpp_are_as_in_the_source() {
        let name = "_ZN2at6native13reduce_kernelILi512ELi1EEEvT_";
        assert_eq!(readable(name), "at::native::reduce_kernel<512, 1>");
        assert_eq!(readable("_Z3addPfS_i"), "add");
        assert_eq!(readable("_ZN8__main__10add_kernelB2v1B8cw51cXTLEi"), "__main__::add_kernel");
    }

    #[test]
    fn other_names_are_as_they_are() {
        for name in
            ["sm80_xmma_gemm_f32f32", "triton_poi_fused_add_0", "", "_ZN", "_ZN9999999999999999999999a"]
        {
            assert_eq!(readable(name), name);
        }
    }

    #[test]
    fn of_a_cut_name_what_is_whole_is_said() {
        assert_eq!(
            readable("_ZN2at6native18elementwise_kernelILi128ELi2EZNS0_22gpu_ker"),
            "at::native::elementwise_kernel<…>"
        );
        assert_eq!(readable("_ZN2at6nati"), "_ZN2at6nati");
    }
}
