//! The boundary with C: every call comes through `call`, every pointer is taken apart here.
//!
//! The exported functions convert each argument with [`FromC`] into the type that the implementation asks
//! for: `Out` for a result, `In` for a struct, `Array` with a count elsewhere, `Text`, a `Handle`. Holding one
//! means that the *caller of the CUDA function* has promised what CUDA's manual demands of that parameter:
//! null, or valid for as many elements as the call says, for as long as the call lasts. They are not `Send`,
//! so none outlives its call. Behind them everything is safe Rust.

mod image;
mod unions;

use std::cell::Cell;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;

use cuda_abi::*;

use crate::error::{Error, Result, refuse};
use crate::handles::{Handle, Object};
use crate::log::{self, Level};
use crate::state::control::Refusal;
pub use image::image_at;
pub use unions::{NodeParams, location_id, node_params, sm_resource, words_of, words_of_attribute};

/// Runs the body of an entry point: nothing may unwind into C, and failures are said if asked.
pub fn call(name: &str, body: impl FnOnce() -> Result<()>) -> CUresult {
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(())) => CUDA_SUCCESS,
        Ok(Err(error)) => {
            report(name, &error);
            error.code
        }
        Err(_) => {
            log::say(Level::Warn, format_args!("{name}: a bug in the software driver; please report it"));
            CUDA_ERROR_UNKNOWN
        }
    }
}

/// Runs the body of our own entry point, whose answers are 0 or a number of the kernel's, negative.
pub fn control(body: impl FnOnce() -> std::result::Result<(), Refusal>) -> c_int {
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(())) => 0,
        Ok(Err(refusal)) => refusal.errno(),
        Err(_) => -libc::EIO,
    }
}

fn report(name: &str, error: &Error) {
    let level = match error.code {
        CUDA_ERROR_NOT_READY => return,
        _ if error.why.is_some() => Level::Warn,
        _ => Level::Debug,
    };
    log::say(level, format_args!("{name}: {error}"));
}

thread_local! {
    static PER_THREAD: Cell<bool> = const { Cell::new(false) };
}

/// Runs a call for which the null stream means the thread's own default stream.
pub fn per_thread(body: impl FnOnce() -> Result<()>) -> Result<()> {
    struct Restore(bool);
    impl Drop for Restore {
        fn drop(&mut self) {
            PER_THREAD.set(self.0);
        }
    }
    let _restore = Restore(PER_THREAD.replace(true));
    body()
}

/// Whether the null stream means the thread's own default stream in this call.
pub fn is_per_thread() -> bool {
    PER_THREAD.get()
}

thread_local! {
    static IN_HOST_FUNCTION: Cell<bool> = const { Cell::new(false) };
}

/// Whether the calling thread is running a host function of a stream, where CUDA must not be used.
pub fn is_forbidden_here() -> bool {
    IN_HOST_FUNCTION.get()
}

/// Runs one of the few calls that host functions may make, too.
pub fn even_in_host_functions<T>(body: impl FnOnce() -> T) -> T {
    let forbidden = IN_HOST_FUNCTION.replace(false);
    let result = body();
    IN_HOST_FUNCTION.set(forbidden);
    result
}

/// Runs a function of the program that may not use CUDA.
fn as_host_function(body: impl FnOnce()) {
    IN_HOST_FUNCTION.set(true);
    body();
    IN_HOST_FUNCTION.set(false);
}

/// The one conversion from what C passes.
pub trait FromC<C> {
    /// # Safety
    /// `value` is an argument of a CUDA function that is being called, and is as its manual demands.
    unsafe fn from_c(value: C) -> Self;
}

impl<T> FromC<T> for T {
    unsafe fn from_c(value: T) -> T {
        value
    }
}

/// An argument on its way to the same function under another name, with the caller's promise.
pub struct Passed<T>(T);

