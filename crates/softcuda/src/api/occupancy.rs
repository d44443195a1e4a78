//! Occupancy: how many blocks fit, and which block size fits best.

use super::prelude::*;
use crate::entry::block_to_shared;
use crate::state::function::Function;
use crate::state::library::function_of;

pub fn cuOccupancyMaxActiveBlocksPerMultiprocessor(
    numBlocks: Out<c_int>,
    func: Handle<Function>,
    blockSize: c_int,
    dynamicSMemSize: usize,
) -> Result<()> {
    cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(numBlocks, func, blockSize, dynamicSMemSize, 0)
}

pub fn cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
    numBlocks: Out<c_int>,
    func: Handle<Function>,
    blockSize: c_int,
    dynamicSMemSize: usize,
    flags: c_uint,
) -> Result<()> {
    let context = current::context()?;
    numBlocks.check()?;
    let function = function_of(func)?;
    require(blockSize > 0 && flags & !CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE.0 == 0)?;
    let blocks = function.occupancy(&context.driver.properties, blockSize as u32, dynamicSMemSize as u64);
    numBlocks.set(blocks as c_int)
}

pub fn cuOccupancyAvailableDynamicSMemPerBlock(
    dynamicSmemSize: Out<usize>,
    func: Handle<Function>,
    numBlocks: c_int,
    blockSize: c_int,
) -> Result<()> {
    let context = current::context()?;
    dynamicSmemSize.check()?;
    let function = function_of(func)?;
    require(numBlocks > 0 && blockSize > 0)?;
    let properties = &context.driver.properties;
    require(function.occupancy(properties, blockSize as u32, 0) >= numBlocks as u32)?;
    let share = properties.shared_per_sm / numBlocks as u32;
    let taken = properties.shared_reserved_per_block + function.kernel.static_shared();
    let most = properties.shared_per_block_optin.saturating_sub(function.kernel.static_shared());
    // Shared memory is given out in units of 128 bytes.
    let room = share.saturating_sub(taken) / 128 * 128;
    dynamicSmemSize.set(room.min(most) as usize)
}

pub fn cuOccupancyMaxPotentialBlockSize(
    minGridSize: Out<c_int>,
    blockSize: Out<c_int>,
    func: Handle<Function>,
    blockSizeToDynamicSMemSize: CUoccupancyB2DSize,
    dynamicSMemSize: usize,
    blockSizeLimit: c_int,
) -> Result<()> {
    cuOccupancyMaxPotentialBlockSizeWithFlags(
        minGridSize,
        blockSize,
        func,
        blockSizeToDynamicSMemSize,
        dynamicSMemSize,
        blockSizeLimit,
        0,
    )
}

/// The block size with the most threads on an SM; among equals, the largest.
pub fn cuOccupancyMaxPotentialBlockSizeWithFlags(
    minGridSize: Out<c_int>,
    blockSize: Out<c_int>,
    func: Handle<Function>,
    blockSizeToDynamicSMemSize: CUoccupancyB2DSize,
    dynamicSMemSize: usize,
    blockSizeLimit: c_int,
    flags: c_uint,
) -> Result<()> {
    let context = current::context()?;
    minGridSize.check()?;
    blockSize.check()?;
    let function = function_of(func)?;
    require(blockSizeLimit >= 0 && flags & !CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE.0 == 0)?;
    let properties = &context.driver.properties;
    let most = function.max_threads(properties);
    let limit = if blockSizeLimit == 0 { most } else { most.min(blockSizeLimit as u32) };
    let (mut best, mut best_threads, mut best_blocks) = (0, 0, 0);
    let mut size = limit;
    while size > 0 {
        let shared = block_to_shared(blockSizeToDynamicSMemSize, size as c_int).unwrap_or(dynamicSMemSize);
        let blocks = function.occupancy(properties, size, shared as u64);
        if blocks * size > best_threads {
            (best, best_threads, best_blocks) = (size, blocks * size, blocks);
        }
        size = (size - 1) / 32 * 32;
    }
    minGridSize.set((best_blocks * properties.sms) as c_int)?;
    blockSize.set(best as c_int)
}
