//! From what processes wrote down to what is shown.

use std::collections::BTreeMap;

use model::Nanos;
use policy::Why;
use telemetry::{Event, What};

use crate::gpu::{Span, common, gaps, union};
use crate::lanes::Lanes;
use crate::source::Source;
use crate::states::{State, Stay, states};
use crate::story::{Mark, Note, Story, TrackId};

/// The number of a GPU, as its tracks are called.
type Gpu = [u8; 16];

/// What is to be seen of all that the sources say. Nothing that was over before `since` is shown.
pub fn assemble(mut sources: Vec<Source>, since: Nanos) -> Story {
    // Threads write one after the other what they saw at the same time.
    sources.iter_mut().for_each(|source| source.events.sort_by_key(|event| event.time));
    let end = sources.iter().flat_map(|source| source.events.iter().map(|event| event.time)).max();
    let end = end.unwrap_or(Nanos::ZERO);
    let mut story = Story::default();
    let gpus = overview(&sources, end);
    for (gpu, view) in &gpus {
        view.show(&mut story, gpu);
    }
    for source in &sources {
        Telling { story: &mut story, source, gpus: &gpus }.tell();
    }
    story.marks.retain(|mark| mark.until.unwrap_or(mark.from) >= since);
    // What begins together: the longer one first, so that the shorter lies in it.
    story.marks.sort_by_key(|mark| (mark.from, std::cmp::Reverse(mark.until)));
    story
}

/// Who had a GPU when.
#[derive(Default)]
struct View {
    /// Of each latency tenant: when it had work.
    active: Vec<(String, Vec<Span>)>,
    /// Of each best-effort tenant.
    best_effort: Vec<(u32, String, Vec<Stay>)>,
}

fn overview(sources: &[Source], end: Nanos) -> BTreeMap<Gpu, View> {
    let mut raised: BTreeMap<Gpu, Vec<Nanos>> = BTreeMap::new();
    for source in sources {
        for event in source.events.iter().filter(|event| event.what == What::Raised) {
            raised.entry(source.gpu(event).unwrap_or_default()).or_default().push(event.time);
        }
    }
    raised.values_mut().for_each(|times| times.sort());
    let mut views: BTreeMap<Gpu, View> = BTreeMap::new();
    for source in sources {
        for (&post, &gpu) in &source.gpus {
            let here = || source.events.iter().filter(|event| event.post == post);
            let stays = states(here(), raised.get(&gpu).map_or(&[][..], Vec::as_slice), end);
            let active = activity(here(), end);
            let view = views.entry(gpu).or_default();
            if !active.is_empty() {
                view.active.push((source.title(), active));
            }
            if !stays.is_empty() {
                view.best_effort.push((source.pid, source.title(), stays));
            }
        }
    }
    views
}

/// When a latency tenant had work.
fn activity<'a>(events: impl Iterator<Item = &'a Event>, end: Nanos) -> Vec<Span> {
    let (mut spans, mut open) = (Vec::new(), None);
    for event in events {
        match event.what {
            What::Active => open = open.or(Some(event.time)),
            What::Idle { lasted } => {
                open = None;
                spans.push(Span { from: event.time.since(lasted), until: event.time });
            }
            _ => {}
        }
    }
    spans.extend(open.map(|from| Span { from, until: end }));
    union(spans)
}

impl View {
    fn show(&self, story: &mut Story, gpu: &Gpu) {
        let root = story.track(uuid(gpu), None);
        let latency = story.track("latency tenants", Some(root));
        for (name, spans) in &self.active {
            let track = story.track(name.clone(), Some(latency));
            for span in spans {
                story.marks.push(Mark::span(track, "active", name.clone(), span.from, span.until));
            }
        }
        let best_effort = story.track("best-effort tenants", Some(root));
        for (_, name, stays) in &self.best_effort {
            let track = story.track(name.clone(), Some(best_effort));
            for stay in stays.iter().filter(|stay| stay.state == State::Running) {
                story.marks.push(Mark::span(track, "ran", name.clone(), stay.from, stay.until));
            }
        }
        self.show_gaps(story, root);
    }

