//! Limits of a context, as an H200 has them to begin with and accepts them.

use cuda_abi::*;

use crate::error::{Result, refuse, require};

#[derive(Clone, Debug)]
pub struct Limits {
    pub stack: u64,
    printf: u64,
    heap: u64,
    pending_launches: u64,
    fetch: u64,
    persisting: u64,
    /// Without effect; kept because programs read back what they set.
    cache_config: u32,
}

/// The most local memory a thread can have.
const MOST_STACK: u64 = 512 << 10;
const LEAST_PRINTF: u64 = 512 << 10;
const LEAST_HEAP: u64 = 4 << 20;
const MOST_FETCH: u64 = 128;
const MOST_PERSISTING: u64 = 39_321_600;
/// The most shared memory of a block, which CUDA 13 counts among the limits.
const SHARED: u64 = 227 << 10;

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            stack: 1024,
            printf: 8_650_752,
            heap: 8 << 20,
            pending_launches: 2048,
            fetch: 64,
            persisting: 11_796_480,
            cache_config: 0,
        }
    }
}

impl Limits {
    pub fn get(&self, limit: CUlimit) -> Result<u64> {
        Ok(match limit {
            CU_LIMIT_STACK_SIZE => self.stack,
            CU_LIMIT_PRINTF_FIFO_SIZE => self.printf,
            CU_LIMIT_MALLOC_HEAP_SIZE => self.heap,
            CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT => self.pending_launches,
            CU_LIMIT_MAX_L2_FETCH_GRANULARITY => self.fetch,
            CU_LIMIT_PERSISTING_L2_CACHE_SIZE => self.persisting,
            CU_LIMIT_SHMEM_SIZE => SHARED,
            CU_LIMIT_CIG_ENABLED => 0,
            CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH | CU_LIMIT_CIG_SHMEM_FALLBACK_ENABLED => {
                return refuse(CUDA_ERROR_UNSUPPORTED_LIMIT);
            }
            _ => return refuse(CUDA_ERROR_INVALID_VALUE),
        })
    }

    pub fn set(&mut self, limit: CUlimit, value: u64) -> Result<()> {
        match limit {
            CU_LIMIT_STACK_SIZE => {
                require(value <= MOST_STACK)?;
                self.stack = value.next_multiple_of(16);
            }
            CU_LIMIT_PRINTF_FIFO_SIZE => self.printf = value.max(LEAST_PRINTF),
            CU_LIMIT_MALLOC_HEAP_SIZE => self.heap = value.max(LEAST_HEAP),
            CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT => self.pending_launches = value,
            CU_LIMIT_MAX_L2_FETCH_GRANULARITY => {
                require(value <= MOST_FETCH)?;
                self.fetch = value;
            }
            CU_LIMIT_PERSISTING_L2_CACHE_SIZE => {
                require(value <= MOST_PERSISTING)?;
                self.persisting = value;
            }
            CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH
            | CU_LIMIT_SHMEM_SIZE
            | CU_LIMIT_CIG_ENABLED
            | CU_LIMIT_CIG_SHMEM_FALLBACK_ENABLED => return refuse(CUDA_ERROR_UNSUPPORTED_LIMIT),
            _ => return refuse(CUDA_ERROR_INVALID_VALUE),
        }
        Ok(())
    }

    pub fn cache_config(&self) -> u32 {
        self.cache_config
    }

    pub fn set_cache_config(&mut self, config: u32) {
        self.cache_config = config;
    }
}
