//! Users and groups by name, as this machine knows them.

use std::ffi::{CStr, CString};
use std::mem::MaybeUninit;
use std::ptr::null_mut;

/// The longest entry that is read: a group of some thousand members.
const LONGEST: usize = 1 << 20;

pub fn user(name: &str) -> Option<u32> {
    let name = CString::new(name).ok()?;
    look(|buffer| {
        let mut entry = MaybeUninit::<libc::passwd>::uninit();
        let mut found = null_mut();
        // SAFETY: the name ends in a zero, the entry and the buffer are ours and of the sizes given, and `found` is null
        // or the entry, which is filled then.
        let code = unsafe {
            libc::getpwnam_r(
                name.as_ptr(),
                entry.as_mut_ptr(),
                buffer.as_mut_ptr().cast(),
                buffer.len(),
                &mut found,
            )
        };
        // SAFETY: as said, not null means filled.
        (code, (!found.is_null()).then(|| unsafe { entry.assume_init() }.pw_uid))
    })
}

pub fn group(name: &str) -> Option<u32> {
    let name = CString::new(name).ok()?;
    look(|buffer| {
        let mut entry = MaybeUninit::<libc::group>::uninit();
        let mut found = null_mut();
        // SAFETY: as above, for a group.
        let code = unsafe {
            libc::getgrnam_r(
                name.as_ptr(),
                entry.as_mut_ptr(),
                buffer.as_mut_ptr().cast(),
                buffer.len(),
                &mut found,
            )
        };
        // SAFETY: as above.
        (code, (!found.is_null()).then(|| unsafe { entry.assume_init() }.gr_gid))
    })
}

/// What a user is called. This may ask a server of the network, so the daemon's own loop must not.
pub fn name_of_user(user: u32) -> Option<String> {
    look(|buffer| {
        let mut entry = MaybeUninit::<libc::passwd>::uninit();
        let mut found = null_mut();
        // SAFETY: the entry and the buffer are ours and of the sizes given, and `found` is null or the entry, which is filled
        // then.
        let code = unsafe {
            libc::getpwuid_r(user, entry.as_mut_ptr(), buffer.as_mut_ptr().cast(), buffer.len(), &mut found)
        };
        if found.is_null() {
            return (code, None);
        }
        // SAFETY: as said, not null means filled.
        let entry = unsafe { entry.assume_init() };
        // SAFETY: the name of an entry that was filled ends in a zero, in the buffer, which is still there.
        let name = unsafe { CStr::from_ptr(entry.pw_name) };
        (code, Some(name.to_string_lossy().into_owned()))
    })
}

/// Asks with ever larger buffers, until the answer fits.
fn look<T>(mut ask: impl FnMut(&mut [u8]) -> (i32, Option<T>)) -> Option<T> {
    let mut buffer = vec![0; 1 << 12];
    loop {
        match ask(&mut buffer) {
            (libc::ERANGE, _) if buffer.len() < LONGEST => buffer.resize(buffer.len() * 4, 0),
            (_, found) => return found,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_is_known_and_nonsense_is_not() {
        assert_eq!(user("root"), Some(0));
        assert_eq!(name_of_user(0).as_deref(), Some("root"));
        assert_eq!(name_of_user(4_000_000_000), None);
        assert_eq!(group("root"), Some(0));
        assert_eq!(user("no such user"), None);
        assert_eq!(group("no\0such"), None);
        assert_eq!(name_of_user(0).as_deref(), Some("root"));
        assert_eq!(name_of_user(u32::MAX - 7), None);
    }
}
