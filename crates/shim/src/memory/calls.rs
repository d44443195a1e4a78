//! The functions that allocate and free.
//!
//! An allocation is charged before the driver is asked, and refused here if it goes beyond the limit. What the driver
//! refuses is counted off again. What is freed is forgotten before the driver is asked, for it may give the same address
//! to another thread as soon as it has it, and is counted off when the driver has agreed.

#![allow(non_snake_case)]

use std::ffi::{c_uint, c_ulonglong, c_void};

use cuda_abi::{
    CU_MEM_LOCATION_TYPE_DEVICE, CUDA_ARRAY_DESCRIPTOR, CUDA_ARRAY_DESCRIPTOR_v1, CUDA_ARRAY3D_DESCRIPTOR,
    CUDA_ARRAY3D_DESCRIPTOR_v1, CUDA_ERROR_OUT_OF_MEMORY, CUDA_SUCCESS, CUarray, CUdeviceptr, CUdeviceptr_v1,
    CUmemAllocationProp, CUmemGenericAllocationHandle, CUmemLocation, CUmemPoolProps, CUmemoryPool,
    CUmipmappedArray, CUresult, CUstream,
};
use model::Bytes;
use telemetry::{Counter, Note};

use super::account::{self, Charged};
use super::holdings;
use super::table::{Entry, Key, Kind, NoRoom};
use super::{Home, physical, quietly, shape};
use crate::log::say;
use crate::next;
use crate::watch::Watch;

/// An allocation that was charged.
struct Charge {
    home: Home,
    bytes: u64,
}

impl Charge {
    /// It was made after all, and is so large.
    fn keep(self, kept: impl FnOnce(Home, u64) -> Result<(), NoRoom>, bytes: u64, watch: &Watch) {
        if bytes != self.bytes {
            account::of(self.home.device).correct(self.bytes, bytes);
        }
        if kept(self.home, bytes).is_err() {
            watch.ledger.note(Note::OutOfMemory);
        }
    }

    fn refund(self) {
        account::of(self.home.device).refund(self.bytes);
    }
}

/// The limit forbids it.
struct Denied;

/// `None` where it is not counted.
fn charge(name: &'static str, home: Option<Home>, bytes: u64) -> Result<Option<Charge>, Denied> {
    let Some(home) = home.filter(|_| bytes > 0) else { return Ok(None) };
    match quietly(name, |watch| account::of(home.device).charge(bytes, watch)) {
        Some(Charged::Yes) => Ok(Some(Charge { home, bytes })),
        Some(Charged::Denied) => Err(denied(name, bytes)),
        Some(Charged::Not) | None => Ok(None),
    }
}

#[cold]
fn denied(name: &'static str, bytes: u64) -> Denied {
    quietly(name, |watch| watch.ledger.add(Counter::AllocationsDenied, 1));
    say!("{name}: {} more would go beyond the limit of memory", Bytes(bytes));
    Denied
}

/// Makes an allocation of so many bytes. `kept` remembers it, `known` says how large it is once the driver has said so.
fn allocate(
    name: &'static str,
    home: Option<Home>,
    bytes: u64,
    call: impl FnOnce() -> CUresult,
    known: impl FnOnce() -> u64,
    kept: impl FnOnce(Home, u64) -> Result<(), NoRoom>,
) -> CUresult {
    let Ok(charge) = charge(name, home, bytes) else { return CUDA_ERROR_OUT_OF_MEMORY };
    let result = call();
    if let Some(charge) = charge {
        quietly(name, |watch| match result == CUDA_SUCCESS {
            true => charge.keep(kept, known(), watch),
            false => charge.refund(),
        });
    }
    result
}

/// Frees what a key means.
fn free(name: &'static str, key: Key, call: impl FnOnce() -> CUresult) -> CUresult {
    let taken = quietly(name, |_| holdings::take(key)).flatten();
    let result = call();
    if let Some(entry) = taken {
        quietly(name, |_| match result == CUDA_SUCCESS {
            true => holdings::gone(entry),
            false => holdings::put_back(key, entry),
        });
    }
    result
}

