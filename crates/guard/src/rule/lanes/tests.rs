//! What must hold, and what does not without one of the cares.

use super::super::search::{breaks, holds};
use super::Put::{Launch, Other, Record, Wait};
use super::{Begin, CAREFUL, Care, Put, World};

#[test]
fn one_stream_keeps_its_order_and_loses_nothing() {
    assert!(holds(World::new(&[&[Launch, Launch, Other, Launch]], 2)) > 1000);
}

#[test]
fn a_round_may_be_cut_again_and_again() {
    holds(World::new(&[&[Launch, Launch, Launch]], 3));
}

#[test]
fn streams_that_wait_for_each_other_are_resumed() {
    holds(World::new(&[&[Launch, Record(0)], &[Wait(0), Launch]], 2));
    holds(World::new(&[&[Launch, Record(0), Wait(1), Launch], &[Wait(0), Launch, Record(1)]], 1));
}

#[test]
fn independent_streams_do_not_disturb_each_other() {
    holds(World::new(&[&[Launch, Other], &[Launch, Other]], 1));
}

/// What the second look, at `away`, is for: the stop word is lowered while a launch is being cut.
#[test]
fn with_the_stop_word_alone_order_breaks() {
    let blind = Care { look_at_away: false, ..CAREFUL };
    let fault = breaks(World::new(&[&[Launch, Launch]], 1).without(blind));
    assert_eq!(fault, "a block ran before what precedes it in its stream");
}

/// Waiting, instead, until all lanes are at rest.
#[test]
fn waiting_for_all_streams_is_waiting_for_ever() {
    let patient = Care { wait_for_all: true, ..CAREFUL };
    let waiting: &[&'static [Put]] = &[&[Launch, Record(0)], &[Wait(0), Launch]];
    assert_eq!(breaks(World::new(waiting, 1).without(patient)), "nothing goes on");
}

#[test]
fn without_a_second_look_at_the_board_stops_are_lost() {
    let hasty = Care { look_at_board_again: false, ..CAREFUL };
    assert_eq!(breaks(World::new(&[&[Launch]], 2).without(hasty)), "a stop was lost");
}

#[test]
fn before_its_arrival_a_stream_may_still_be_running() {
    let hasty = Care { relaunch_after_arrival: false, ..CAREFUL };
    breaks(World::new(&[&[Launch, Launch]], 1).without(hasty));
}

/// Blocks that leave say so before they end, but what they say may not be there yet for those that begin then.
#[test]
fn without_a_fence_order_breaks() {
    let quick = Care { fence: false, ..CAREFUL };
    let fault = breaks(World::new(&[&[Launch, Launch]], 1).without(quick));
    assert_eq!(fault, "a block ran before what precedes it in its stream");
}

#[test]
fn who_begins_early_has_to_wait() {
    let hasty = Care { wait_for_launch: false, ..CAREFUL };
    let fault = breaks(World::new(&[&[Launch, Launch]], 0).without(hasty));
    assert_eq!(fault, "a block ran before what precedes it in its stream");
}

/// Before all blocks of a launch have decided, those of the next cannot know whether it is cut.
#[test]
fn who_begins_before_all_have_decided_breaks_order() {
    let early = Care { begin: Begin::AtAnyTime, short_stops: false, ..CAREFUL };
    let fault = breaks(World::new(&[&[Launch, Launch]], 1).without(early));
    assert_eq!(fault, "a block ran before what precedes it in its stream");
}

/// Order holds as soon as all have decided, and kernels may say by themselves that the next launch can begin. But its blocks
/// decide then, wait for those that still run, and run: whoever wants the GPU meanwhile waits for both.
#[test]
fn who_begins_before_all_have_ended_makes_stops_long() {
    let early = Care { begin: Begin::BehindDecisions, ..CAREFUL };
    let fault = breaks(World::new(&[&[Launch, Launch]], 0).without(early));
    assert_eq!(fault, "a stop would wait for two launches");
    let patient = Care { short_stops: false, ..early };
    holds(World::new(&[&[Launch, Launch, Launch]], 2).without(patient));
}
