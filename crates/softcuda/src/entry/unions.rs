//! C's unions: which member counts is known from elsewhere, so they are taken apart by whoever knows.

use std::ffi::{c_char, c_int};

use cuda_abi::*;

use super::Address;
use crate::handles::{Handle, Object};
use crate::state::context::Context;
use crate::state::event::Event;
use crate::state::graph::Graph;

/// The words of one operation of a batch, whatever it is.
pub fn words_of(params: &CUstreamBatchMemOpParams) -> [u64; 6] {
    // SAFETY: `pad` spans the whole union, and any bits are a number.
    unsafe { params.pad }
}

/// The beginning of the value of a launch attribute, as words.
pub fn words_of_attribute(value: &CUlaunchAttributeValue) -> [u32; 4] {
    // SAFETY: `pad` spans the whole union, and any bits are a number.
    let bytes: [c_char; 64] = unsafe { value.pad };
    std::array::from_fn(|word| u32::from_le_bytes(std::array::from_fn(|byte| bytes[4 * word + byte] as u8)))
}

/// The number of the device in a location.
pub fn location_id(location: &CUmemLocation) -> c_int {
    // SAFETY: the only field of the union.
    unsafe { location.__bindgen_anon_1.id }
}

/// How many SMs a resource of that type says it has.
pub fn sm_resource(resource: &CUdevResource) -> CUdevSmResource {
    // SAFETY: the struct is plain numbers, for which any bits will do, and no longer than the union.
    unsafe { resource.__bindgen_anon_1.sm }
}

/// The parameters of a node of a graph, of which a union holds one kind.
pub enum NodeParams {
    Empty,
    Kernel(CUDA_KERNEL_NODE_PARAMS),
    Copy(CUDA_MEMCPY3D, Handle<Context>),
    Fill(CUDA_MEMSET_NODE_PARAMS, Handle<Context>),
    Host(CUDA_HOST_NODE_PARAMS),
    Child(Handle<Graph>),
    Record(Handle<Event>),
    Wait(Handle<Event>),
    Words(CUDA_BATCH_MEM_OP_NODE_PARAMS),
    Other(u32),
}

/// Takes the union apart as its type says.
pub fn node_params(params: &CUgraphNodeParams) -> NodeParams {
    // All kinds begin at the same place, and the structs without a context are the beginnings of those with.
    let place = Address((&raw const params.__bindgen_anon_1).expose_provenance() as u64);
    let context = |offset: usize| Handle::of(Address(place.0 + offset as u64).values::<u64>().at(0));
    match params.type_ {
        CU_GRAPH_NODE_TYPE_EMPTY => NodeParams::Empty,
        CU_GRAPH_NODE_TYPE_KERNEL => NodeParams::Kernel(place.values().at(0)),
        CU_GRAPH_NODE_TYPE_MEMCPY => {
            // Two words of flags come first, then the context, then the copy.
            let copy = Address(place.0 + std::mem::offset_of!(CUDA_MEMCPY_NODE_PARAMS, copyParams) as u64);
            let owner = context(std::mem::offset_of!(CUDA_MEMCPY_NODE_PARAMS, copyCtx));
            NodeParams::Copy(copy.values().at(0), owner)
        }
        CU_GRAPH_NODE_TYPE_MEMSET => NodeParams::Fill(
            place.values().at(0),
            context(std::mem::offset_of!(CUDA_MEMSET_NODE_PARAMS_v2, ctx)),
        ),
        CU_GRAPH_NODE_TYPE_HOST => NodeParams::Host(place.values().at(0)),
        CU_GRAPH_NODE_TYPE_GRAPH => NodeParams::Child(context_free(place)),
        CU_GRAPH_NODE_TYPE_EVENT_RECORD => NodeParams::Record(context_free(place)),
        CU_GRAPH_NODE_TYPE_WAIT_EVENT => NodeParams::Wait(context_free(place)),
        CU_GRAPH_NODE_TYPE_BATCH_MEM_OP => NodeParams::Words(place.values().at(0)),
        kind => NodeParams::Other(kind.0),
    }
}

/// A handle at the beginning of a struct.
fn context_free<T: Object>(place: Address) -> Handle<T> {
    Handle::of(place.values::<u64>().at(0))
}
