//! What the macros deal out, and in which order.

use cuda_abi::Function;

macro_rules! names {
    ($(fn $name:ident($($arg:ident: $type:ty),*) -> $result:ty;)*) => { [$(stringify!($name)),*] };
}

macro_rules! twins {
    ($(fn $name:ident($($arg:ident: $type:ty),*) -> $result:ty = $plain:ident;)*) => {
        [$((stringify!($name), stringify!($plain))),*]
    };
}

#[test]
fn every_function_is_dealt_in_order() {
    let names = cuda_abi::for_each_function!(names);
    assert_eq!(names.len(), Function::COUNT);
    assert!(names.into_iter().eq(Function::all().map(Function::name)));
}

#[test]
fn a_callback_may_be_a_path() {
    mod inner {
        macro_rules! count {
            ($(fn $name:ident($($rest:tt)*) -> $result:ty;)*) => { [$(stringify!($name)),*].len() };
        }
        pub(super) use count;
    }
    assert_eq!(cuda_abi::for_each_function!(inner::count), Function::COUNT);
}

#[test]
fn per_thread_functions_come_with_their_twins() {
    let twins = cuda_abi::for_each_per_thread_function!(twins);
    assert!(twins.contains(&("cuLaunchKernel_ptsz", "cuLaunchKernel")));
    assert!(twins.contains(&("cuMemcpyHtoD_v2_ptds", "cuMemcpyHtoD_v2")));
    for (name, plain) in twins {
        assert!(Function::named(name).is_some() && Function::named(plain).is_some(), "{name}");
    }
    let per_thread = Function::all().filter(|function| function.name().contains("_pt")).count();
    assert_eq!(twins.len(), per_thread);
}
