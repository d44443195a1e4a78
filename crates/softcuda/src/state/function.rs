//! Kernels as a program holds them.

use std::sync::{Arc, Mutex, Weak};

use cuda_abi::*;
use model::Dim3;
use softgpu::card::{Footprint, Properties};
use softgpu::simt::Kernel;

use super::context::Context;
use super::lock;
use super::module::Module;
use crate::error::{Error, Result, refuse, require};
use crate::handles::{Handle, Object, object};

/// A kernel in one context.
pub struct Function {
    pub handle: Handle<Function>,
    pub kernel: Kernel,
    pub context: u64,
    pub module: Weak<Module>,
    pub settings: Arc<Mutex<Settings>>,
}

object!(Function, CUfunc_st, CUDA_ERROR_INVALID_HANDLE);

/// What a program can set about a kernel.
#[derive(Clone, Debug)]
pub struct Settings {
    pub max_dynamic_shared: i32,
    pub carveout: i32,
    pub non_portable_cluster: i32,
    pub cluster_policy: i32,
}

/// The functions of a context go with it.
pub fn forget(context: u64) {
    Function::registry().sweep(|function| function.context == context);
}

/// Registers are given to warps in units of this many.
const REGISTER_UNIT: u32 = 256;

impl Settings {
    pub fn new(kernel: &Kernel, properties: &Properties) -> Arc<Mutex<Settings>> {
        let room = properties.shared_per_block.saturating_sub(kernel.static_shared());
        Arc::new(Mutex::new(Settings {
            max_dynamic_shared: room as i32,
            carveout: -1,
            non_portable_cluster: 0,
            cluster_policy: 0,
        }))
    }
}

impl Function {
    pub fn create(
        module: &Arc<Module>,
        kernel: Kernel,
        settings: Arc<Mutex<Settings>>,
        context: &Context,
    ) -> Arc<Function> {
        let handle = Handle::fresh();
        let module = Arc::downgrade(module);
        let function = Arc::new(Function { handle, kernel, context: context.id, module, settings });
        handle.bind(Arc::clone(&function));
        function
    }

    /// The most threads a block of this kernel can have, by its source and by its registers.
    pub fn max_threads(&self, properties: &Properties) -> u32 {
        let per_warp = (self.kernel.registers() * 32).next_multiple_of(REGISTER_UNIT);
        let by_registers = properties.registers_per_sm / per_warp * 32;
        let declared = self.kernel.required_block().and_then(Dim3::volume).map(|threads| threads as u32);
        let declared = declared.or(self.kernel.max_threads()).unwrap_or(properties.threads_per_block);
        declared.min(by_registers).min(properties.threads_per_block)
    }

    pub fn attribute(&self, attribute: CUfunction_attribute, properties: &Properties) -> Result<i32> {
        let kernel = &self.kernel;
        let settings = lock(&self.settings);
        let cluster = kernel.info().required_cluster.unwrap_or(Dim3::new(0, 0, 0));
        let value = match attribute {
            CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK => self.max_threads(properties) as i32,
            CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES => kernel.static_shared() as i32,
            CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES => self.constant_bytes(),
            CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES => kernel.local_bytes() as i32,
            CU_FUNC_ATTRIBUTE_NUM_REGS => kernel.registers() as i32,
            CU_FUNC_ATTRIBUTE_PTX_VERSION => kernel.module().image().architecture as i32,
            CU_FUNC_ATTRIBUTE_BINARY_VERSION => 90,
            CU_FUNC_ATTRIBUTE_CACHE_MODE_CA => 0,
            CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES => settings.max_dynamic_shared,
            CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT => settings.carveout,
            CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET => 0,
            CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH => cluster.x as i32,
            CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT => cluster.y as i32,
            CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH => cluster.z as i32,
            CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED => settings.non_portable_cluster,
            CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE => settings.cluster_policy,
            _ => return refuse(CUDA_ERROR_INVALID_VALUE),
        };
        Ok(value)
    }

    fn constant_bytes(&self) -> i32 {
        let variables = &self.kernel.module().image().variables;
        let bytes: u64 =
            variables.iter().filter(|variable| variable.constant).map(|variable| variable.bytes).sum();
        i32::try_from(bytes).unwrap_or(i32::MAX)
    }

    pub fn set_attribute(
        &self,
        attribute: CUfunction_attribute,
        value: i32,
        properties: &Properties,
    ) -> Result<()> {
        let mut settings = lock(&self.settings);
        match attribute {
            CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES => {
                let room = properties.shared_per_block_optin.saturating_sub(self.kernel.static_shared());
                require((0..=room as i32).contains(&value))?;
                settings.max_dynamic_shared = value;
            }
            CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT => {
                require((-1..=100).contains(&value))?;
                settings.carveout = value;
            }
            CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED => settings.non_portable_cluster = value,
            CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE => settings.cluster_policy = value,
            _ => return refuse(CUDA_ERROR_INVALID_VALUE),
        }
        Ok(())
    }

    /// How many blocks of so many threads fit on one SM.
    pub fn occupancy(&self, properties: &Properties, threads: u32, dynamic_shared: u64) -> u32 {
        let shared = u64::from(self.kernel.static_shared()).saturating_add(dynamic_shared);
        match u32::try_from(shared) {
            // What the source says about the size of blocks does not count here.
            Ok(shared)
                if threads <= properties.threads_per_block && shared <= properties.shared_per_block_optin =>
            {
                Footprint::of(properties, threads, self.kernel.registers(), shared).blocks_per_sm(properties)
            }
            _ => 0,
        }
    }

    /// Whether a launch of this geometry is possible at all.
    pub fn check_launch(
        &self,
        properties: &Properties,
        grid: Dim3,
        block: Dim3,
        dynamic_shared: u32,
    ) -> Result<()> {
        let grid_fits =
            (1..=0x7fff_ffff).contains(&grid.x) && in_range(grid.y, 65535) && in_range(grid.z, 65535);
        let block_fits = in_range(block.x, 1024) && in_range(block.y, 1024) && in_range(block.z, 64);
        let threads = block.volume().filter(|_| grid_fits && block_fits).ok_or(CUDA_ERROR_INVALID_VALUE)?;
        require(threads <= u64::from(properties.threads_per_block))?;
        if let Some(required) = self.kernel.required_block() {
            require(required == block)?;
        }
        if self.kernel.max_threads().is_some_and(|most| threads > u64::from(most)) {
            return Err(Error::new(
                CUDA_ERROR_INVALID_VALUE,
                format!("{threads} threads are more than the kernel allows"),
            ));
        }
        if threads > u64::from(self.max_threads(properties)) {
            return refuse(CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
        }
        require(i64::from(dynamic_shared) <= i64::from(lock(&self.settings).max_dynamic_shared))?;
        if self.kernel.info().required_cluster.is_some_and(|cluster| cluster.volume() != Some(1)) {
            return Err(Error::unsupported("a thread block cluster"));
        }
        Ok(())
    }
}

fn in_range(extent: u32, most: u32) -> bool {
    (1..=most).contains(&extent)
}
