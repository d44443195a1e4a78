//! The library goes by the name under which programs ask for NVIDIA's, and stays once it is loaded: programs keep the
//! addresses it has given them. Its own references are bound to itself, whatever else is loaded under these names.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libnvidia-ml.so.1");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-Bsymbolic");
}
