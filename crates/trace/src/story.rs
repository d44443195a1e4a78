//! Tracks, and what lies on them.

use model::Nanos;

/// A track by its place in the story.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TrackId(pub usize);

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Track {
    pub name: String,
    pub parent: Option<TrackId>,
    /// Of the track that stands for a process: its number.
    pub process: Option<u32>,
}

/// Something that was so for a while, or happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mark {
    pub track: TrackId,
    pub from: Nanos,
    /// `None`: it took no time.
    pub until: Option<Nanos>,
    pub kind: &'static str,
    pub name: String,
    pub notes: Vec<(&'static str, Note)>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Note {
    Text(String),
    Number(u64),
    Truth(bool),
}

/// What there is to show. Marks of one track do not overlap, but for those without an end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Story {
    pub tracks: Vec<Track>,
    pub marks: Vec<Mark>,
}

impl Story {
    pub fn track(&mut self, name: impl Into<String>, parent: Option<TrackId>) -> TrackId {
        self.tracks.push(Track { name: name.into(), parent, process: None });
        TrackId(self.tracks.len() - 1)
    }

    /// The topmost track that a track belongs to.
    pub fn root(&self, mut track: TrackId) -> TrackId {
        while let Some(parent) = self.tracks[track.0].parent {
            track = parent;
        }
        track
    }
}

impl Mark {
    /// From one moment to another; what took no time at all took a nanosecond, so that it can be seen.
    pub fn span(
        track: TrackId,
        kind: &'static str,
        name: impl Into<String>,
        from: Nanos,
        until: Nanos,
    ) -> Mark {
        let until = until.max(from + Nanos(1));
        Mark { track, from, until: Some(until), kind, name: name.into(), notes: Vec::new() }
    }

    pub fn instant(track: TrackId, kind: &'static str, name: impl Into<String>, at: Nanos) -> Mark {
        Mark { track, from: at, until: None, kind, name: name.into(), notes: Vec::new() }
    }

    pub fn with(mut self, name: &'static str, note: impl Into<Note>) -> Mark {
        self.notes.push((name, note.into()));
        self
    }
}

impl From<u64> for Note {
    fn from(number: u64) -> Note {
        Note::Number(number)
    }
}

impl From<bool> for Note {
    fn from(truth: bool) -> Note {
        Note::Truth(truth)
    }
}

impl From<&str> for Note {
    fn from(text: &str) -> Note {
        Note::Text(text.to_owned())
    }
}

impl From<String> for Note {
    fn from(text: String) -> Note {
        Note::Text(text)
    }
}