fn key(kind: Kind, number: impl Into<u64>) -> Key {
    Key { kind, number: number.into() }
}

/// What a stream-ordered allocation belongs to. One that is captured will be made by a graph, and be the graph's own.
fn of_stream(pool: Option<CUmemoryPool>, stream: CUstream, per_thread: bool) -> Option<Home> {
    let home = Home::on_device_here()?;
    let captured = quietly("cuMemAllocAsync", |watch| watch.captured(stream, per_thread))?;
    match pool.filter(|_| !captured).and_then(|pool| holdings::get(key(Kind::Pool, pool.addr() as u64))) {
        _ if captured => None,
        // Nought is a pool that is not on a device.
        Some(Entry { of, .. }) => Home::on(i32::try_from(of).ok()?.checked_sub(1)?),
        None => Some(home),
    }
}

/// Functions that write the address of so many bytes.
macro_rules! addresses {
    ($($home:ident {
        $(fn $name:ident($out:ident: *mut $pointer:ty, $($argument:ident: $type:ty),*) = $bytes:expr, $known:expr;)+
    })*) => {
        $($(
            /// # Safety
            /// As the driver's manual says.
            pub unsafe fn $name($out: *mut $pointer, $($argument: $type),*) -> CUresult {
                allocate(
                    stringify!($name),
                    Home::$home(),
                    $bytes,
                    // SAFETY: passed on to our caller.
                    || unsafe { next::call::$name($out, $($argument),*) },
                    || $known,
                    // SAFETY: the driver has just written there.
                    |home, bytes| holdings::keep(key(Kind::Pointer, unsafe { $out.read() }), home, bytes),
                )
            }
        )+)*
    };
}
addresses! {
    here {
        fn cuMemAlloc(address: *mut CUdeviceptr_v1, bytes: c_uint) = bytes.into(), bytes.into();
        fn cuMemAlloc_v2(address: *mut CUdeviceptr, bytes: usize) = bytes as u64, bytes as u64;
        fn cuMemAllocManaged(address: *mut CUdeviceptr, bytes: usize, flags: c_uint) =
            bytes as u64, bytes as u64;
        fn cuMemAllocPitch(
            address: *mut CUdeviceptr_v1, pitch: *mut c_uint, width: c_uint, rows: c_uint, element: c_uint
        ) = shape::pitched(width.into(), rows.into()), {
            // SAFETY: the driver has just written there.
            u64::from(unsafe { pitch.read() }).saturating_mul(rows.into())
        };
        fn cuMemAllocPitch_v2(
            address: *mut CUdeviceptr, pitch: *mut usize, width: usize, rows: usize, element: c_uint
        ) = shape::pitched(width as u64, rows as u64), {
            // SAFETY: the driver has just written there.
            (unsafe { pitch.read() } as u64).saturating_mul(rows as u64)
        };
    }
}

/// Functions that write the address of bytes from a pool, in the order of a stream.
macro_rules! ordered {
    ($($name:ident($($pool:ident)?), $per_thread:literal;)*) => {
        $(
            /// # Safety
            /// As the driver's manual says.
            pub unsafe fn $name(
                address: *mut CUdeviceptr,
                bytes: usize,
                $($pool: CUmemoryPool,)?
                stream: CUstream,
            ) -> CUresult {
                allocate(
                    stringify!($name),
                    of_stream(ordered!(@ $($pool)?), stream, $per_thread),
                    bytes as u64,
                    // SAFETY: passed on to our caller.
                    || unsafe { next::call::$name(address, bytes, $($pool,)? stream) },
                    || bytes as u64,
                    // SAFETY: the driver has just written there.
                    |home, bytes| holdings::keep(key(Kind::Pointer, unsafe { address.read() }), home, bytes),
                )
            }
        )*
    };
    (@) => { None };
    (@ $pool:ident) => { Some($pool) };
}
ordered! {
    cuMemAllocAsync(), false;
    cuMemAllocAsync_ptsz(), true;
    cuMemAllocFromPoolAsync(pool), false;
    cuMemAllocFromPoolAsync_ptsz(pool), true;
}

