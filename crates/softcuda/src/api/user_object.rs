//! Objects of the program that graphs keep alive.

use super::prelude::*;
use crate::entry::HostFunction;
use crate::state::graph::Graph;
use crate::state::user_object::{Held, UserObject};

/// References may be moved or added, one at least, and not more than CUDA can count.
const MOST: c_uint = i32::MAX as c_uint;

pub fn cuUserObjectCreate(
    object_out: Out<CUuserObject>,
    ptr: Address,
    destroy: CUhostFn,
    initialRefcount: c_uint,
    flags: c_uint,
) -> Result<()> {
    driver()?;
    object_out.check()?;
    require(flags == CU_USER_OBJECT_NO_DESTRUCTOR_SYNC.0 && (1..=MOST).contains(&initialRefcount))?;
    let destroy = HostFunction::new(destroy, ptr)?;
    object_out.set(UserObject::create(destroy, initialRefcount).handle.raw())
}

pub fn cuUserObjectRetain(object: Handle<UserObject>, count: c_uint) -> Result<()> {
    driver()?;
    object.get()?.retain(count)
}

pub fn cuUserObjectRelease(object: Handle<UserObject>, count: c_uint) -> Result<()> {
    driver()?;
    object.get()?.release(count)
}

pub fn cuGraphRetainUserObject(
    graph: Handle<Graph>,
    object: Handle<UserObject>,
    count: c_uint,
    flags: c_uint,
) -> Result<()> {
    driver()?;
    let (graph, object) = (graph.get()?, object.get()?);
    require((1..=MOST).contains(&count) && flags & !CU_GRAPH_USER_OBJECT_MOVE.0 == 0)?;
    if flags & CU_GRAPH_USER_OBJECT_MOVE.0 == 0 {
        object.retain(count)?;
    }
    graph.hold(Held { object, count });
    Ok(())
}

pub fn cuGraphReleaseUserObject(
    graph: Handle<Graph>,
    object: Handle<UserObject>,
    count: c_uint,
) -> Result<()> {
    driver()?;
    let (graph, object) = (graph.get()?, object.get()?);
    graph.let_go(&object, count)
}
