//! Device memory shared between processes.

use crate::answer::Code;
use crate::context::Context;
use crate::driver::*;
use crate::module::Module;
use crate::runner::Peer;
use crate::suite::{Case, PeerProgram};
use crate::{args, compare, source};
use anyhow::{Context as _, Result, ensure};

pub const CASES: &[Case] = &[
    Case::new("ipc/both_processes_see_one_memory", shared_memory),
    Case::new("ipc/exporter_may_go_first", exporter_goes),
    Case::new("ipc/refusals", refusals),
];

pub const PEERS: &[PeerProgram] = &[
    PeerProgram { name: "ipc-double", run: double_peer },
    PeerProgram { name: "ipc-exporter", run: exporter_peer },
];

const COUNT: usize = 10_000;
/// Larger than what drivers carve out of shared blocks, so the allocation stands alone.
const BYTES: usize = 4 << 20;

pub fn to_text(handle: &CUipcMemHandle) -> String {
    handle.reserved.iter().map(|byte| format!("{:02x}", *byte as u8)).collect()
}

pub fn from_text(text: &str) -> Result<CUipcMemHandle> {
    ensure!(text.len() == 128 && text.is_ascii(), "not a handle: {text}");
    let mut handle = CUipcMemHandle::default();
    for (i, place) in handle.reserved.iter_mut().enumerate() {
        *place = u8::from_str_radix(&text[2 * i..2 * i + 2], 16).context("not a handle")? as _;
    }
    Ok(handle)
}

fn export(context: &Context<'_>) -> Result<(CUdeviceptr, CUipcMemHandle)> {
    let mut address = 0;
    context.cuMemAlloc_v2(&mut address, BYTES).ok()?;
    let values: Vec<f32> = (0..COUNT).map(|i| i as f32).collect();
    context.cuMemcpyHtoD_v2(address, values.as_ptr().cast(), 4 * COUNT).ok()?;
    let mut handle = CUipcMemHandle::default();
    context.cuIpcGetMemHandle(&mut handle, address).ok()?;
    context.synchronize()?;
    Ok((address, handle))
}

fn read(context: &Context<'_>, address: CUdeviceptr) -> Result<Vec<f32>> {
    let mut values = vec![0f32; COUNT];
    context.cuMemcpyDtoH_v2(values.as_mut_ptr().cast(), address, 4 * COUNT).ok()?;
    Ok(values)
}

/// Opens the handle, checks what is in there, and doubles it with a kernel.
fn double_peer(driver: &Driver, arguments: &[String]) -> Result<()> {
    let context = Context::new(driver)?;
    let handle = from_text(arguments.first().context("no handle")?)?;
    let mut address = 0;
    let flags = CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS.0;
    context.cuIpcOpenMemHandle_v2(&mut address, handle, flags).ok()?;
    let values: Vec<f32> = (0..COUNT).map(|i| i as f32).collect();
    compare::equal(&read(&context, address)?, &values)?;
    let module = Module::load(&context, source!("vector_add").usual())?;
    let blocks = COUNT.div_ceil(128) as u32;
    module.function("vector_add")?.run(blocks, 128, args![address, address, address, COUNT as i32])?;
    context.cuIpcCloseMemHandle(address).ok()
}

fn shared_memory(context: &Context<'_>) -> Result<()> {
    let (address, handle) = export(context)?;
    Peer::start(context, "ipc-double", &[to_text(&handle)])?.finish()?;
    let want: Vec<f32> = (0..COUNT).map(|i| 2.0 * i as f32).collect();
    compare::equal(&read(context, address)?, &want)?;
    // Whoever comes second sees what the first left.
    let refused = Peer::start(context, "ipc-double", &[to_text(&handle)])?.finish();
    ensure!(refused.is_err(), "the second peer saw the values from before the first");
    context.cuMemFree_v2(address).ok()
}

fn exporter_peer(driver: &Driver, _: &[String]) -> Result<()> {
    let context = Context::new(driver)?;
    let (_, handle) = export(&context)?;
    println!("{}", to_text(&handle));
    let mut nothing = String::new();
    std::io::stdin().read_line(&mut nothing)?;
    Ok(())
}

/// An importer's mapping stays readable when the exporter has died.
fn exporter_goes(context: &Context<'_>) -> Result<()> {
    let mut peer = Peer::start(context, "ipc-exporter", &[])?;
    let handle = from_text(peer.line()?.trim())?;
    let mut address = 0;
    let flags = CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS.0;
    context.cuIpcOpenMemHandle_v2(&mut address, handle, flags).ok()?;
    peer.kill();
    let values: Vec<f32> = (0..COUNT).map(|i| i as f32).collect();
    compare::equal(&read(context, address)?, &values)?;
    context.cuIpcCloseMemHandle(address).ok()
}

fn refusals(context: &Context<'_>) -> Result<()> {
    let mut handle = CUipcMemHandle::default();
    let mut address = 0;
    context.cuIpcGetMemHandle(&mut handle, 0x1000).is(Code::INVALID_VALUE)?;
    let (own, exported) = export(context)?;
    // A process has its own memory already, whatever the flags.
    context.cuIpcOpenMemHandle_v2(&mut address, exported, 1).is(Code::INVALID_CONTEXT)?;
    context.cuIpcOpenMemHandle_v2(&mut address, exported, 77).is(Code::INVALID_CONTEXT)?;
    let mut garbage = CUipcMemHandle::default();
    garbage.reserved.iter_mut().enumerate().for_each(|(i, byte)| *byte = (i * 37) as _);
    context.cuIpcOpenMemHandle_v2(&mut address, garbage, 1).is(Code::INVALID_VALUE)?;
    context.cuIpcCloseMemHandle(0x1000).is(Code::INVALID_VALUE)?;
    context.cuMemFree_v2(own).ok()
}