/// Functions that write the handle of an array.
macro_rules! arrays {
    ($($kind:ident { $(fn $name:ident(
        $out:ident: *mut $array:ty, $shape:ident: *const $description:ty $(, $levels:ident: $type:ty)?
    );)+ })*) => {
        $($(
            /// # Safety
            /// As the driver's manual says.
            pub unsafe fn $name(
                $out: *mut $array,
                $shape: *const $description,
                $($levels: $type,)?
            ) -> CUresult {
                // SAFETY: null, or what the program wants read.
                let described = unsafe { $shape.as_ref() };
                let bytes = described.map_or(0, |shape| shape::array(shape, arrays!(@ $($levels)?)));
                allocate(
                    stringify!($name),
                    Home::here(),
                    bytes,
                    // SAFETY: passed on to our caller.
                    || unsafe { next::call::$name($out, $shape, $($levels)?) },
                    || bytes,
                    |home, bytes| {
                        // SAFETY: the driver has just written there.
                        holdings::keep(key(Kind::$kind, unsafe { $out.read() }.addr() as u64), home, bytes)
                    },
                )
            }
        )+)*
    };
    (@) => { 1 };
    (@ $levels:ident) => { $levels };
}
arrays! {
    Array {
        fn cuArrayCreate(array: *mut CUarray, shape: *const CUDA_ARRAY_DESCRIPTOR_v1);
        fn cuArrayCreate_v2(array: *mut CUarray, shape: *const CUDA_ARRAY_DESCRIPTOR);
        fn cuArray3DCreate(array: *mut CUarray, shape: *const CUDA_ARRAY3D_DESCRIPTOR_v1);
        fn cuArray3DCreate_v2(array: *mut CUarray, shape: *const CUDA_ARRAY3D_DESCRIPTOR);
    }
    Mipmap {
        fn cuMipmappedArrayCreate(
            array: *mut CUmipmappedArray, shape: *const CUDA_ARRAY3D_DESCRIPTOR, levels: c_uint);
    }
}

/// # Safety
/// As the driver's manual says.
pub unsafe fn cuMemCreate(
    handle: *mut CUmemGenericAllocationHandle,
    bytes: usize,
    properties: *const CUmemAllocationProp,
    flags: c_ulonglong,
) -> CUresult {
    // SAFETY: null, or what the program wants read.
    let described = unsafe { properties.as_ref() };
    allocate(
        "cuMemCreate",
        described.and_then(|properties| device_in(&properties.location)).and_then(Home::on),
        bytes as u64,
        // SAFETY: passed on to our caller.
        || unsafe { next::call::cuMemCreate(handle, bytes, properties, flags) },
        || bytes as u64,
        // SAFETY: the driver has just written there.
        |home, bytes| physical::made(unsafe { handle.read() }, home, bytes),
    )
}

/// The device that a location names; `None` if it is the host's.
fn device_in(location: &CUmemLocation) -> Option<i32> {
    // SAFETY: every value of the union begins with the number.
    let number = unsafe { location.__bindgen_anon_1.id };
    (location.type_ == CU_MEM_LOCATION_TYPE_DEVICE).then_some(number)
}

/// # Safety
/// As the driver's manual says.
pub unsafe fn cuMemRelease(handle: CUmemGenericAllocationHandle) -> CUresult {
    let releasing = quietly("cuMemRelease", |_| physical::release(handle)).flatten();
    // SAFETY: passed on to our caller.
    let result = unsafe { next::call::cuMemRelease(handle) };
    if let Some(releasing) = releasing {
        quietly("cuMemRelease", |_| match result == CUDA_SUCCESS {
            true => releasing.done(),
            false => releasing.undone(),
        });
    }
    result
}

