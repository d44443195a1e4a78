//! What kernels need of stack and registers, over all that they call.

use std::collections::HashMap;

use super::error::{Error, Place};
use super::function::check;
use crate::isa::Image;
use crate::simt::control;

/// What is known of a function besides its code.
#[derive(Default)]
pub(super) struct Summary {
    callees: Vec<u32>,
    calls_pointers: bool,
}

impl Summary {
    pub(super) fn new(mut callees: Vec<u32>, calls_pointers: bool) -> Summary {
        callees.sort_unstable();
        callees.dedup();
        Summary { callees, calls_pointers }
    }
}

/// Calls followed for all kernels together: each kernel looks at all that it can get to.
const MOST_CALLS: usize = 4 << 20;

pub(super) fn finish_kernels(image: &mut Image, summaries: &[Summary]) -> Result<(), Error> {
    let mut calls = 0;
    for index in 0..image.functions.len() {
        if image.functions[index].kernel.is_none() {
            continue;
        }
        let mut walk = Walk { image, summaries, state: HashMap::new(), unbounded: false, pressure: 0, calls };
        let stack = walk.stack(index)?;
        calls = walk.calls;
        let (unbounded, pressure) = (walk.unbounded, walk.pressure);
        let function = &mut image.functions[index];
        function.pressure = pressure;
        let info = function.kernel.as_mut().expect("only kernels get here");
        (info.stack_bytes, info.unbounded_stack) = (stack, unbounded);
    }
    Ok(())
}

#[derive(Clone, Copy)]
enum State {
    Open,
    /// Bytes of stack.
    Done(u32),
}

struct Walk<'a> {
    image: &'a Image,
    summaries: &'a [Summary],
    state: HashMap<usize, State>,
    unbounded: bool,
    pressure: u32,
    calls: usize,
}

impl Walk<'_> {
    /// Bytes of stack a function needs with all it calls. An explicit stack, since call chains of a hostile
    /// module can be as long as the module.
    fn stack(&mut self, root: usize) -> Result<u32, Error> {
        let mut open = vec![(root, 0usize, 0u32)];
        self.state.insert(root, State::Open);
        loop {
            let (function, next, deepest) = open.last_mut().expect("the root is taken off last");
            let summary = &self.summaries[*function];
            if let Some(callee) = summary.callees.get(*next).map(|callee| *callee as usize) {
                *next += 1;
                self.calls += 1;
                check(Place::default(), "the calls of all kernels", self.calls, MOST_CALLS)?;
                match self.state.get(&callee) {
                    Some(State::Done(bytes)) => *deepest = (*deepest).max(*bytes),
                    Some(State::Open) => self.unbounded = true,
                    None => {
                        self.state.insert(callee, State::Open);
                        open.push((callee, 0, 0));
                    }
                }
                continue;
            }
            self.unbounded |= summary.calls_pointers;
            self.pressure = self.pressure.max(self.image.functions[*function].pressure);
            let own = self.image.functions[*function].local_bytes.next_multiple_of(16) + control::CALL_BYTES;
            let bytes = own.saturating_add(*deepest);
            self.state.insert(*function, State::Done(bytes));
            open.pop();
            match open.last_mut() {
                Some((_, _, deepest)) => *deepest = (*deepest).max(bytes),
                None => return Ok(bytes),
            }
        }
    }
}
