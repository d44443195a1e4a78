//! Every order of events, by depth-first search over states.

use std::collections::HashSet;
use std::fmt::Debug;
use std::hash::Hash;

/// Something that can be in states, and go from one to others.
pub trait Model: Clone + Eq + Hash + Debug {
    /// All states that may follow. None: it has come to an end.
    fn next(&self) -> Vec<Self>;

    /// What is wrong with this state, if anything; `ended` when nothing follows it.
    fn fault(&self, ended: bool) -> Option<String>;
}

/// More than any scenario here has: a model that grows without end is a mistake in the model.
const MOST_STATES: usize = 4_000_000;

/// Tries everything; gives how many states there are, or the first fault with the states that lead there.
pub fn explore<M: Model>(start: M) -> Result<usize, (String, Vec<M>)> {
    let mut seen = HashSet::from([start.clone()]);
    let mut path = Vec::new();
    let mut branches = vec![(start, 0usize)];
    while let Some((state, depth)) = branches.pop() {
        path.truncate(depth);
        path.push(state.clone());
        let next = state.next();
        if let Some(fault) = state.fault(next.is_empty()) {
            return Err((fault, path));
        }
        assert!(seen.len() < MOST_STATES, "the model does not end");
        for state in next {
            if seen.insert(state.clone()) {
                branches.push((state, depth + 1));
            }
        }
    }
    Ok(seen.len())
}

/// Fails, with the last steps before it, when a fault can be reached.
#[track_caller]
pub fn holds<M: Model>(start: M) -> usize {
    match explore(start) {
        Ok(states) => states,
        Err((fault, path)) => {
            let last: Vec<_> = path.iter().rev().take(12).rev().collect();
            panic!("{fault}, after {} steps, the last of which:\n{last:#?}", path.len())
        }
    }
}

/// The fault that must be reachable: a model in which nothing can go wrong shows nothing.
#[track_caller]
pub fn breaks<M: Model>(start: M) -> String {
    explore(start).expect_err("nothing went wrong").0
}
