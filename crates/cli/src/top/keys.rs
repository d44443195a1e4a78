//! What keys do.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use daemon::request::Request;

use super::desk::{Change, Desk, Mode};

/// Every key, for the page of help.
pub const HELP: [(&str, &str); 10] = [
    ("q Esc Ctrl-C", "quit"),
    ("up down j k", "select a tenant"),
    ("Enter", "its processes"),
    ("p", "pause it, or resume it"),
    ("s > <", "sort by another column"),
    ("r", "reverse the order"),
    ("/", "filter names; Esc: all"),
    ("Ctrl-Z", "suspend"),
    ("h ?", "this page"),
    ("*", "less than it asked for"),
];

/// How far a page goes.
const PAGE: isize = 10;

/// What a key asks of the loop; what it asks of the desk is done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Demand {
    Nothing,
    Quit,
    Suspend,
    Change(Change),
}

impl Change {
    pub fn request(&self) -> Request {
        let target = self.tenant.clone();
        if self.pause { Request::Pause { target } } else { Request::Resume { target } }
    }
}

pub fn press(desk: &mut Desk, key: KeyEvent) -> Demand {
    desk.message = None;
    desk.hold();
    if key.modifiers.contains(KeyModifiers::CONTROL) {
        return match key.code {
            KeyCode::Char('c') => Demand::Quit,
            KeyCode::Char('z') => Demand::Suspend,
            _ => Demand::Nothing,
        };
    }
    match desk.mode.clone() {
        Mode::Table => in_table(desk, key.code),
        Mode::Filter => in_filter(desk, key.code),
        Mode::Confirm(change) => {
            desk.mode = Mode::Table;
            match key.code {
                KeyCode::Char('y' | 'Y') => Demand::Change(change),
                _ => Demand::Nothing,
            }
        }
        Mode::Help => {
            desk.mode = Mode::Table;
            if key.code == KeyCode::Char('q') { Demand::Quit } else { Demand::Nothing }
        }
    }
}

fn in_table(desk: &mut Desk, key: KeyCode) -> Demand {
    match key {
        KeyCode::Char('q') => return Demand::Quit,
        KeyCode::Esc if desk.filter.is_empty() => return Demand::Quit,
        KeyCode::Esc => desk.set_filter(String::new()),
        KeyCode::Char('s' | '>') => desk.sort_by(desk.order.neighbour(true)),
        KeyCode::Char('<') => desk.sort_by(desk.order.neighbour(false)),
        KeyCode::Char('r') => desk.reversed = !desk.reversed,
        KeyCode::Char('/') => desk.mode = Mode::Filter,
        KeyCode::Char('h' | '?') => desk.mode = Mode::Help,
        KeyCode::Down | KeyCode::Char('j') => desk.go(1),
        KeyCode::Up | KeyCode::Char('k') => desk.go(-1),
        KeyCode::PageDown => desk.go(PAGE),
        KeyCode::PageUp => desk.go(-PAGE),
        KeyCode::Home => desk.go(isize::MIN),
        KeyCode::End => desk.go(isize::MAX),
        KeyCode::Enter => desk.open(),
        KeyCode::Char('p') => desk.mode = desk.change().map_or(Mode::Table, Mode::Confirm),
        _ => {}
    }
    Demand::Nothing
}

fn in_filter(desk: &mut Desk, key: KeyCode) -> Demand {
    let mut filter = desk.filter.clone();
    match key {
        KeyCode::Esc => {
            desk.mode = Mode::Table;
            filter.clear();
        }
        KeyCode::Enter => desk.mode = Mode::Table,
        KeyCode::Backspace => {
            filter.pop();
        }
        KeyCode::Char(letter) => filter.push(letter),
        _ => {}
    }
    desk.set_filter(filter);
    Demand::Nothing
}