impl<T> FromC<T> for Passed<T> {
    unsafe fn from_c(value: T) -> Passed<T> {
        Passed(value)
    }
}

impl<T> Passed<T> {
    pub fn on<U: FromC<T>>(self) -> U {
        // SAFETY: it became `Passed` under the same condition.
        unsafe { U::from_c(self.0) }
    }
}

/// Where one result goes.
pub struct Out<T>(*mut T);

impl<T> FromC<*mut T> for Out<T> {
    unsafe fn from_c(value: *mut T) -> Out<T> {
        Out(value)
    }
}

impl<T> Out<T> {
    /// For a result that nobody asked for.
    pub fn nowhere() -> Out<T> {
        Out(ptr::null_mut())
    }

    /// For a result that we want ourselves.
    pub fn to(place: &mut T) -> Out<T> {
        Out(place)
    }

    pub fn is_null(&self) -> bool {
        self.0.is_null()
    }

    /// Null is an error before anything else is done.
    pub fn check(&self) -> Result<()> {
        if self.is_null() { refuse(CUDA_ERROR_INVALID_VALUE) } else { Ok(()) }
    }

    pub fn set(&self, value: T) -> Result<()> {
        self.check()?;
        self.set_if_wanted(value);
        Ok(())
    }

    /// For results that a caller may decline with null.
    pub fn set_if_wanted(&self, value: T) {
        if !self.0.is_null() {
            // SAFETY: the caller promised a writable place for one `T`; alignment is not taken for granted.
            unsafe { self.0.write_unaligned(value) };
        }
    }

    /// The same place taken for another type of result.
    pub fn cast<U>(&self) -> Out<U> {
        Out(self.0.cast())
    }
}

impl<T: Copy> Out<T> {
    /// For parameters that go both ways.
    pub fn read(&self) -> Result<T> {
        In(self.0.cast_const()).get()
    }
}

/// One struct that the caller passes by pointer.
pub struct In<T>(*const T);

impl<T> FromC<*const T> for In<T> {
    unsafe fn from_c(value: *const T) -> In<T> {
        In(value)
    }
}

impl<T> FromC<*mut T> for In<T> {
    unsafe fn from_c(value: *mut T) -> In<T> {
        In(value.cast_const())
    }
}

impl<T: Copy> In<T> {
    pub fn optional(&self) -> Option<T> {
        // SAFETY: not null, so the caller promised a readable `T`.
        (!self.0.is_null()).then(|| unsafe { self.0.read_unaligned() })
    }

    pub fn get(&self) -> Result<T> {
        self.optional().ok_or(CUDA_ERROR_INVALID_VALUE.into())
    }

    /// The struct's first bytes taken for another type.
    pub fn cast<U>(&self) -> In<U> {
        In(self.0.cast())
    }
}

/// Several values, as many as another parameter of the call says.
pub struct Array<T>(*mut T);

impl<T> FromC<*mut T> for Array<T> {
    unsafe fn from_c(value: *mut T) -> Array<T> {
        Array(value)
    }
}

impl<T> FromC<*const T> for Array<T> {
    unsafe fn from_c(value: *const T) -> Array<T> {
        Array(value.cast_mut())
    }
}

impl<T: Copy> Array<T> {
    pub fn is_null(&self) -> bool {
        self.0.is_null()
    }

    /// `count` is the number the caller gave for this array.
    pub fn read(&self, count: usize) -> Result<Vec<T>> {
        if count > 0 && self.0.is_null() {
            return refuse(CUDA_ERROR_INVALID_VALUE);
        }
        let mut values: Vec<T> = Vec::new();
        // A number that no memory could hold is a mistake of the caller, not a reason to end the process.
        values.try_reserve_exact(count).map_err(|_| CUDA_ERROR_OUT_OF_MEMORY)?;
        let (from, to) = (self.0.cast_const().cast::<u8>(), values.as_mut_ptr().cast::<u8>());
        // SAFETY: the caller promised `count` readable elements, of any alignment; the room was just made.
        unsafe { ptr::copy_nonoverlapping(from, to, count * size_of::<T>()) };
        // SAFETY: so many elements were just written.
        unsafe { values.set_len(count) };
        Ok(values)
    }

