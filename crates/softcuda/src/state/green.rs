//! Green contexts: a part of the SMs, for the streams that are made in it.
//!
//! A resource lies in memory of the program, as a struct that it may copy and even change; everything about it is in the struct, and is
//! believed only as far as it makes sense. A description is made of some of them, a green context of a description.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use cuda_abi::*;
use softgpu::card::{Properties, SmSet};

use super::context::Context;
use super::driver::{Driver, next_id};
use super::lock;
use super::stream::Stream;
use crate::error::Result;
use crate::handles::{Handle, object};

/// The SMs that a green context is to have. CUDA has no call that gives a description back, so it stays.
pub struct Description {
    pub sms: SmSet,
}

object!(Description, CUdevResourceDesc_st, CUDA_ERROR_INVALID_VALUE);

impl Description {
    pub fn create(sms: SmSet) -> Handle<Description> {
        let handle = Handle::fresh();
        handle.bind(Arc::new(Description { sms }));
        handle
    }
}

pub struct GreenContext {
    pub handle: Handle<GreenContext>,
    pub id: u64,
    pub sms: SmSet,
    /// The primary context, in which its streams are. It is retained; weak all the same, since its streams lead back here.
    context: Weak<Context>,
    destroyed: AtomicBool,
}

object!(GreenContext, CUgreenCtx_st, CUDA_ERROR_INVALID_CONTEXT);

impl GreenContext {
    pub fn create(driver: &'static Driver, sms: SmSet) -> Result<Arc<GreenContext>> {
        let context = driver.retain_primary()?;
        let green = Arc::new(GreenContext {
            handle: Handle::fresh(),
            id: next_id(),
            sms,
            context: Arc::downgrade(&context),
            destroyed: AtomicBool::new(false),
        });
        green.handle.bind(Arc::clone(&green));
        Ok(green)
    }

    pub fn is_destroyed(&self) -> bool {
        self.destroyed.load(Ordering::Acquire)
    }

    /// The primary context, if it was not taken away from everybody meanwhile.
    pub fn context(&self) -> Result<Arc<Context>> {
        let context = self.context.upgrade().ok_or(CUDA_ERROR_CONTEXT_IS_DESTROYED)?;
        context.check()?;
        Ok(context)
    }

    /// Lets go of the primary context. What is in its streams goes on to its end; they themselves can only be destroyed from now on.
    pub fn destroy(&self, driver: &Driver) -> Result<()> {
        if self.destroyed.swap(true, Ordering::AcqRel) {
            return Ok(());
        }
        let Some(context) = self.context.upgrade().filter(|context| !context.is_destroyed()) else {
            return Ok(());
        };
        for stream in context.streams().iter().filter(|stream| stream.is_of(self)) {
            if let Some(capture) = lock(&stream.capture).clone() {
                capture.invalidate();
            }
        }
        driver.release_primary()
    }
}

impl Stream {
    /// Whether the stream was made in this green context.
    fn is_of(&self, green: &GreenContext) -> bool {
        self.green.as_ref().is_some_and(|own| own.id == green.id)
    }
}

/// All SMs of a device.
pub fn all_sms(properties: &Properties) -> SmSet {
    SmSet::of(0..properties.sms)
}

/// Groups are given out in multiples of this, which is also the least: 8 as on a Hopper card, but less on one with few SMs, so that
/// any with two can be divided.
pub fn granularity(properties: &Properties) -> u32 {
    [8, 4, 2].into_iter().find(|size| properties.sms >= 2 * size).unwrap_or(1)
}

/// Groups of at least `least` SMs each, as many as there are but not more than `wanted`; and what is left.
pub fn split(sms: SmSet, least: u32, wanted: u32, granularity: u32) -> (Vec<SmSet>, SmSet) {
    let each = least.max(1).div_ceil(granularity).saturating_mul(granularity);
    let (mut groups, mut rest) = (Vec::new(), sms);
    while (groups.len() as u64) < u64::from(wanted) && rest.count() >= each {
        let group = rest.lowest(each);
        rest = rest.without(&group);
        groups.push(group);
    }
    (groups, rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_rounded_up_as_on_an_h200() {
        let all = SmSet::of(0..132);
        for (asked, given) in [(124, 128), (116, 120), (100, 104), (66, 72), (16, 16), (1, 8), (0, 8)] {
            let (groups, rest) = split(all, asked, 1, 8);
            assert_eq!(groups.iter().map(SmSet::count).collect::<Vec<_>>(), [given], "asked for {asked}");
            assert_eq!(rest.count(), 132 - given);
            assert!(groups[0].without(&rest) == groups[0], "they have none in common");
        }
        assert!(split(all, 129, 1, 8).0.is_empty());
        assert!(split(all, u32::MAX, 1, 8).0.is_empty());
    }

    #[test]
    fn there_are_not_more_groups_than_asked_for_nor_than_fit() {
        let all = SmSet::of(0..132);
        assert_eq!(split(all, 32, 2, 8).0.len(), 2);
        let (groups, rest) = split(all, 32, u32::MAX, 8);
        assert_eq!((groups.len(), rest.count()), (4, 4));
        let together = groups.iter().fold(rest, |sum, group| sum.union(group));
        assert_eq!(together, all);
    }
}
