//! Attributes of the device: those of a card of compute capability 9.0, as far as there is a counterpart. What
//! the software GPU lacks (textures, surfaces, clusters, remote access) is zero.

use cuda_abi::*;
use softgpu::card::Properties;

use super::device::{PCI_BUS, PCI_DEVICE};
use crate::error::{Result, refuse};

/// Those that CUDA 13.0 knows; later ones are unknown to the driver that this one claims to be.
const KNOWN: std::ops::Range<u32> = 1..148;
pub const CAPABILITY: (i32, i32) = (9, 0);

pub fn value(attribute: CUdevice_attribute, properties: &Properties) -> Result<i32> {
    if !KNOWN.contains(&attribute.0) {
        return refuse(CUDA_ERROR_INVALID_VALUE);
    }
    let of_size = size(attribute, properties);
    Ok(of_size.or_else(|| ability(attribute)).unwrap_or(0))
}

/// How much there is of something.
fn size(attribute: CUdevice_attribute, properties: &Properties) -> Option<i32> {
    let figure = |value: u32| value as i32;
    Some(match attribute {
        CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK => figure(properties.threads_per_block),
        CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X | CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y => 1024,
        CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z => 64,
        CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X => i32::MAX,
        CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y | CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z => 65535,
        CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK => figure(properties.shared_per_block),
        CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN => figure(properties.shared_per_block_optin),
        CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR => figure(properties.shared_per_sm),
        CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK => figure(properties.shared_reserved_per_block),
        CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY => 64 << 10,
        CU_DEVICE_ATTRIBUTE_WARP_SIZE => 32,
        CU_DEVICE_ATTRIBUTE_MAX_PITCH => i32::MAX,
        CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK
        | CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR => figure(properties.registers_per_sm),
        CU_DEVICE_ATTRIBUTE_CLOCK_RATE => figure(properties.clock_khz),
        CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT | CU_DEVICE_ATTRIBUTE_SURFACE_ALIGNMENT => 512,
        CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT => 32,
        CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT => figure(properties.sms),
        CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR => figure(properties.threads_per_sm),
        CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR => figure(properties.blocks_per_sm),
        CU_DEVICE_ATTRIBUTE_PCI_BUS_ID => PCI_BUS,
        CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID => PCI_DEVICE,
        CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE => 3_201_000,
        CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH => 6144,
        CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE => 60 << 20,
        CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT => 3,
        CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR => CAPABILITY.0,
        CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR => CAPABILITY.1,
        CU_DEVICE_ATTRIBUTE_SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO => 2,
        CU_DEVICE_ATTRIBUTE_MEMPOOL_SUPPORTED_HANDLE_TYPES => 0,
        CU_DEVICE_ATTRIBUTE_MEM_SYNC_DOMAIN_COUNT => 1,
        CU_DEVICE_ATTRIBUTE_NUMA_ID => -1,
        _ => return None,
    })
}

/// What can be done.
fn ability(attribute: CUdevice_attribute) -> Option<i32> {
    let able = [
        CU_DEVICE_ATTRIBUTE_GPU_OVERLAP,
        CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY,
        CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS,
        CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING,
        CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED,
        CU_DEVICE_ATTRIBUTE_GLOBAL_L1_CACHE_SUPPORTED,
        CU_DEVICE_ATTRIBUTE_LOCAL_L1_CACHE_SUPPORTED,
        CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY,
        CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS,
        CU_DEVICE_ATTRIBUTE_HOST_NATIVE_ATOMIC_SUPPORTED,
        CU_DEVICE_ATTRIBUTE_COMPUTE_PREEMPTION_SUPPORTED,
        CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM,
        CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS,
        CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_WAIT_VALUE_NOR,
        CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH,
        CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED,
        CU_DEVICE_ATTRIBUTE_READ_ONLY_HOST_REGISTER_SUPPORTED,
        CU_DEVICE_ATTRIBUTE_DIRECT_MANAGED_MEM_ACCESS_FROM_HOST,
        CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED,
        CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED,
        CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED,
        CU_DEVICE_ATTRIBUTE_UNIFIED_FUNCTION_POINTERS,
    ];
    able.contains(&attribute).then_some(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn properties() -> Properties {
        Properties {
            sms: 132,
            memory_bytes: 1 << 30,
            threads_per_sm: 2048,
            blocks_per_sm: 32,
            registers_per_sm: 65_536,
            shared_per_sm: 228 << 10,
            shared_per_block: 48 << 10,
            shared_per_block_optin: 227 << 10,
            shared_reserved_per_block: 1 << 10,
            threads_per_block: 1024,
            clock_khz: 1_000_000,
            uuid: [0; 16],
        }
    }

    #[test]
    fn every_known_attribute_has_a_value_and_others_none() {
        for number in KNOWN {
            assert!(value(CUdevice_attribute(number), &properties()).is_ok());
        }
        for number in [0, KNOWN.end, 100_000, u32::MAX] {
            assert!(value(CUdevice_attribute(number), &properties()).is_err(), "{number}");
        }
        assert_eq!(value(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, &properties()).unwrap(), 9);
        assert_eq!(value(CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH, &properties()).unwrap(), 0, "not there");
    }
}
