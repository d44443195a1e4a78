//! The crossing into C: one method per function of the driver API, with the types of `cuda-abi`.

use crate::answer::{Answer, Code};
pub use cuda_abi::*;
use std::ffi::{CStr, c_void};

macro_rules! entry_points {
    ($(fn $name:ident($($argument:ident: $type:ty),* $(,)?) -> $result:ty;)*) => {
        /// Addresses of all entry points, null where the library has none: a driver may be older than the header.
        #[allow(non_snake_case)]
        pub(super) struct Table {
            $($name: *mut c_void,)*
        }

        impl Table {
            pub(super) fn fill(find: impl Fn(&CStr) -> *mut c_void) -> Table {
                Table { $($name: find(c_name(concat!(stringify!($name), "\0"))),)* }
            }
        }

        /// Entry points, under their C names and with their C signatures.
        #[allow(non_snake_case, clippy::too_many_arguments, clippy::not_unsafe_ptr_arg_deref)]
        impl super::Driver {
            $(pub fn $name(&self, $($argument: $type),*) -> Answer {
                let address = self.table.$name;
                assert!(!address.is_null(), concat!("the driver exports no ", stringify!($name)));
                // SAFETY: the address was exported under this name, whose C signature this is.
                let function: unsafe extern "C" fn($($type),*) -> $result = unsafe { std::mem::transmute(address) };
                // SAFETY: see the head of `driver`: what the arguments may be is the question under test.
                let result = unsafe { function($($argument),*) };
                Answer { call: stringify!($name), code: Code(result.0) }
            })*
        }
    };
}

cuda_abi::for_each_function!(entry_points);

fn c_name(bytes: &'static str) -> &'static CStr {
    CStr::from_bytes_with_nul(bytes.as_bytes()).expect("the macro ends every name with one zero byte")
}
