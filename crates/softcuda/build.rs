//! The library is found by the name every CUDA program asks for, and stays once it is loaded: its threads run
//! code that an unload would take away. Its references to its own functions are bound when it is linked: a shim
//! that is preloaded exports the same names, and would otherwise stand behind itself in our function table.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libcuda.so.1");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-Bsymbolic");
}
