//! Tasks: a piece of work, what it waits for, and who waits for it.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering, fence};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use model::Nanos;

use super::context::Core;
use crate::simt::Launch;

/// What a task does when its turn has come.
pub enum Work {
    /// Nothing: a join, or the record of an event.
    Nothing,
    /// Something short of our own, such as a copy.
    Host(Box<dyn FnOnce() + Send>),
    /// A host function of the user: it may block, so it has a thread to itself.
    Callback(Box<dyn FnOnce() + Send>),
    /// Done once the function says so.
    Poll(Box<dyn FnMut() -> bool + Send>),
    Launch(Arc<Launch>),
}

/// A handle on submitted work. Cheap to clone.
#[derive(Clone)]
pub struct Task(Arc<Inner>);

struct Inner {
    core: Option<Arc<Core>>,
    priority: i32,
    /// Unfinished predecessors, plus one while the task is being submitted.
    remaining: AtomicU32,
    /// Nominal time when the last predecessor ended.
    ready_at: AtomicU64,
    done: AtomicBool,
    finished_at: AtomicU64,
    /// Somebody sleeps until this task is done.
    watched: AtomicBool,
    links: Mutex<Links>,
}

struct Links {
    work: Option<Work>,
    dependents: Vec<Task>,
}

impl Task {
    pub(super) fn new(core: Arc<Core>, work: Work, priority: i32, now: Nanos) -> Task {
        Task::build(Some(core), Some(work), priority, now, false)
    }

    /// A task that was done from the beginning: what a new stream ends with.
    pub fn done() -> Task {
        Task::build(None, None, 0, Nanos::ZERO, true)
    }

    fn build(core: Option<Arc<Core>>, work: Option<Work>, priority: i32, now: Nanos, done: bool) -> Task {
        Task(Arc::new(Inner {
            core,
            priority,
            remaining: AtomicU32::new(1),
            ready_at: AtomicU64::new(now.0),
            done: AtomicBool::new(done),
            finished_at: AtomicU64::new(now.0),
            watched: AtomicBool::new(false),
            links: Mutex::new(Links { work, dependents: Vec::new() }),
        }))
    }

    pub fn is_done(&self) -> bool {
        // SYNC(task-done): pairs with the release in `finish`; what the task wrote is visible after it.
        self.0.done.load(Ordering::Acquire)
    }

    /// Nominal time of its end on the machine's monotonic clock.
    pub fn finished_at(&self) -> Option<Nanos> {
        self.is_done().then(|| Nanos(self.0.finished_at.load(Ordering::Relaxed)))
    }

    pub fn same(&self, other: &Task) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    pub(super) fn priority(&self) -> i32 {
        self.0.priority
    }

    pub(super) fn core(&self) -> &Arc<Core> {
        self.0.core.as_ref().expect("a task that was submitted belongs to a context")
    }

    /// From now on the end of this task wakes sleeping threads.
    pub(super) fn watch(&self) {
        self.0.watched.store(true, Ordering::Relaxed);
        // SYNC(watched): either `finish` sees the watcher, or the watcher's next `is_done` sees the end.
        fence(Ordering::SeqCst);
    }

    /// Whether somebody sleeps until this task, which has just finished, is done.
    pub(super) fn is_watched(&self) -> bool {
        // SYNC(watched): see `watch`.
        fence(Ordering::SeqCst);
        self.0.watched.load(Ordering::Relaxed)
    }

    /// Makes this task wait for `earlier`, unless that is done.
    pub(super) fn follow(&self, earlier: &Task) {
        let mut links = earlier.links();
        if earlier.is_done() {
            self.0.ready_at.fetch_max(earlier.0.finished_at.load(Ordering::Relaxed), Ordering::Relaxed);
        } else {
            self.0.remaining.fetch_add(1, Ordering::Relaxed);
            links.dependents.push(self.clone());
        }
    }

    /// One predecessor (or the submission itself) is through, at `at`. True when it was the last one.
    pub(super) fn step(&self, at: Nanos) -> bool {
        self.0.ready_at.fetch_max(at.0, Ordering::Relaxed);
        self.0.remaining.fetch_sub(1, Ordering::AcqRel) == 1
    }

    pub(super) fn ready_at(&self) -> Nanos {
        Nanos(self.0.ready_at.load(Ordering::Relaxed))
    }

    pub(super) fn take_work(&self) -> Option<Work> {
        self.links().work.take()
    }

    pub(super) fn put_work(&self, work: Work) {
        self.links().work = Some(work);
    }

    /// Marks the task as done and gives its dependents.
    pub(super) fn finish(&self, at: Nanos) -> Vec<Task> {
        let mut links = self.links();
        links.work = None;
        self.0.finished_at.store(at.0, Ordering::Relaxed);
        // SYNC(task-done): everything the work wrote happens before.
        self.0.done.store(true, Ordering::Release);
        std::mem::take(&mut links.dependents)
    }

    fn links(&self) -> MutexGuard<'_, Links> {
        self.0.links.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
