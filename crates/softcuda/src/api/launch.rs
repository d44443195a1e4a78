//! Launches.

use model::Dim3;
use softgpu::card::SmSet;

use super::prelude::*;
use crate::entry;
use crate::state::function::Function;
use crate::state::library::function_in;
use crate::state::operation::{KernelLaunch, Operation};

/// Parameters larger than this do not fit a launch.
const MOST_PARAMETERS: u32 = 32764;

/// How the program hands over arguments: a list of pointers, or a buffer described by `extra`.
pub struct Arguments {
    pub kernel_params: Array<*mut c_void>,
    pub extra: Array<*mut c_void>,
}

impl Arguments {
    /// The parameter buffer of one launch.
    pub fn collect(&self, function: &Function) -> Result<Arc<[u8]>> {
        let kernel = &function.kernel;
        if !self.extra.is_null() {
            require(self.kernel_params.is_null())?;
            return self.packed(kernel.parameter_bytes());
        }
        let parameters = kernel.parameters();
        require(parameters.is_empty() || !self.kernel_params.is_null())?;
        let mut buffer = vec![0; kernel.parameter_bytes() as usize];
        for (place, parameter) in self.kernel_params.read(parameters.len())?.into_iter().zip(parameters) {
            let value = Address(place.expose_provenance() as u64);
            require(!value.is_null())?;
            let bytes = value.values::<u8>().read(parameter.size as usize)?;
            buffer[parameter.offset as usize..][..bytes.len()].copy_from_slice(&bytes);
        }
        Ok(buffer.into())
    }

    fn packed(&self, wanted: u32) -> Result<Arc<[u8]>> {
        let (mut buffer, mut size) = (None, None);
        let items = self.extra.read_until(16, |item| item == CU_LAUNCH_PARAM_END);
        for pair in items.chunks(2) {
            match *pair {
                [CU_LAUNCH_PARAM_END, ..] => break,
                [CU_LAUNCH_PARAM_BUFFER_POINTER, value] => {
                    buffer = Some(Address(value.expose_provenance() as u64))
                }
                [CU_LAUNCH_PARAM_BUFFER_SIZE, value] => {
                    let place = Address(value.expose_provenance() as u64);
                    require(!place.is_null())?;
                    size = Some(place.values::<usize>().at(0));
                }
                _ => return refuse(CUDA_ERROR_INVALID_VALUE),
            }
        }
        let (Some(buffer), Some(size)) = (buffer, size) else { return refuse(CUDA_ERROR_INVALID_VALUE) };
        require(
            size <= MOST_PARAMETERS as usize && size >= wanted as usize && !(buffer.is_null() && size > 0),
        )?;
        Ok(buffer.values::<u8>().read(size)?.into())
    }
}

/// The geometry of a launch and what its attributes say.
#[derive(Clone, Copy)]
pub struct Shape {
    pub grid: Dim3,
    pub block: Dim3,
    pub dynamic_shared: u32,
    pub cooperative: bool,
    pub priority: Option<i32>,
    /// The SMs of a green context, if it has none but those.
    pub sms: Option<SmSet>,
}

