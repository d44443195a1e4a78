//! What a browser is told: everything first, then what has changed.

use std::collections::VecDeque;

use daemon::picture::Picture;
use daemon::scene::Scene;
use serde::Serialize;

use crate::chronicle::Line;
use crate::rows::{self, Card, Moment, Row};

/// For how long the timeline goes back. A look takes place every second.
const MOMENTS: usize = 61;
/// How many lines of history are kept.
const LINES: usize = 200;

/// The daemon, which is the same for as long as it lives.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct About {
    pub version: String,
    pub pid: u32,
    pub scope: String,
    pub domain: String,
    pub began_unix_ms: u64,
}

/// All there is to show at one moment, and what was before.
#[derive(Debug, Serialize)]
pub struct Document {
    pub number: u64,
    about: About,
    /// Whether something may be changed by whoever knows the secret.
    admin: bool,
    gpus: Vec<Card>,
    rows: Vec<Row>,
    moments: VecDeque<Moment>,
    decisions: VecDeque<Line>,
    sentences: Vec<String>,
}

/// What has changed since the document or the news before.
#[derive(Debug, Serialize)]
pub struct News<'a> {
    number: u64,
    moment: &'a Moment,
    gpus: Option<&'a [Card]>,
    rows: Vec<&'a Row>,
    /// Those who have left: GPU and tenant.
    gone: Vec<(String, String)>,
    decisions: Vec<&'a Line>,
    /// Of lines that were sent before: number, when last, how often, and the longest.
    grown: Vec<(u64, u64, u64, Option<u64>)>,
    sentences: Option<&'a [String]>,
}

impl Document {
    pub fn new(picture: &Picture, scene: &Scene, admin: bool, number: u64, lines: Vec<Line>) -> Document {
        let daemon = &picture.report.daemon;
        let about = About {
            version: picture.report.version.clone(),
            pid: daemon.pid,
            scope: daemon.scope.clone(),
            domain: daemon.domain.clone(),
            began_unix_ms: picture.unix_ns.saturating_sub(daemon.uptime_ns) / 1_000_000,
        };
        let mut document = Document {
            number,
            about,
            admin,
            gpus: rows::cards(picture, scene),
            rows: rows::rows(picture, scene),
            moments: [rows::moment(picture, scene)].into(),
            decisions: VecDeque::new(),
            sentences: picture.report.sentences.clone(),
        };
        document.note(&lines);
        document
    }

    /// Takes what was seen next, and says what is new about it.
    pub fn advance(&mut self, picture: &Picture, scene: &Scene, lines: &[Line]) -> String {
        self.number += 1;
        let (gpus, now) = (rows::cards(picture, scene), rows::rows(picture, scene));
        let is_there = |row: &Row| now.iter().any(|other| same(row, other));
        let left = self.rows.iter().filter(|row| !is_there(row));
        let gone = left.map(|row| (row.gpu.clone(), row.tenant.clone())).collect();
        let is_new = |row: &&Row| !self.rows.contains(row);
        let is_known = |line: &&Line| self.decisions.iter().any(|known| known.id == line.id);
        let (grown, decisions): (Vec<_>, Vec<_>) = lines.iter().partition(is_known);
        let grown = grown.iter().map(|line| (line.id, line.unix_ms, line.count, line.longest_ns)).collect();
        let moment = rows::moment(picture, scene);
        let sentences = &picture.report.sentences;
        let news = News {
            number: self.number,
            moment: &moment,
            gpus: (gpus != self.gpus).then_some(&gpus),
            rows: now.iter().filter(is_new).collect(),
            gone,
            decisions,
            grown,
            sentences: (*sentences != self.sentences).then_some(sentences),
        };
        let text = event("news", &news);
        self.sentences.clone_from(sentences);
        (self.gpus, self.rows) = (gpus, now);
        self.moments.push_back(moment);
        while self.moments.len() > MOMENTS {
            self.moments.pop_front();
        }
        self.note(lines);
        text
    }

    pub fn all(&self) -> String {
        event("all", self)
    }

    fn note(&mut self, lines: &[Line]) {
        for line in lines {
            match self.decisions.iter_mut().rev().find(|known| known.id == line.id) {
                Some(known) => known.clone_from(line),
                None => self.decisions.push_back(line.clone()),
            }
        }
        while self.decisions.len() > LINES {
            self.decisions.pop_front();
        }
    }
}

fn same(one: &Row, other: &Row) -> bool {
    (&one.gpu, &one.tenant) == (&other.gpu, &other.tenant)
}

/// As a stream has it. JSON has no line breaks of its own, so it is one line of data.
fn event(kind: &str, what: &impl Serialize) -> String {
    format!("event: {kind}\ndata: {}\n\n", json(what))
}

pub fn json(what: &impl Serialize) -> String {
    serde_json::to_string(what).expect("strings, numbers and lists can be written")
}