    /// An element inside the number the caller gave.
    pub fn at(&self, index: usize) -> T {
        let place = self.0.wrapping_add(index);
        // SAFETY: the caller promised so many readable elements.
        unsafe { place.read_unaligned() }
    }

    /// Writes `values`, not more than the caller said there is room for.
    pub fn write(&self, values: &[T]) -> Result<()> {
        if !values.is_empty() && self.0.is_null() {
            return refuse(CUDA_ERROR_INVALID_VALUE);
        }
        for (index, value) in values.iter().enumerate() {
            self.put(index, *value);
        }
        Ok(())
    }

    pub fn put(&self, index: usize, value: T) {
        let place = self.0.wrapping_add(index);
        // SAFETY: the caller promised so many writable elements.
        unsafe { place.write_unaligned(value) };
    }

    /// Reads until `last` holds, that element included, but not beyond `most`.
    pub fn read_until(&self, most: usize, last: impl Fn(T) -> bool) -> Vec<T> {
        let mut values = Vec::new();
        while values.len() < most {
            let value = self.at(values.len());
            values.push(value);
            if last(value) {
                break;
            }
        }
        values
    }
}

/// A string that ends with a zero byte.
pub struct Text(*const c_char);

impl FromC<*const c_char> for Text {
    unsafe fn from_c(value: *const c_char) -> Text {
        Text(value)
    }
}

impl Text {
    /// The bytes before the zero byte.
    fn bytes(&self) -> Result<&[u8]> {
        if self.0.is_null() {
            return refuse(CUDA_ERROR_INVALID_VALUE);
        }
        // SAFETY: the caller promised a string that ends with a zero byte, for as long as the call lasts.
        Ok(unsafe { CStr::from_ptr(self.0) }.to_bytes())
    }

    /// The string, of which bytes that are no UTF-8 match no name anyway.
    pub fn get(&self) -> Result<String> {
        Ok(String::from_utf8_lossy(self.bytes()?).into_owned())
    }
}

/// A place in memory that is only passed on or compared, or read piece by piece with `part`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Address(pub u64);

impl<T> FromC<*mut T> for Address {
    unsafe fn from_c(value: *mut T) -> Address {
        Address(value.expose_provenance() as u64)
    }
}

impl<T> FromC<*const T> for Address {
    unsafe fn from_c(value: *const T) -> Address {
        Address(value.expose_provenance() as u64)
    }
}

impl Address {
    pub fn is_null(self) -> bool {
        self.0 == 0
    }

    /// Whether these bytes lie there, looked at one by one.
    fn begins_with(self, bytes: &[u8]) -> bool {
        bytes.iter().enumerate().all(|(index, byte)| self.values::<u8>().at(index) == *byte)
    }

    pub fn pointer(self) -> *mut c_void {
        ptr::with_exposed_provenance_mut(self.0 as usize)
    }

    /// The values that lie there, in a call that says there are some.
    pub fn values<T: Copy>(self) -> Array<T> {
        Array(self.pointer().cast())
    }
}

impl<T: Object> FromC<*mut T::Raw> for Handle<T> {
    unsafe fn from_c(value: *mut T::Raw) -> Handle<T> {
        Handle::of(value.addr() as u64)
    }
}

/// A function of the program, with the argument it wants.
#[derive(Clone, Copy)]
pub struct HostFunction {
    function: unsafe extern "C" fn(*mut c_void),
    argument: u64,
}

impl HostFunction {
    pub fn new(function: CUhostFn, argument: Address) -> Result<HostFunction> {
        let function = function.ok_or(CUDA_ERROR_INVALID_VALUE)?;
        Ok(HostFunction { function, argument: argument.0 })
    }

