//! A piece of pinned memory through which the host sees what is on the device, and the stream by which it comes.

use std::ptr;

use cuda_abi::{CUDA_ERROR_NOT_READY, CUDA_SUCCESS, CUstream};
use model::Nanos;

use super::still::wait_until;
use crate::guard::driver::ok;
use crate::next;

/// How much is seen at once.
pub const BYTES: usize = 4 << 20;
/// There are two panes, to compare what is seen through them.
const PANES: usize = 2;
/// How long it may take to copy all that is ever copied at once.
const PATIENCE: Nanos = Nanos::from_millis(60_000);

pub struct Window {
    panes: *mut u8,
    stream: CUstream,
}

/// A stream that does not wait for the program's default stream; `urgent`: before all others.
pub fn make_stream(urgent: bool) -> Option<CUstream> {
    const NON_BLOCKING: u32 = 1;
    let (mut least, mut greatest) = (0, 0);
    // SAFETY: places for the answers.
    ok(unsafe { next::call::cuCtxGetStreamPriorityRange(&mut least, &mut greatest) })?;
    let mut stream: CUstream = ptr::null_mut();
    let priority = if urgent { greatest } else { least };
    // SAFETY: a place for the answer.
    ok(unsafe { next::call::cuStreamCreateWithPriority(&mut stream, NON_BLOCKING, priority) })?;
    Some(stream)
}

pub fn end_stream(stream: CUstream) {
    // SAFETY: a stream of ours, which nobody uses any more. What is in it goes on to its end.
    let _ = unsafe { next::call::cuStreamDestroy_v2(stream) };
}

/// Waits until a stream of ours has done what it was given. `None`: not in time, or the context has failed.
pub fn wait_for(stream: CUstream, at_most: Nanos) -> Option<()> {
    wait_until(at_most, || {
        // SAFETY: a stream of ours.
        match unsafe { next::call::cuStreamQuery(stream) } {
            CUDA_SUCCESS => Some(true),
            CUDA_ERROR_NOT_READY => Some(false),
            _ => None,
        }
    })
}

impl Window {
    pub fn make() -> Option<Window> {
        let stream = make_stream(false)?;
        let mut panes = ptr::null_mut();
        // SAFETY: a place for the answer.
        if ok(unsafe { next::call::cuMemHostAlloc(&mut panes, PANES * BYTES, 0) }).is_none() {
            end_stream(stream);
            return None;
        }
        Some(Window { panes: panes.cast(), stream })
    }

    /// Copies between places that kernels can reach, and waits for it.
    pub fn copy(&self, to: u64, from: u64, bytes: usize) -> Option<()> {
        // SAFETY: our callers name allocations, of which each has so many bytes.
        ok(unsafe { next::call::cuMemcpyAsync(to, from, bytes, self.stream) })?;
        wait_for(self.stream, PATIENCE)
    }

    /// Gives back device memory once what was given to our stream is done; what others have is not waited for.
    pub fn give_back(&self, device: u64) {
        // SAFETY: our callers own the memory, and have used it in this stream only.
        let _ = unsafe { next::call::cuMemFreeAsync(device, self.stream) };
    }

    /// What lies on the device at each of these places, so many bytes of it. No more than a pane is wide.
    pub fn look<const N: usize>(&mut self, places: [u64; N], bytes: usize) -> Option<[&[u8]; N]> {
        const { assert!(N <= PANES) };
        let bytes = bytes.min(BYTES);
        let panes = std::array::from_fn::<_, N, _>(|index| self.panes.wrapping_add(index * BYTES));
        for (pane, place) in panes.into_iter().zip(places) {
            // SAFETY: a pane of ours has room for so many bytes; where they come from, our callers know.
            ok(unsafe { next::call::cuMemcpyDtoHAsync_v2(pane.cast(), place, bytes, self.stream) })?;
        }
        wait_for(self.stream, PATIENCE)?;
        // SAFETY: so many bytes were just written there, and nobody writes more while they are borrowed.
        Some(panes.map(|pane| unsafe { std::slice::from_raw_parts(pane, bytes) }))
    }
}

impl Drop for Window {
    fn drop(&mut self) {
        end_stream(self.stream);
        // SAFETY: our own memory, of which no slice is left.
        let _ = unsafe { next::call::cuMemFreeHost(self.panes.cast()) };
    }
}