/// # Safety
/// As the driver's manual says.
pub unsafe fn cuMemMap(
    address: CUdeviceptr,
    bytes: usize,
    offset: usize,
    handle: CUmemGenericAllocationHandle,
    flags: c_ulonglong,
) -> CUresult {
    // SAFETY: passed on to our caller.
    let result = unsafe { next::call::cuMemMap(address, bytes, offset, handle, flags) };
    if result == CUDA_SUCCESS {
        quietly("cuMemMap", |_| physical::mapped(address, bytes as u64, handle));
    }
    result
}

/// # Safety
/// As the driver's manual says.
pub unsafe fn cuMemUnmap(address: CUdeviceptr, bytes: usize) -> CUresult {
    // SAFETY: passed on to our caller.
    let result = unsafe { next::call::cuMemUnmap(address, bytes) };
    if result == CUDA_SUCCESS {
        quietly("cuMemUnmap", |_| physical::unmapped(address, bytes as u64));
    }
    result
}

/// # Safety
/// As the driver's manual says.
pub unsafe fn cuMemRetainAllocationHandle(
    handle: *mut CUmemGenericAllocationHandle,
    address: *mut c_void,
) -> CUresult {
    // SAFETY: passed on to our caller.
    let result = unsafe { next::call::cuMemRetainAllocationHandle(handle, address) };
    // SAFETY: null, or a place that the driver has just written to.
    if let (CUDA_SUCCESS, Some(given)) = (result, unsafe { handle.as_ref() }) {
        quietly("cuMemRetainAllocationHandle", |_| physical::retained(*given, address.addr() as u64));
    }
    result
}

/// # Safety
/// As the driver's manual says.
pub unsafe fn cuMemPoolCreate(pool: *mut CUmemoryPool, properties: *const CUmemPoolProps) -> CUresult {
    // SAFETY: passed on to our caller.
    let result = unsafe { next::call::cuMemPoolCreate(pool, properties) };
    // SAFETY: null, or a place that the driver has just written to.
    let made = unsafe { pool.as_ref() };
    // SAFETY: null, or a place that the driver has just read.
    let described = unsafe { properties.as_ref() };
    if let (CUDA_SUCCESS, Some(made), Some(described)) = (result, made, described) {
        let of = device_in(&described.location).map_or(0, |device| i64::from(device).unsigned_abs() + 1);
        quietly("cuMemPoolCreate", |_| {
            holdings::put_back(key(Kind::Pool, made.addr() as u64), Entry { of, ..Entry::default() });
        });
    }
    result
}

macro_rules! frees {
    ($($name:ident($number:ident: $type:ty $(, $argument:ident: $other:ty)?) = $kind:ident, $value:expr;)*) => {
        $(
            /// # Safety
            /// As the driver's manual says.
            pub unsafe fn $name($number: $type $(, $argument: $other)?) -> CUresult {
                // SAFETY: passed on to our caller.
                free(stringify!($name), key(Kind::$kind, $value), || unsafe {
                    next::call::$name($number $(, $argument)?)
                })
            }
        )*
    };
}
frees! {
    cuMemFree(address: CUdeviceptr_v1) = Pointer, address;
    cuMemFree_v2(address: CUdeviceptr) = Pointer, address;
    cuMemFreeAsync(address: CUdeviceptr, stream: CUstream) = Pointer, address;
    cuMemFreeAsync_ptsz(address: CUdeviceptr, stream: CUstream) = Pointer, address;
    cuArrayDestroy(array: CUarray) = Array, array.addr() as u64;
    cuMipmappedArrayDestroy(array: CUmipmappedArray) = Mipmap, array.addr() as u64;
    cuMemPoolDestroy(pool: CUmemoryPool) = Pool, pool.addr() as u64;
}