    /// The gaps between requests, and who was let run in them.
    fn show_gaps(&self, story: &mut Story, root: TrackId) {
        let busy = union(self.active.iter().flat_map(|(_, spans)| spans.iter().copied()).collect());
        let running: Vec<(&str, Vec<Span>)> = self
            .best_effort
            .iter()
            .map(|(_, name, stays)| (name.as_str(), spans(stays, is_running)))
            .collect();
        let mut filled = Vec::new();
        for gap in gaps(&busy) {
            for (name, spans) in &running {
                filled.extend(common(gap, spans).map(|(_, span)| (span, *name, gap)));
            }
        }
        filled.sort_by_key(|(span, ..)| span.from);
        let mut tracks = LaneTracks::new("gaps", Some(root));
        for (span, name, gap) in filled {
            let track = tracks.of(story, span.from, span.until);
            let mark = Mark::span(track, "gap", format!("gap filled by {name}"), span.from, span.until)
                .with("tenant", name)
                .with("gap_ns", gap.length().0);
            story.marks.push(mark);
        }
    }

    /// What best-effort tenants did while a request was under way.
    fn beside(&self, request: Span) -> Vec<(&'static str, Note)> {
        let (mut on, mut slowest, mut who) = (Nanos::ZERO, None, Vec::new());
        for (_, name, stays) in &self.best_effort {
            let all = spans(stays, |_| true);
            let mut here = Nanos::ZERO;
            for (at, span) in common(request, &all) {
                match stays[at].state {
                    State::Running | State::Stopping { .. } => here += span.length(),
                    State::Stopped { took, .. } => slowest = slowest.max(took),
                    State::Away => {}
                }
            }
            if here > Nanos::ZERO {
                who.push(name.as_str());
            }
            on += here;
        }
        let mut notes = vec![("best_effort_ns", Note::from(on.0))];
        if !who.is_empty() {
            notes.push(("beside", who.join(", ").into()));
        }
        notes.extend(slowest.map(|took: Nanos| ("slowest_stop_ns", took.0.into())));
        notes
    }
}

fn is_running(state: State) -> bool {
    state == State::Running
}

fn spans(stays: &[Stay], which: impl Fn(State) -> bool) -> Vec<Span> {
    let meant = stays.iter().filter(|stay| which(stay.state));
    meant.map(|stay| Span { from: stay.from, until: stay.until }).collect()
}

/// The tracks of one process.
struct Telling<'a> {
    story: &'a mut Story,
    source: &'a Source,
    gpus: &'a BTreeMap<Gpu, View>,
}

