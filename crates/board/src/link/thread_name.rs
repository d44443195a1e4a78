//! How tenants are known to people who do not share a board with them: by the name of the thread that ebb has in each.
//!
//! Every user of a machine may read the names of threads, where environments and memory are private. A program could take
//! such a name without being a tenant; then best-effort tenants of other daemons take turns with it instead of yielding.

use std::ffi::CStr;

use model::Class;

/// At most 15 bytes: the kernel keeps no more.
const NAMES: [(Class, &CStr); 2] =
    [(Class::Latency, c"ebb-latency"), (Class::BestEffort, c"ebb-best-effort")];

/// What ebb's thread in a tenant is called.
pub fn thread_name(class: Class) -> &'static CStr {
    NAMES.iter().find(|(of, _)| *of == class).map_or(c"ebb", |(_, name)| name)
}

/// The class of a tenant that has a thread of this name.
pub fn class_of_thread(name: &[u8]) -> Option<Class> {
    NAMES.iter().find(|(_, called)| called.to_bytes() == name).map(|(class, _)| *class)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_say_the_class_and_fit_the_kernel() {
        for class in [Class::Latency, Class::BestEffort] {
            let name = thread_name(class).to_bytes();
            assert!(name.len() <= 15);
            assert_eq!(class_of_thread(name), Some(class));
        }
        assert_eq!(class_of_thread(b"python3"), None);
    }
}
