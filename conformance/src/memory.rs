//! Device memory with a type.

use crate::context::Context;
use crate::driver::{CU_MEMHOSTALLOC_DEVICEMAP, CU_MEMHOSTALLOC_PORTABLE, CUdeviceptr, Driver};
use anyhow::{Result, ensure};
use std::marker::PhantomData;

/// Types whose values are plain bytes: every bit pattern is a value, and there is no padding.
///
/// # Safety
/// Implement it only for types of which that is true.
pub unsafe trait Element: Copy + 'static {
    const ZERO: Self;
}

macro_rules! elements {
    ($($type:ty = $zero:expr),* $(,)?) => {
        // SAFETY: numbers, and types documented as transparent over numbers: any bits, no padding.
        $(unsafe impl Element for $type { const ZERO: Self = $zero; })*
    };
}

elements! {
    u8 = 0, i8 = 0, u16 = 0, i16 = 0, u32 = 0, i32 = 0, u64 = 0, i64 = 0, f32 = 0.0, f64 = 0.0,
    half::f16 = half::f16::ZERO, half::bf16 = half::bf16::ZERO,
}

// SAFETY: an array of elements has their representation side by side, without padding.
unsafe impl<T: Element, const N: usize> Element for [T; N] {
    const ZERO: Self = [T::ZERO; N];
}

/// The bytes of a slice of elements.
pub fn bytes_of<T: Element>(values: &[T]) -> &[u8] {
    // SAFETY: an `Element` has no padding, so all its bytes are initialised; length and lifetime are the slice's.
    unsafe { std::slice::from_raw_parts(values.as_ptr().cast(), size_of_val(values)) }
}

/// `cuMemAlloc`'d memory holding `len` elements.
pub struct Buffer<'d, T: Element> {
    driver: &'d Driver,
    address: CUdeviceptr,
    len: usize,
    element: PhantomData<T>,
}

impl<'d, T: Element> Buffer<'d, T> {
    /// Room for `len` elements, contents unknown. A length of zero still allocates one element.
    #[track_caller]
    pub fn new(context: &Context<'d>, len: usize) -> Result<Self> {
        let driver = context.driver();
        let mut address = 0;
        driver.cuMemAlloc_v2(&mut address, len.max(1) * size_of::<T>()).ok()?;
        Ok(Buffer { driver, address, len, element: PhantomData })
    }

    pub fn address(&self) -> CUdeviceptr {
        self.address
    }

    pub fn len(&self) -> usize {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub fn bytes(&self) -> usize {
        self.len * size_of::<T>()
    }

    /// Copies to the device, synchronously, from the first element on.
    #[track_caller]
    pub fn write(&self, values: &[T]) -> Result<()> {
        ensure!(values.len() <= self.len, "{} elements into a buffer of {}", values.len(), self.len);
        self.driver.cuMemcpyHtoD_v2(self.address, values.as_ptr().cast(), size_of_val(values)).ok()
    }

    /// Copies everything back; in the order of the legacy default stream, so after the launches made there.
    #[track_caller]
    pub fn read(&self) -> Result<Vec<T>> {
        let mut values = vec![T::ZERO; self.len];
        if self.len > 0 {
            self.driver.cuMemcpyDtoH_v2(values.as_mut_ptr().cast(), self.address, self.bytes()).ok()?;
        }
        Ok(values)
    }
}

impl<T: Element> Drop for Buffer<'_, T> {
    fn drop(&mut self) {
        // After a sticky error this cannot succeed, and the case has already judged that error.
        let _ = self.driver.cuMemFree_v2(self.address);
    }
}

impl<'d> Context<'d> {
    /// A buffer holding a copy of `values`.
    #[track_caller]
    pub fn buffer<T: Element>(&self, values: &[T]) -> Result<Buffer<'d, T>> {
        let buffer = Buffer::new(self, values.len())?;
        if !values.is_empty() {
            buffer.write(values)?;
        }
        Ok(buffer)
    }

    /// A buffer of `len` elements whose bytes are all zero.
    #[track_caller]
    pub fn zeros<T: Element>(&self, len: usize) -> Result<Buffer<'d, T>> {
        let buffer = Buffer::new(self, len)?;
        self.cuMemsetD8_v2(buffer.address(), 0, buffer.bytes().max(1)).ok()?;
        Ok(buffer)
    }
}

/// Pinned host memory that the device sees too: where host and kernels talk while kernels run.
pub struct Pinned<'d, T: Element> {
    driver: &'d Driver,
    host: *mut T,
    device: CUdeviceptr,
    len: usize,
}

// SAFETY: all access is volatile and through raw pointers; that both sides may race is what such memory is for.
unsafe impl<T: Element> Send for Pinned<'_, T> {}
// SAFETY: as for `Send`.
unsafe impl<T: Element> Sync for Pinned<'_, T> {}

impl<'d, T: Element> Pinned<'d, T> {
    /// `len` elements, all zero.
    #[track_caller]
    pub fn new(context: &Context<'d>, len: usize) -> Result<Self> {
        let driver = context.driver();
        let mut host = std::ptr::null_mut();
        let flags = CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_PORTABLE;
        driver.cuMemHostAlloc(&mut host, len * size_of::<T>(), flags).ok()?;
        let mut device = 0;
        driver.cuMemHostGetDevicePointer_v2(&mut device, host, 0).ok()?;
        let pinned = Pinned { driver, host: host.cast(), device, len };
        (0..len).for_each(|i| pinned.set(i, T::ZERO));
        Ok(pinned)
    }

    /// The device's address of the first element.
    pub fn address(&self) -> CUdeviceptr {
        self.device
    }

    pub fn host(&self) -> *mut T {
        self.host
    }

    pub fn set(&self, index: usize, value: T) {
        assert!(index < self.len);
        let place = self.host.wrapping_add(index);
        // SAFETY: the index lies in the allocation, which lives until `self` is dropped and is never a Rust reference.
        unsafe { place.write_volatile(value) }
    }

    pub fn get(&self, index: usize) -> T {
        assert!(index < self.len);
        let place = self.host.wrapping_add(index);
        // SAFETY: as in `set`; any bits are a value of an `Element`.
        unsafe { place.read_volatile() }
    }
}

impl<T: Element> Drop for Pinned<'_, T> {
    fn drop(&mut self) {
        // Fails only after a sticky error, which the case has judged.
        let _ = self.driver.cuMemFreeHost(self.host.cast());
    }
}