impl Telling<'_> {
    fn tell(&mut self) {
        let Source { pid, lost, .. } = *self.source;
        let name = match lost {
            0 => format!("{} ({pid})", self.source.title()),
            lost => format!("{} ({pid}; {lost} events lost)", self.source.title()),
        };
        let root = self.story.track(name, None);
        self.story.tracks[root.0].process = Some(pid);
        self.requests(root);
        self.states(root);
        self.turns(root);
        self.decisions(root);
        self.spans(root, "waits", |event| match event.what {
            What::Waited { lasted } => Some((event.time.since(lasted), event.time, "held up".to_owned())),
            _ => None,
        });
        self.spans(root, "timed kernels", |event| match event.what {
            What::Timed { kernel, took, .. } => {
                Some((event.time, event.time + took, self.source.kernel(kernel)))
            }
            _ => None,
        });
        self.launches(root);
    }

    fn requests(&mut self, root: TrackId) {
        let mut found: Vec<(Span, Event)> = Vec::new();
        for event in &self.source.events {
            if let What::Request { lasted, .. } = event.what {
                found.push((Span { from: event.time.since(lasted), until: event.time }, *event));
            }
        }
        found.sort_by_key(|(span, _)| span.from);
        let mut tracks = LaneTracks::new("requests", Some(root));
        for (span, event) in found {
            let What::Request { late, objective, slowdown_permille, .. } = event.what else { continue };
            let track = tracks.of(self.story, span.from, span.until);
            let name = if late { "late request" } else { "request" };
            let mut mark = Mark::span(track, "request", name, span.from, span.until)
                .with("tenant", self.source.title())
                .with("late", late);
            if let Some(objective) = objective {
                mark = mark.with("objective_ns", objective.0);
            }
            if let Some(slowdown) = slowdown_permille {
                mark = mark.with("slowdown_permille", u64::from(slowdown));
            }
            let gpu = self.source.gpu(&event);
            let view = gpu.and_then(|gpu| self.gpus.get(&gpu)).filter(|_| late);
            mark.notes.extend(gpu.map(|gpu| ("gpu", uuid(&gpu).into())));
            mark.notes.extend(view.into_iter().flat_map(|view| view.beside(span)));
            self.story.marks.push(mark);
        }
    }

    fn states(&mut self, root: TrackId) {
        let views =
            self.gpus.iter().flat_map(|(gpu, view)| view.best_effort.iter().map(move |one| (gpu, one)));
        let own: Vec<_> = views.filter(|(_, (pid, ..))| *pid == self.source.pid).collect();
        for (gpu, (_, name, stays)) in own {
            let track = self.story.track("state", Some(root));
            for stay in stays {
                let (kind, label, rung) = match stay.state {
                    State::Away => continue,
                    State::Running => ("running", "running".to_owned(), None),
                    State::Stopping { rung } => {
                        ("stopping", format!("stopping ({})", rung.name()), Some(rung))
                    }
                    State::Stopped { rung, .. } => {
                        ("stopped", format!("stopped ({})", rung.name()), Some(rung))
                    }
                };
                let mut mark = Mark::span(track, kind, label, stay.from, stay.until)
                    .with("tenant", name.as_str())
                    .with("gpu", uuid(gpu));
                if let Some(rung) = rung {
                    mark = mark.with("rung", rung.name());
                }
                if let State::Stopped { took: Some(took), .. } = stay.state {
                    mark = mark.with("took_ns", took.0);
                }
                self.story.marks.push(mark);
            }
        }
    }

    /// Turns of the isolated domain: waiting for the token, and having it.
    fn turns(&mut self, root: TrackId) {
        let (mut track, mut open): (_, Option<(&'static str, Nanos)>) = (None, None);
        let end = self.source.events.last().map_or(Nanos::ZERO, |event| event.time);
        let mut closed = Vec::new();
        for event in &self.source.events {
            let next = match event.what {
                What::Wanted => Some(("waits for the token", event.time)),
                What::Held { .. } => Some(("holds the token", event.time)),
                What::Given { .. } | What::Left => None,
                _ => continue,
            };
            closed.extend(open.take().map(|(name, from)| (name, from, event.time)));
            open = next;
        }
        closed.extend(open.map(|(name, from)| (name, from, end)));
        // What took no time would be drawn over what comes next.
        for (name, from, until) in closed.into_iter().filter(|(_, from, until)| from < until) {
            let track = *track.get_or_insert_with(|| self.story.track("token", Some(root)));
            self.story.marks.push(Mark::span(track, "token", name, from, until));
        }
    }

    fn decisions(&mut self, root: TrackId) {
        let mut track = None;
        for event in &self.source.events {
            let (name, notes) = match event.what {
                What::Decided { why, runs, longest } => {
                    let why = Why::ALL.get(usize::from(why)).map_or("unknown", |why| why.name());
                    let longest = (longest != Nanos::MAX).then_some(("longest_ns", longest.0.into()));
                    let notes = [("why", Note::from(why)), ("runs", runs.into())];
                    (format!("{}: {why}", if runs { "runs" } else { "keeps away" }), {
                        let mut all = notes.to_vec();
                        all.extend(longest);
                        all
                    })
                }
                What::Seated { class, domain } => (format!("seated: {class}, {domain} domain"), Vec::new()),
                What::Left => ("the daemon is gone".to_owned(), Vec::new()),
                What::Sliced { slice, lengthened } => {
                    let why = if lengthened { ", lengthened: nothing got done" } else { "" };
                    (format!("timeslice {slice}{why}"), vec![("slice_ns", slice.0.into())])
                }
                What::Raised => ("stops others".to_owned(), Vec::new()),
                _ => continue,
            };
            let track = *track.get_or_insert_with(|| self.story.track("decisions", Some(root)));
            self.story.marks.push(Mark { notes, ..Mark::instant(track, "decision", name, event.time) });
        }
    }

    /// Spans of a kind, side by side where they overlap.
    fn spans(
        &mut self,
        root: TrackId,
        name: &'static str,
        span: impl Fn(&Event) -> Option<(Nanos, Nanos, String)>,
    ) {
        let mut found: Vec<_> = self.source.events.iter().filter_map(span).collect();
        found.sort_by_key(|(from, ..)| *from);
        let mut tracks = LaneTracks::new(name, Some(root));
        for (from, until, label) in found {
            let track = tracks.of(self.story, from, until);
            self.story.marks.push(Mark::span(track, name, label, from, until));
        }
    }

    /// What was handed over, a track for each stream.
    fn launches(&mut self, root: TrackId) {
        let mut tracks: BTreeMap<u16, TrackId> = BTreeMap::new();
        for event in &self.source.events {
            let (stream, name, count, counted) = match event.what {
                What::Launch { kernel, stream, blocks } => {
                    (stream, self.source.kernel(kernel), blocks, "blocks")
                }
                What::Graph { stream, kernels } => (stream, "a graph".to_owned(), kernels, "kernels"),
                _ => continue,
            };
            let track = *tracks
                .entry(stream)
                .or_insert_with(|| self.story.track(format!("launches, stream {stream:04x}"), Some(root)));
            self.story.marks.push(Mark::instant(track, "launch", name, event.time).with(counted, count));
        }
    }
}

/// Tracks side by side, made when they are needed.
struct LaneTracks {
    name: &'static str,
    parent: Option<TrackId>,
    lanes: Lanes,
    tracks: Vec<TrackId>,
}

impl LaneTracks {
    fn new(name: &'static str, parent: Option<TrackId>) -> LaneTracks {
        LaneTracks { name, parent, lanes: Lanes::default(), tracks: Vec::new() }
    }

    fn of(&mut self, story: &mut Story, from: Nanos, until: Nanos) -> TrackId {
        let lane = self.lanes.place(from, until);
        while self.tracks.len() <= lane {
            self.tracks.push(story.track(self.name, self.parent));
        }
        self.tracks[lane]
    }
}

/// As NVIDIA's tools write it.
fn uuid(gpu: &Gpu) -> String {
    let digits: String = gpu.iter().map(|byte| format!("{byte:02x}")).collect();
    let part = |from: usize, until: usize| &digits[from..until];
    format!("GPU-{}-{}-{}-{}-{}", part(0, 8), part(8, 12), part(12, 16), part(16, 20), part(20, 32))
}

#[cfg(test)]
mod tests {
    use model::{Class, Domain, Rung};
    use proptest::prelude::*;

    use super::*;

    fn source(pid: u32, name: &str, events: &[(u64, What)]) -> Source {
        let events = events.iter().map(|&(time, what)| Event { time: Nanos(time), post: 0, what }).collect();
        let gpus = BTreeMap::from([(0, [0xab; 16])]);
        let kernels = BTreeMap::from([(3, "gemm".to_owned())]);
        Source { pid, name: name.to_owned(), gpus, kernels, events, lost: 0 }
    }

    fn request(lasted: u64, late: bool) -> What {
        let objective = Some(Nanos(40));
        What::Request { lasted: Nanos(lasted), late, objective, slowdown_permille: Some(1500) }
    }

    /// A server with two requests, the second one late, and a trainer that takes its time to stop.
    fn story() -> Story {
        let idle = |lasted| What::Idle { lasted: Nanos(lasted) };
        let server = source(
            7,
            "server",
            &[
                (100, What::Active),
                (130, request(30, false)),
                (130, idle(30)),
                (200, What::Active),
                (280, request(80, true)),
                (280, idle(80)),
            ],
        );
        let seated = What::Seated { class: Class::BestEffort, domain: Domain::Shared };
        let (rung, took) = (Rung::Guard, Nanos(35));
        let trainer = source(
            8,
            "train",
            &[
                (50, seated),
                (100, What::Stopping { rung }),
                (101, What::Stopped { rung, took: Nanos(1) }),
                (140, What::Resumed { rung }),
                (150, What::Launch { kernel: 3, stream: 9, blocks: 64 }),
                (205, What::Stopping { rung }),
                (240, What::Stopped { rung, took }),
                (300, What::Resumed { rung }),
                (300, What::Decided { why: 0, runs: true, longest: Nanos::MAX }),
            ],
        );
        assemble(vec![server, trainer], Nanos::ZERO)
    }

    fn only<'a>(story: &'a Story, kind: &str) -> Vec<&'a Mark> {
        story.marks.iter().filter(|mark| mark.kind == kind).collect()
    }

    fn note<'a>(mark: &'a Mark, name: &str) -> Option<&'a Note> {
        mark.notes.iter().find(|(other, _)| *other == name).map(|(_, note)| note)
    }

    #[test]
    fn a_late_request_says_who_was_beside_it_and_how_long_a_stop_took() {
        let story = story();
        let requests = only(&story, "request");
        assert_eq!(
            requests.iter().map(|mark| mark.name.as_str()).collect::<Vec<_>>(),
            ["request", "late request"]
        );
        assert_eq!(note(requests[0], "best_effort_ns"), None, "who was in time needs no reason");
        let late = requests[1];
        assert_eq!((late.from, late.until), (Nanos(200), Some(Nanos(280))));
        assert_eq!(note(late, "best_effort_ns"), Some(&Note::Number(40)), "until it was off the GPU");
        assert_eq!(note(late, "slowest_stop_ns"), Some(&Note::Number(35)));
        assert_eq!(note(late, "beside"), Some(&Note::Text("train".to_owned())));
        assert_eq!(note(late, "slowdown_permille"), Some(&Note::Number(1500)));
    }

    #[test]
    fn gaps_are_filled_by_who_ran_in_them() {
        let story = story();
        let gaps = only(&story, "gap");
        assert_eq!(gaps.len(), 1);
        assert_eq!((gaps[0].from, gaps[0].until), (Nanos(140), Some(Nanos(200))));
        assert_eq!(gaps[0].name, "gap filled by train");
        let root = story.root(gaps[0].track);
        assert!(story.tracks[root.0].name.starts_with("GPU-abababab-"));
    }

    #[test]
    fn launches_and_decisions_are_told_by_their_names() {
        let story = story();
        assert_eq!(only(&story, "launch")[0].name, "gemm");
        let decisions = only(&story, "decision");
        assert!(decisions.iter().any(|mark| mark.name == "runs: idle"));
        assert!(decisions.iter().any(|mark| mark.name == "seated: best-effort, shared domain"));
    }

    #[test]
    fn what_was_over_is_not_shown() {
        let server = source(7, "server", &[(100, request(10, false)), (500, request(10, false))]);
        assert_eq!(only(&assemble(vec![server], Nanos(200)), "request").len(), 1);
    }

    fn any_what() -> impl Strategy<Value = What> {
        let span = || (0u64..500).prop_map(Nanos);
        let rung = Rung::Guard;
        prop_oneof![
            Just(What::Active),
            span().prop_map(|lasted| What::Idle { lasted }),
            (span(), any::<bool>()).prop_map(|(lasted, late)| request(lasted.0, late)),
            Just(What::Raised),
            Just(What::Stopping { rung }),
            span().prop_map(move |took| What::Stopped { rung, took }),
            Just(What::Resumed { rung }),
            Just(What::Wanted),
            span().prop_map(|waited| What::Held { waited }),
            span().prop_map(|held| What::Given { held }),
            span().prop_map(|lasted| What::Waited { lasted }),
            (any::<u32>(), span()).prop_map(|(kernel, took)| What::Timed { kernel, stream: 1, took }),
            Just(What::Seated { class: Class::BestEffort, domain: Domain::Shared }),
        ]
    }

    proptest! {
        /// Whatever processes have written, marks of a track lie behind each other.
        #[test]
        fn marks_of_a_track_do_not_overlap(events in proptest::collection::vec((0u64..1000, any_what()), 0..60)) {
            let story = assemble(vec![source(1, "a", &events), source(2, "b", &events)], Nanos::ZERO);
            let mut ends: BTreeMap<TrackId, Nanos> = BTreeMap::new();
            for mark in &story.marks {
                let Some(until) = mark.until else { continue };
                let end = ends.entry(mark.track).or_default();
                prop_assert!(*end <= mark.from, "{mark:?} begins before {end:?}");
                *end = until;
            }
            let _ = crate::perfetto::write(&story, crate::perfetto::Clocks::default());
        }
    }
}
