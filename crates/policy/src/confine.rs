//! Fewer SMs, instead of none.
//!
//! A latency tenant whose requests are small leaves most of the SMs idle while it has work, and best-effort work that is kept away
//! altogether wastes them. Where the tenant bears it, what may not run beside a request on the whole GPU may run on some of its SMs:
//! the request finds the others free, however long the blocks on these take. REEF pads kernels so; here the hardware keeps them
//! apart.
//!
//! What it costs the request is not SMs but memory: a training on half of an H200 made requests a third longer, whatever they
//! were. So this is nothing for an objective near the time alone, where stopping is better, and much for one of twice that. Nor is it
//! anything for short requests: they are over before what was stopped has gone on elsewhere. The controller of `slo` tries it only where
//! there is room for it ([`ROOM`]) and time ([`LONG`]), and goes by what it sees.
//!
//! It is the shared domain's: in the isolated one contexts take turns.

use model::Nanos;

use crate::{Decision, Kind, View, Why, strict};

/// An objective leaves room for work on other SMs if it is so many times the p99 alone, in tenths. On an H200 requests of GPT-2 beside the
/// training of ResNet-50 had 1.6 times their p99 alone with a quarter of the SMs for it, 1.9 with half and 2.1 with three quarters.
pub const ROOM: u32 = 20;

/// And half of the requests last at least so long. To stop, to launch again and to come back takes some hundred microseconds; beside
/// requests of 0.67 ms on an H200 nothing was gained.
pub const LONG: Nanos = Nanos::from_millis(1);

/// On how many SMs, in hundredths, those may run who may not run otherwise; nought: on none.
pub(crate) fn share(view: &View, decision: &Decision) -> u32 {
    let wanted = view.dials.kind == Kind::Slo && !view.exclusive && decision.why != Why::Solo;
    if wanted && strict::keep_away(view).is_some() { view.dials.confine } else { 0 }
}
