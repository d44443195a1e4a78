//! How many blocks of a launch are on a GPU at once, by what each needs of a multiprocessor.
//!
//! The driver could be asked, but the question may have it load code, for which it brings the GPU to rest. An estimate is
//! enough here: one that is too high makes blocks seem longer than they are, and a promise more careful.

use cuda_abi::{
    CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR, CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR,
    CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR,
    CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT,
    CUDA_SUCCESS, CUdevice_attribute,
};

use model::Geometry;

use super::attributes::Needs;
use crate::next;

/// The size of a launch.
#[derive(Clone, Copy)]
pub struct Shape {
    pub blocks: u64,
    /// Of a block.
    pub threads: u32,
    /// Bytes that a block has asked for at the launch.
    pub shared: u32,
}

impl Shape {
    pub fn of(geometry: Geometry) -> Shape {
        let blocks = geometry.grid.volume().unwrap_or(u64::MAX);
        let threads = geometry.block.volume().and_then(|threads| u32::try_from(threads).ok());
        Shape { blocks, threads: threads.unwrap_or(u32::MAX), shared: geometry.shared_bytes }
    }
}

/// What a GPU has, each multiprocessor of it but for their number.
#[derive(Clone, Copy)]
struct Room {
    multiprocessors: u64,
    blocks: u64,
    threads: u64,
    registers: u64,
    shared: u64,
}

/// In how many rounds the blocks of a launch fit on the GPU of the calling thread; one, where the driver does not tell.
pub fn rounds(shape: Shape, needs: Needs) -> u64 {
    ask().map_or(1, |room| room.rounds(shape, needs))
}

fn ask() -> Option<Room> {
    let device = super::current_device();
    let attribute = |attribute: CUdevice_attribute| {
        let mut value = 0;
        // SAFETY: a place for the answer, and the device of the thread's context.
        let result = unsafe { next::call::cuDeviceGetAttribute(&mut value, attribute, device) };
        u64::try_from(value).ok().filter(|&value| result == CUDA_SUCCESS && value > 0)
    };
    Some(Room {
        multiprocessors: attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?,
        blocks: attribute(CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR)?,
        threads: attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR)?,
        registers: attribute(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR)?,
        shared: attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR)?,
    })
}

impl Room {
    fn rounds(self, shape: Shape, needs: Needs) -> u64 {
        shape.blocks.div_ceil(self.multiprocessors * self.beside(shape, needs)).max(1)
    }

    /// Blocks on one multiprocessor. Threads come in warps, registers in portions of eight, and the system takes a
    /// kilobyte of shared memory for each block.
    fn beside(self, shape: Shape, needs: Needs) -> u64 {
        const WARP: u64 = 32;
        const SYSTEM: u64 = 1024;
        let threads = u64::from(shape.threads).max(1).next_multiple_of(WARP);
        let registers = u64::from(needs.registers).next_multiple_of(8) * threads;
        let shared = u64::from(shape.shared) + u64::from(needs.shared) + SYSTEM;
        let by_registers = self.registers.checked_div(registers).unwrap_or(u64::MAX);
        let least = self.blocks.min(self.threads / threads).min(by_registers).min(self.shared / shared);
        least.max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const H200: Room =
        Room { multiprocessors: 132, blocks: 32, threads: 2048, registers: 65_536, shared: 233_472 };

    fn beside(threads: u32, registers: u32, shared: u32) -> u64 {
        H200.beside(Shape { blocks: 1, threads, shared }, Needs { registers, shared: 0 })
    }

    #[test]
    fn the_scarcest_decides() {
        assert_eq!(beside(32, 16, 0), 32, "blocks");
        assert_eq!(beside(256, 32, 0), 8, "threads");
        assert_eq!(beside(256, 255, 0), 1, "registers");
        assert_eq!(beside(128, 32, 100 << 10), 2, "shared memory");
        assert_eq!(beside(1024, 0, 0), 2, "unknown registers are none");
        assert_eq!(beside(1 << 20, 255, u32::MAX), 1, "who runs at all fits once");
    }

    #[test]
    fn rounds_are_counted_over_all_multiprocessors() {
        let launch = |blocks| {
            H200.rounds(Shape { blocks, threads: 256, shared: 0 }, Needs { registers: 32, shared: 0 })
        };
        assert_eq!((launch(0), launch(1), launch(132 * 8), launch(132 * 8 + 1)), (1, 1, 1, 2));
    }
}
