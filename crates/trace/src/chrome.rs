//! A story as Chrome's JSON: for viewers that know no other, and for whoever wants to read it by eye.
//!
//! Processes there have threads and nothing below, so every track becomes a thread of its topmost one. What is no process
//! gets a number that no process has.

use serde_json::{Map, Value, json};

use model::Nanos;

use crate::story::{Note, Story, TrackId};

/// Above all numbers of processes.
const NO_PROCESS: usize = 1 << 23;

/// The text of the file.
pub fn write(story: &Story) -> String {
    let mut events = Vec::with_capacity(story.tracks.len() + story.marks.len());
    for number in 0..story.tracks.len() {
        events.push(name_of(story, TrackId(number)));
    }
    for mark in &story.marks {
        let mut event = json!({
            "name": mark.name,
            "cat": mark.kind,
            "ts": micros(mark.from),
            "pid": process(story, mark.track),
            "tid": mark.track.0,
            "args": arguments(&mark.notes),
        });
        match mark.until {
            Some(until) => (event["ph"], event["dur"]) = ("X".into(), micros(until.since(mark.from))),
            None => (event["ph"], event["s"]) = ("i".into(), "t".into()),
        }
        events.push(event);
    }
    json!({ "displayTimeUnit": "ns", "traceEvents": events }).to_string()
}

fn name_of(story: &Story, track: TrackId) -> Value {
    let root = story.root(track);
    let kind = if root == track { "process_name" } else { "thread_name" };
    json!({
        "ph": "M",
        "name": kind,
        "pid": process(story, track),
        "tid": track.0,
        "args": { "name": story.tracks[track.0].name },
    })
}

fn process(story: &Story, track: TrackId) -> usize {
    let root = story.root(track);
    story.tracks[root.0].process.map_or(NO_PROCESS + root.0, |pid| pid as usize)
}

/// The format counts in microseconds.
fn micros(time: Nanos) -> Value {
    time.as_micros_f64().into()
}

fn arguments(notes: &[(&'static str, Note)]) -> Map<String, Value> {
    let value = |note: &Note| match note {
        Note::Text(text) => text.as_str().into(),
        Note::Number(number) => (*number).into(),
        Note::Truth(truth) => (*truth).into(),
    };
    notes.iter().map(|(name, note)| ((*name).to_owned(), value(note))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::story::Mark;

    #[test]
    fn marks_are_events_of_threads() {
        let mut story = Story::default();
        let root = story.track("server (7)", None);
        story.tracks[root.0].process = Some(7);
        let requests = story.track("requests", Some(root));
        let gpu = story.track("GPU-1", None);
        story
            .marks
            .push(Mark::span(requests, "request", "request", Nanos(1500), Nanos(4000)).with("late", false));
        story.marks.push(Mark::instant(gpu, "gap", "here", Nanos(10)));
        let written: Value = serde_json::from_str(&write(&story)).unwrap();
        let events = written["traceEvents"].as_array().unwrap();
        assert_eq!(events.len(), 5);
        assert_eq!((&events[0]["name"], &events[1]["name"]), (&"process_name".into(), &"thread_name".into()));
        let request = &events[3];
        assert_eq!(
            (&request["ph"], &request["ts"], &request["dur"]),
            (&"X".into(), &1.5.into(), &2.5.into())
        );
        assert_eq!((&request["pid"], &request["args"]["late"]), (&7.into(), &false.into()));
        assert!(events[4]["pid"].as_u64().unwrap() > 1 << 22);
    }
}
