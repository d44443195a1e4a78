//! Limits of a context, with the values a card begins with.

use cuda_abi::*;

use crate::error::{Result, refuse};

#[derive(Clone, Debug)]
pub struct Limits {
    pub stack: u64,
    pub printf: u64,
    pub heap: u64,
    pub sync_depth: u64,
    pub pending_launches: u64,
    pub fetch: u64,
    pub persisting: u64,
    /// Without effect; kept because programs read back what they set.
    cache_config: u32,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            stack: 1024,
            printf: 7_340_032,
            heap: 8 << 20,
            sync_depth: 2,
            pending_launches: 2048,
            fetch: 64,
            persisting: 0,
            cache_config: 0,
        }
    }
}

/// The most local memory a thread can have.
const MOST_STACK: u64 = 512 << 10;

impl Limits {
    pub fn get(&self, limit: CUlimit) -> Result<u64> {
        Ok(match limit {
            CU_LIMIT_STACK_SIZE => self.stack,
            CU_LIMIT_PRINTF_FIFO_SIZE => self.printf,
            CU_LIMIT_MALLOC_HEAP_SIZE => self.heap,
            CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH => self.sync_depth,
            CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT => self.pending_launches,
            CU_LIMIT_MAX_L2_FETCH_GRANULARITY => self.fetch,
            CU_LIMIT_PERSISTING_L2_CACHE_SIZE => self.persisting,
            _ => return refuse(CUDA_ERROR_UNSUPPORTED_LIMIT),
        })
    }

    pub fn set(&mut self, limit: CUlimit, value: u64) -> Result<()> {
        match limit {
            CU_LIMIT_STACK_SIZE if value > MOST_STACK => return refuse(CUDA_ERROR_INVALID_VALUE),
            CU_LIMIT_STACK_SIZE => self.stack = value.next_multiple_of(16),
            CU_LIMIT_PRINTF_FIFO_SIZE => self.printf = value,
            CU_LIMIT_MALLOC_HEAP_SIZE => self.heap = value,
            CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH => self.sync_depth = value,
            CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT => self.pending_launches = value,
            CU_LIMIT_MAX_L2_FETCH_GRANULARITY => self.fetch = value.min(128),
            CU_LIMIT_PERSISTING_L2_CACHE_SIZE => self.persisting = value,
            _ => return refuse(CUDA_ERROR_UNSUPPORTED_LIMIT),
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
