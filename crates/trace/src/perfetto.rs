//! A story as a Perfetto trace: a sequence of packets of track events.
//!
//! The fields are those of `protos/perfetto/trace` in Perfetto's sources, of which a dozen are needed. Times are on the
//! monotonic clock; a snapshot of the clocks tells how it stands to the others.

use model::Nanos;

use crate::proto::Message;
use crate::story::{Mark, Note, Story, Track};

/// The clocks of the machine at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Clocks {
    pub monotonic: Nanos,
    pub boot: Nanos,
    pub real: Nanos,
}

/// Clocks as Perfetto numbers them.
const REAL: u64 = 1;
const MONOTONIC: u64 = 3;
const BOOT: u64 = 6;

/// All packets are of one writer.
const SEQUENCE: u64 = 1;
/// What a reader must know of earlier packets of a sequence: nothing, with the first one.
const CLEARED: u64 = 1;

mod packet {
    pub const CLOCK_SNAPSHOT: u32 = 6;
    pub const TIMESTAMP: u32 = 8;
    pub const SEQUENCE: u32 = 10;
    pub const TRACK_EVENT: u32 = 11;
    pub const SEQUENCE_FLAGS: u32 = 13;
    pub const CLOCK: u32 = 58;
    pub const TRACK_DESCRIPTOR: u32 = 60;
}

/// The bytes of the file.
pub fn write(story: &Story, clocks: Clocks) -> Vec<u8> {
    let mut trace = Message::default();
    packet(&mut trace, |packet| {
        packet.number(packet::SEQUENCE_FLAGS, CLEARED);
        packet.message(packet::CLOCK_SNAPSHOT, |snapshot| snapshot_of(snapshot, clocks));
    });
    for (number, track) in story.tracks.iter().enumerate() {
        packet(&mut trace, |packet| {
            packet.message(packet::TRACK_DESCRIPTOR, |descriptor| describe(descriptor, number, track));
        });
    }
    for moment in moments(&story.marks) {
        packet(&mut trace, |packet| {
            packet.number(packet::TIMESTAMP, moment.at.0).number(packet::CLOCK, MONOTONIC);
            packet.message(packet::TRACK_EVENT, |event| moment.write(event));
        });
    }
    trace.into_bytes()
}

fn packet(trace: &mut Message, build: impl FnOnce(&mut Message)) {
    trace.message(1, |packet| {
        packet.number(packet::SEQUENCE, SEQUENCE);
        build(packet);
    });
}

fn snapshot_of(snapshot: &mut Message, clocks: Clocks) {
    let Clocks { monotonic, boot, real } = clocks;
    for (clock, time) in [(MONOTONIC, monotonic), (BOOT, boot), (REAL, real)] {
        snapshot.message(1, |entry| _ = entry.number(1, clock).number(2, time.0));
    }
    snapshot.number(2, MONOTONIC);
}

/// Tracks are numbered from one: nought means none.
fn identity(number: usize) -> u64 {
    number as u64 + 1
}

fn describe(descriptor: &mut Message, number: usize, track: &Track) {
    const EXPLICIT: u64 = 3;
    descriptor.number(1, identity(number)).text(2, &track.name);
    if let Some(pid) = track.process {
        descriptor.message(3, |process| _ = process.number(1, pid.into()).text(6, &track.name));
    }
    if let Some(parent) = track.parent {
        descriptor.number(5, identity(parent.0));
    }
    // In the order in which they are told.
    descriptor.number(11, EXPLICIT).number(12, number as u64);
}

/// One end of a mark.
struct Moment<'a> {
    at: Nanos,
    end: End,
    mark: &'a Mark,
}

/// At one moment, what was before ends before what comes begins.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum End {
    Last,
    First,
    Only,
}

fn moments(marks: &[Mark]) -> Vec<Moment<'_>> {
    let mut moments = Vec::with_capacity(2 * marks.len());
    for mark in marks {
        match mark.until {
            Some(until) => {
                moments.push(Moment { at: mark.from, end: End::First, mark });
                moments.push(Moment { at: until, end: End::Last, mark });
            }
            None => moments.push(Moment { at: mark.from, end: End::Only, mark }),
        }
    }
    moments.sort_by_key(|moment| (moment.at, moment.end));
    moments
}