/// Checks a launch in the order of a real driver and makes an operation of it.
pub fn prepare(
    context: &Arc<Context>,
    handle: Handle<Function>,
    shape: Shape,
    arguments: &Arguments,
) -> Result<KernelLaunch> {
    let function = function_in(handle, || Ok(Arc::clone(context)))?;
    if function.context != context.id {
        return refuse(CUDA_ERROR_INVALID_HANDLE);
    }
    let properties = &context.driver.properties;
    function.check_launch(properties, shape.grid, shape.block, shape.dynamic_shared)?;
    if shape.cooperative {
        let threads = shape.block.volume().unwrap_or(0) as u32;
        let room = u64::from(function.occupancy(properties, threads, u64::from(shape.dynamic_shared)));
        let sms = shape.sms.map_or(properties.sms, |sms| sms.count());
        if shape.grid.volume().is_none_or(|blocks| blocks > room * u64::from(sms)) {
            return refuse(CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
        }
    }
    let parameters = arguments.collect(&function)?;
    Ok(KernelLaunch {
        function,
        named: handle.value(),
        grid: shape.grid,
        block: shape.block,
        dynamic_shared: shape.dynamic_shared,
        parameters,
        cooperative: shape.cooperative,
        priority: shape.priority,
        sms: shape.sms,
    })
}

fn launch(
    handle: Handle<Function>,
    mut shape: Shape,
    stream: Handle<Stream>,
    arguments: &Arguments,
) -> Result<()> {
    let stream = Stream::find(stream)?;
    shape.sms = stream.green.as_ref().map(|green| green.sms);
    let launch = prepare(&stream.context()?, handle, shape, arguments)?;
    stream.enqueue(Operation::Kernel(launch)).map(drop)
}

pub fn cuLaunchKernel(
    f: Handle<Function>,
    gridDimX: c_uint,
    gridDimY: c_uint,
    gridDimZ: c_uint,
    blockDimX: c_uint,
    blockDimY: c_uint,
    blockDimZ: c_uint,
    sharedMemBytes: c_uint,
    hStream: Handle<Stream>,
    kernelParams: Array<*mut c_void>,
    extra: Array<*mut c_void>,
) -> Result<()> {
    let grid = Dim3::new(gridDimX, gridDimY, gridDimZ);
    let block = Dim3::new(blockDimX, blockDimY, blockDimZ);
    let shape =
        Shape { grid, block, dynamic_shared: sharedMemBytes, cooperative: false, priority: None, sms: None };
    launch(f, shape, hStream, &Arguments { kernel_params: kernelParams, extra })
}

pub fn cuLaunchCooperativeKernel(
    f: Handle<Function>,
    gridDimX: c_uint,
    gridDimY: c_uint,
    gridDimZ: c_uint,
    blockDimX: c_uint,
    blockDimY: c_uint,
    blockDimZ: c_uint,
    sharedMemBytes: c_uint,
    hStream: Handle<Stream>,
    kernelParams: Array<*mut c_void>,
) -> Result<()> {
    let grid = Dim3::new(gridDimX, gridDimY, gridDimZ);
    let block = Dim3::new(blockDimX, blockDimY, blockDimZ);
    let shape =
        Shape { grid, block, dynamic_shared: sharedMemBytes, cooperative: true, priority: None, sms: None };
    let extra = Address(0).values();
    launch(f, shape, hStream, &Arguments { kernel_params: kernelParams, extra })
}

pub fn cuLaunchKernelEx(
    config: In<CUlaunchConfig>,
    f: Handle<Function>,
    kernelParams: Array<*mut c_void>,
    extra: Array<*mut c_void>,
) -> Result<()> {
    driver()?;
    let config = config.get()?;
    let grid = Dim3::new(config.gridDimX, config.gridDimY, config.gridDimZ);
    let block = Dim3::new(config.blockDimX, config.blockDimY, config.blockDimZ);
    let mut shape = Shape {
        grid,
        block,
        dynamic_shared: config.sharedMemBytes,
        cooperative: false,
        priority: None,
        sms: None,
    };
    require(config.numAttrs <= 64)?;
    let attributes = Address(config.attrs.expose_provenance() as u64).values::<CUlaunchAttribute>();
    for attribute in attributes.read(config.numAttrs as usize)? {
        apply(&mut shape, &attribute)?;
    }
    let stream = Handle::of(config.hStream.addr() as u64);
    launch(f, shape, stream, &Arguments { kernel_params: kernelParams, extra })
}

/// Takes an attribute of a launch to heart, or refuses what would change the result if it were ignored.
fn apply(shape: &mut Shape, attribute: &CUlaunchAttribute) -> Result<()> {
    let words = entry::words_of_attribute(&attribute.value);
    match attribute.id {
        CU_LAUNCH_ATTRIBUTE_COOPERATIVE => shape.cooperative = words[0] != 0,
        CU_LAUNCH_ATTRIBUTE_PRIORITY => shape.priority = Some(words[0].cast_signed()),
        CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION if words[..3].iter().any(|extent| *extent > 1) => {
            return Err(Error::unsupported("a thread block cluster"));
        }
        // Hints, and permission to overlap, which a grid may always decline.
        CU_LAUNCH_ATTRIBUTE_IGNORE
        | CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
        | CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW
        | CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY
        | CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE
        | CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION
        | CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT
        | CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION
        | CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP
        | CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN => {}
        id => return Err(Error::unsupported(format!("launch attribute {}", id.0))),
    }
    Ok(())
}