    pub fn call(self) {
        let argument = Address(self.argument).pointer();
        // SAFETY: the program passed function and argument to be called with each other, from another thread.
        as_host_function(|| unsafe { (self.function)(argument) });
    }

    pub fn parts(self) -> (CUhostFn, Address) {
        (Some(self.function), Address(self.argument))
    }
}

/// The older form of a host function, which is told how the stream is.
#[derive(Clone, Copy)]
pub struct StreamCallback {
    function: unsafe extern "C" fn(CUstream, CUresult, *mut c_void),
    stream: u64,
    argument: u64,
}

impl StreamCallback {
    pub fn new(function: CUstreamCallback, stream: u64, argument: Address) -> Result<StreamCallback> {
        let function = function.ok_or(CUDA_ERROR_INVALID_VALUE)?;
        Ok(StreamCallback { function, stream, argument: argument.0 })
    }

    pub fn call(self, status: CUresult) {
        let stream = ptr::without_provenance_mut(self.stream as usize);
        let argument = Address(self.argument).pointer();
        // SAFETY: as for `HostFunction`.
        as_host_function(|| unsafe { (self.function)(stream, status, argument) });
    }
}

/// What the program computes the shared memory of a block with.
pub fn block_to_shared(function: CUoccupancyB2DSize, block: i32) -> Option<usize> {
    // SAFETY: the program passed the function to be called with block sizes.
    function.map(|function| unsafe { function(block) })
}

/// A place for a result that the program named in a list of places.
pub fn out_at<T>(place: Address) -> Out<T> {
    Out(place.pointer().cast())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_unwinds_into_c() {
        let code = call("cuTest", || panic!("a bug, for the test"));
        assert_eq!(code, CUDA_ERROR_UNKNOWN);
        assert_eq!(call("cuTest", || Ok(())), CUDA_SUCCESS);
        assert_eq!(call("cuTest", || refuse(CUDA_ERROR_NOT_READY)), CUDA_ERROR_NOT_READY);
    }

    #[test]
    fn the_meaning_of_the_null_stream_ends_with_the_call() {
        assert!(!is_per_thread());
        let inside = per_thread(|| {
            assert!(is_per_thread());
            refuse(CUDA_ERROR_INVALID_VALUE)
        });
        assert!(inside.is_err() && !is_per_thread());
        let unwound = catch_unwind(|| per_thread(|| panic!("a bug, for the test")));
        assert!(unwound.is_err() && !is_per_thread());
    }

    #[test]
    fn null_is_an_error_or_nothing() {
        let nowhere = Out::<u32>::nowhere();
        assert!(nowhere.set(1).is_err() && nowhere.read().is_err());
        nowhere.set_if_wanted(1);
        assert!(Address(0).values::<u32>().read(1).is_err());
        assert_eq!(Address(0).values::<u32>().read(0).unwrap(), []);
        assert!(Text(ptr::null()).get().is_err());
    }

    #[test]
    fn values_pass_both_ways() {
        let mut number = 7u32;
        let out = Out::to(&mut number);
        assert_eq!(out.read().unwrap(), 7);
        out.set(8).unwrap();
        assert_eq!(number, 8);
        let numbers = [1u16, 2, 3, 0, 5];
        let array = Address(numbers.as_ptr().expose_provenance() as u64).values::<u16>();
        assert_eq!(array.read(2).unwrap(), [1, 2]);
        assert_eq!(array.read_until(5, |number| number == 0), [1, 2, 3, 0]);
    }

    #[test]
    fn host_functions_may_not_use_the_driver() {
        let mut seen = false;
        as_host_function(|| {
            seen = is_forbidden_here();
            even_in_host_functions(|| assert!(!is_forbidden_here()));
            assert!(is_forbidden_here());
        });
        assert!(seen && !is_forbidden_here());
    }
}