impl Moment<'_> {
    fn write(&self, event: &mut Message) {
        let kind = match self.end {
            End::First => 1,
            End::Last => 2,
            End::Only => 3,
        };
        event.number(9, kind).number(11, identity(self.mark.track.0));
        if self.end == End::Last {
            return;
        }
        for (name, note) in &self.mark.notes {
            event.message(4, |annotation| annotate(annotation, name, note));
        }
        event.text(22, self.mark.kind).text(23, &self.mark.name);
    }
}

fn annotate(annotation: &mut Message, name: &str, note: &Note) {
    match note {
        Note::Truth(truth) => annotation.number(2, (*truth).into()),
        Note::Number(number) => annotation.number(3, *number),
        Note::Text(text) => annotation.text(6, text),
    };
    annotation.text(10, name);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::tests::{all, fields};

    fn story() -> Story {
        let mut story = Story::default();
        let root = story.track("server (7)", None);
        story.tracks[root.0].process = Some(7);
        let requests = story.track("requests", Some(root));
        let late = Mark::span(requests, "request", "late request", Nanos(100), Nanos(250));
        story.marks.push(late.with("late", true).with("objective_ns", 50).with("tenant", "server"));
        story.marks.push(Mark::span(requests, "request", "request", Nanos(250), Nanos(250)));
        story.marks.push(Mark::instant(root, "decision", "runs: idle", Nanos(300)));
        story
    }

    #[test]
    fn every_track_and_both_ends_of_every_mark_are_there() {
        let clocks = Clocks { monotonic: Nanos(5), boot: Nanos(6), real: Nanos(7) };
        let trace = fields(&write(&story(), clocks));
        assert!(trace.iter().all(|(field, _)| *field == 1), "a trace is its packets");
        let packets: Vec<_> = trace.iter().map(|(_, packet)| fields(packet.bytes())).collect();
        assert!(packets.iter().all(|packet| all(packet, 10)[0].number() == 1));

        let snapshot = fields(all(&packets[0], 6)[0].bytes());
        let clocks: Vec<_> = all(&snapshot, 1).iter().map(|clock| fields(clock.bytes())).collect();
        let clocks: Vec<_> = clocks.iter().map(|clock| (clock[0].1.number(), clock[1].1.number())).collect();
        assert_eq!(clocks, [(3, 5), (6, 6), (1, 7)]);

        let descriptors: Vec<_> =
            packets.iter().flat_map(|packet| all(packet, 60)).map(|track| fields(track.bytes())).collect();
        assert_eq!(descriptors.len(), 2);
        assert_eq!(all(&descriptors[0], 2)[0].text(), "server (7)");
        assert_eq!(fields(all(&descriptors[0], 3)[0].bytes())[0].1.number(), 7);
        assert_eq!(all(&descriptors[1], 5)[0].number(), all(&descriptors[0], 1)[0].number());

        let events: Vec<_> = packets
            .iter()
            .filter_map(|packet| {
                let event = fields(all(packet, 11).first()?.bytes());
                let name = all(&event, 23).first().map_or("", |name| name.text()).to_owned();
                assert_eq!(all(packet, 58)[0].number(), 3, "the monotonic clock");
                Some((all(packet, 8)[0].number(), all(&event, 9)[0].number(), name))
            })
            .collect();
        let text = str::to_owned;
        let expected = [
            (100, 1, text("late request")),
            (250, 2, text("")),
            (250, 1, text("request")),
            (251, 2, text("")),
            (300, 3, text("runs: idle")),
        ];
        assert_eq!(events, expected);
    }

    #[test]
    fn notes_have_their_kinds() {
        let trace = fields(&write(&story(), Clocks::default()));
        let first =
            trace.iter().map(|(_, packet)| fields(packet.bytes())).find(|packet| !all(packet, 11).is_empty());
        let event = fields(all(&first.unwrap(), 11)[0].bytes());
        let notes: Vec<_> = all(&event, 4).iter().map(|note| fields(note.bytes())).collect();
        let name = |at: usize| all(&notes[at], 10)[0].text();
        assert_eq!((name(0), all(&notes[0], 2)[0].number()), ("late", 1));
        assert_eq!((name(1), all(&notes[1], 3)[0].number()), ("objective_ns", 50));
        assert_eq!((name(2), all(&notes[2], 6)[0].text()), ("tenant", "server"));
    }
}
