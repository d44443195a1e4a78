//! Who sits at which GPU, with which terms.
//!
//! What is written here is what the kernel said of a process and what the rules granted it. Boards can be written by
//! all of their tenants, so they are asked only for what tenants say about themselves.
//!
//! A tenant is a number that its processes bring along, together with the user they run as: nobody joins a tenant of
//! somebody else by saying its number. Changes made to a tenant while it runs, a pause say, hold for the processes that it
//! starts later, and are forgotten a while after the last of them and the process that began it are gone.
//!
//! * `change`: tenants by name, and what an admin may do to them; `remembered`: what the next daemon must know of that
//! * `bounds`: how much of boards and seats one user may have
//! * `fate`: what the tenants of the shared domain have in common
//! * `tuning`: the controllers of all GPUs, and when they look
//! * `integrity`: whether boards still hold what was written there
//! * `summary`: all of it, as a report; `insight`: the part of it that is about policies
//! * `book`: what tenants have counted, for longer than their processes live; `observation`: the same for monitoring

mod book;
mod bounds;
mod change;
mod fate;
mod insight;
mod integrity;
mod observation;
mod picture;
mod presence;
pub mod remembered;
mod summary;
#[cfg(test)]
mod tests;
mod tuning;

use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::path::PathBuf;

use board::link::{Granted, NAME_BYTES, PROGRAM_BYTES, Reason, Registration};
use board::{Board, Change, Figures, Gpu, Label, Occupant, Terms};
use export::{Disconnects, Reload};
use model::{Class, Domain, Nanos};

use crate::access::SeatedWith;
use crate::controller::Controller;
use crate::nvml::Survey;
use crate::peer::Peer;
use crate::request::{Outlook, Wish};
use crate::{Choice, Configuration, Metrics};

use book::Book;
pub use fate::Fate;
pub use insight::sentence;
use remembered::Kept;

/// How long the board of a GPU stays when nobody sits at it.
const EMPTY_FOR: Nanos = Nanos::from_millis(30_000);

/// A seat that was given, as the daemon counts them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ticket(u64);

/// A tenant: whose it is, and the number its processes say.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TenantKey {
    pub user: u32,
    claimed: u64,
}

/// A board: of a GPU, for all of its users or for one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct BoardKey {
    pub gpu: Gpu,
    /// Whose it is, where only one user sits there.
    pub user: Option<u32>,
}

#[derive(Debug)]
struct Tenant {
    /// Its number on boards and in reports: what its processes say, unless that is somebody else's.
    number: u64,
    /// What was changed about it while it ran.
    wish: Wish,
    /// Seats and guests.
    members: usize,
    /// Until when it was waited for, if it has come back.
    awaited: Nanos,
}

/// One process at one GPU.
#[derive(Debug)]
struct Sitting {
    board: BoardKey,
    place: board::Place,
    pid: u32,
    user: u32,
    groups: Vec<u32>,
    tenant: TenantKey,
    name: String,
    /// As the board has them.
    label: Label<NAME_BYTES>,
    program: Label<PROGRAM_BYTES>,
    asked: Terms,
    granted: Terms,
    lowered: bool,
    /// For whom it counts in the book.
    account: book::Owner,
    /// What it has counted, as far as it is in the book.
    counted: Box<Figures>,
    /// For how long it had work, when that was last held against how long it was on the GPU, and that since then.
    pending: u64,
    had: Nanos,
    /// It was said that its timeslice is not the short one.
    told_of_slice: bool,
}

/// How a process came to leave its seat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// It is gone, or has let go of its connection.
    Gone,
    /// It said something that nobody may say there.
    Expelled,
}

struct Table {
    board: Board,
    file: OwnedFd,
    /// With whom those who sit here may be seated, which says whether any of them has shown the GPU. They may sit apart all the same.
    with: SeatedWith,
    seats: usize,
    empty_since: Nanos,
    controller: Controller,
    /// How often something was put back that somebody else had written over.
    tampered: u64,
    /// How much of the GPU's time strangers had, as far as that is known.
    strangers_time: Nanos,
}

impl Drop for Table {
    fn drop(&mut self) {
        // SAFETY: copies of a table's board are made in passing, while the table is borrowed; none is kept.
        unsafe { self.board.close() };
    }
}

/// How it stands with the configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Configured {
    /// Where its file is, whether or not there is one.
    pub file: Option<String>,
    /// Those that were read.
    pub files: Vec<String>,
    /// How many different ones have been in force, this one included.
    pub generation: u64,
    /// Why the files, as they are now, are not in force.
    pub error: Option<String>,
    /// When what is in force was last read, in nanoseconds since 1970 and by the clock of boards.
    pub loaded_ns: u64,
    pub loaded: Nanos,
}

pub struct Registry {
    configuration: Configuration,
    /// Of this daemon, other than that of any before it.
    generation: u64,
    began: Nanos,
    folder: PathBuf,
    tables: BTreeMap<BoardKey, Table>,
    sittings: BTreeMap<Ticket, Sitting>,
    tenants: BTreeMap<TenantKey, Tenant>,
    /// What was changed about tenants that are not here, and may come back.
    remembered: BTreeMap<TenantKey, Kept>,
    /// What was changed about tenants is not written down yet.
    changed: bool,
    /// Seats whose occupants have to be told of other terms.
    untold: BTreeSet<Ticket>,
    next: u64,
    /// Registrations that were not granted.
    pub refused: u64,
    /// Connections that were closed because somebody may not connect, or has too many.
    pub turned_away: u64,
    /// Messages that were none.
    pub malformed: u64,
    /// When boards were last looked at, and whether somebody has left since.
    inspected: Nanos,
    departed: bool,
    /// What is wrong with the daemon itself, for the report.
    pub remark: Option<String>,
    /// What was chosen, where the configuration left it open.
    pub choice: Option<Choice>,
    /// How it stands with the configuration, for the report.
    pub configured: Configured,
    /// How MPS is, where there is one of ours.
    pub fate: Option<Fate>,
    /// Where metrics are served, and why they are not; for the report.
    pub metrics: Option<String>,
    pub metrics_trouble: Option<String>,
    /// Where the dashboard is, if there is one.
    pub dashboard: Option<String>,
    /// How the configuration was last read.
    pub reload: Reload,
    /// The GPUs of this machine and who computes on them, where that can be known.
    pub survey: Survey,
    /// When that was found.
    pub surveyed: Option<Nanos>,
    book: Book,
    disconnects: Disconnects,
}

impl Registry {
    pub fn new(configuration: Configuration, generation: u64, folder: PathBuf) -> Registry {
        Registry {
            configuration,
            generation,
            began: board::now(),
            folder,
            tables: BTreeMap::new(),
            sittings: BTreeMap::new(),
            tenants: BTreeMap::new(),
            remembered: BTreeMap::new(),
            changed: false,
            untold: BTreeSet::new(),
            next: 0,
            refused: 0,
            turned_away: 0,
            malformed: 0,
            inspected: Nanos::ZERO,
            departed: false,
            remark: None,
            choice: None,
            configured: Configured::default(),
            fate: None,
            metrics: None,
            metrics_trouble: None,
            dashboard: None,
            reload: read_now(),
            survey: Survey::new(),
            surveyed: None,
            book: Book::default(),
            disconnects: Disconnects::default(),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.sittings.is_empty()
    }

    /// Who sits at boards, each once, in words.
    pub fn names(&self) -> Vec<String> {
        let mut seen = BTreeSet::new();
        let first = self.sittings.values().filter(|sitting| seen.insert(sitting.pid));
        first.map(|sitting| format!("{} (pid {})", sitting.name, sitting.pid)).collect()
    }

    /// Whether a process of a tenant sits at a board.
    pub fn is_seated(&self, tenant: TenantKey) -> bool {
        self.sittings.values().any(|sitting| sitting.tenant == tenant)
    }

    /// Seats a process with those it may be seated with. Its claims are lowered to what its user may have.
    pub fn register(
        &mut self,
        peer: &Peer,
        registration: &Registration,
        with: SeatedWith,
    ) -> Result<(Ticket, Granted), Reason> {
        let apart = with == SeatedWith::OwnUser || self.configuration.board_per_user;
        let key = BoardKey { gpu: registration.gpu, user: apart.then_some(peer.user) };
        self.table(key, with)?;
        self.may_sit(key, peer.user)?;
        let Registration { class, weight, priority, slo, memory, .. } = *registration;
        let asked = Terms { class, weight, priority, slo, memory, paused: false };
        let claimed = match registration.tenant {
            0 => alone(peer.number(), self.generation),
            claimed => claimed,
        };
        let tenant = self.expect(peer.user, claimed);
        let (terms, lowered) = self.granted(asked, peer.user, &peer.groups, tenant);
        let occupant = Occupant {
            pid: peer.number(),
            tenant: self.tenants[&tenant].number,
            class: terms.class,
            weight: terms.weight,
            priority: terms.priority,
            slo: terms.slo,
            memory: terms.memory,
            name: registration.name.as_bytes(),
            program: registration.program.as_bytes(),
        };
        let table = self.tables.get_mut(&key).expect("it was found or made above");
        let Some(place) = table.board.take(&occupant) else {
            self.forget(tenant, board::now());
            return Err(Reason::Full);
        };
        table.seats += 1;
        if terms.paused {
            table.board.change(place, Change::Paused(true));
        }
        // Others may have to yield to this one, or share with it.
        table.board.announce();
        self.next += 1;
        let owner = book::Owner { name: registration.name.printable(), user: peer.user, class: terms.class };
        let sitting = Sitting {
            board: key,
            place,
            pid: peer.number(),
            user: peer.user,
            groups: peer.groups.clone(),
            tenant,
            name: owner.name.clone(),
            label: Label::new(registration.name.as_bytes()),
            program: Label::new(registration.program.as_bytes()),
            asked,
            granted: terms,
            lowered,
            account: self.book.open(registration.gpu, with, &owner, board::now()),
            counted: Box::new(Figures::NONE),
            pending: 0,
            had: Nanos::ZERO,
            told_of_slice: false,
        };
        self.sittings.insert(Ticket(self.next), sitting);
        let (domain, generation) = (self.domain(), self.generation);
        Ok((Ticket(self.next), Granted { place, terms, lowered, domain, generation }))
    }

    /// The board of a seat, as a file to pass on.
    pub fn file(&self, ticket: Ticket) -> Option<BorrowedFd<'_>> {
        let sitting = self.sittings.get(&ticket)?;
        self.tables.get(&sitting.board).map(|table| table.file.as_fd())
    }

    /// Frees a seat, whatever became of who sat there.
    pub fn leave(&mut self, ticket: Ticket, end: End, now: Nanos) {
        self.settle(ticket);
        self.untold.remove(&ticket);
        let Some(sitting) = self.sittings.remove(&ticket) else { return };
        self.book.close(sitting.board.gpu, &sitting.account, now);
        match end {
            End::Expelled => self.disconnects.expelled += 1,
            End::Gone if sitting.counted.farewells > 0 => self.disconnects.exit += 1,
            End::Gone => self.disconnects.death += 1,
        }
        if let Some(fate) = &mut self.fate {
            fate.leaves(&sitting.name, sitting.pid, now);
        }
        if let Some(table) = self.tables.get_mut(&sitting.board) {
            table.board.free(sitting.place);
            table.board.announce();
            table.seats -= 1;
            table.empty_since = now;
        }
        self.departed = true;
        self.forget(sitting.tenant, now);
    }

    /// The terms that occupants of seats have to be told, each once and the newest only.
    pub fn take_untold(&mut self) -> Vec<(Ticket, Terms)> {
        let untold = std::mem::take(&mut self.untold).into_iter();
        untold.filter_map(|ticket| Some((ticket, self.sittings.get(&ticket)?.granted))).collect()
    }

    /// Wakes the occupant of a seat, who has been told something.
    pub fn ring(&self, ticket: Ticket) {
        let Some(sitting) = self.sittings.get(&ticket) else { return };
        if let Some(seat) =
            self.tables.get(&sitting.board).and_then(|table| table.board.sit(sitting.place).ok())
        {
            seat.ring();
        }
    }

    pub fn domain(&self) -> Domain {
        self.configuration.token.domain
    }

    /// Where metrics are to be served.
    pub fn metrics_wanted(&self) -> &Metrics {
        &self.configuration.metrics
    }

    /// What a claim of a peer would get.
    pub fn outlook(&self, peer: &Peer, class: Class, weight: u32, priority: u32) -> Outlook {
        let asked = Terms { class, weight, priority, ..Terms::default() };
        let (granted, lowered) = self.configuration.ceilings.of(peer.user, &peer.groups).lower(asked);
        let Terms { class, weight, priority, .. } = granted;
        let domain = self.configuration.token.domain.to_string();
        let mps_pipes = self.fate.as_ref().map(|fate| fate.pipes().display().to_string());
        Outlook { class: class.to_string(), weight, priority, lowered, domain, mps_pipes }
    }

    /// Takes another configuration into use, for those who are there too.
    /// The domain stays, because contexts are made in it. So does who sits with whom.
    pub fn configure(&mut self, mut configuration: Configuration) {
        configuration.token.domain = self.domain();
        configuration.board_per_user = self.configuration.board_per_user;
        let before = std::mem::replace(&mut self.configuration, configuration);
        let domain = self.domain();
        for (key, table) in &mut self.tables {
            let policy = self.configuration.policy_of(key.gpu);
            if before.policy_of(key.gpu).kind != policy.kind {
                table.controller.forget();
            }
            table.board.set_settings(&policy.settings(self.configuration.token));
            table.board.set_dials(&table.controller.dials(&policy, domain));
            table.board.announce();
        }
        let tickets: Vec<_> = self.sittings.keys().copied().collect();
        tickets.into_iter().for_each(|ticket| self.apply(ticket));
    }

    /// Removes boards at which nobody has sat for a while.
    pub fn clear_tables(&mut self, now: Nanos) {
        self.tables.retain(|_, table| table.seats > 0 || now.since(table.empty_since) < EMPTY_FOR);
    }

    /// When a board may next be removed.
    pub fn next_clearance(&self) -> Option<Nanos> {
        let empty = self.tables.values().filter(|table| table.seats == 0);
        empty.map(|table| table.empty_since + EMPTY_FOR).min()
    }

    /// Terms by ceiling, and over them what an admin decided.
    fn granted(&self, asked: Terms, user: u32, groups: &[u32], tenant: TenantKey) -> (Terms, bool) {
        let (lowered, is_lower) = self.configuration.ceilings.of(user, groups).lower(asked);
        let wish = self.tenants.get(&tenant).map(|tenant| tenant.wish).unwrap_or_default();
        let terms = Terms {
            class: wish.class.unwrap_or(lowered.class),
            weight: wish.weight.unwrap_or(lowered.weight),
            priority: wish.priority.unwrap_or(lowered.priority),
            slo: wish.slo.unwrap_or(lowered.slo),
            memory: wish.memory.unwrap_or(lowered.memory),
            paused: wish.paused.unwrap_or(lowered.paused),
        };
        (terms, is_lower && wish.class.is_none())
    }

    /// Finds anew what a seat has, for its occupant to be told, and for others on the board.
    fn apply(&mut self, ticket: Ticket) {
        let Some(sitting) = self.sittings.get(&ticket) else { return };
        let (terms, lowered) = self.granted(sitting.asked, sitting.user, &sitting.groups, sitting.tenant);
        if sitting.granted.class != terms.class {
            self.change_account(ticket, terms.class);
        }
        let sitting = self.sittings.get_mut(&ticket).expect("it was found above");
        let before = std::mem::replace(&mut sitting.granted, terms);
        sitting.lowered = lowered;
        if before != terms {
            self.untold.insert(ticket);
        }
        let Some(table) = self.tables.get(&sitting.board) else { return };
        let change = |differs: bool, change| {
            if differs {
                table.board.change(sitting.place, change);
            }
        };
        change(before.class != terms.class, Change::Class(terms.class));
        change(before.weight != terms.weight, Change::Weight(terms.weight));
        change(before.priority != terms.priority, Change::Priority(terms.priority));
        change(before.slo != terms.slo, Change::Slo(terms.slo));
        change(before.memory != terms.memory, Change::Memory(terms.memory));
        change(before.paused != terms.paused, Change::Paused(terms.paused));
        if before != terms {
            table.board.announce();
        }
    }

    /// What a seat has counted so far was counted in the class that it had.
    fn change_account(&mut self, ticket: Ticket, class: Class) {
        self.settle(ticket);
        let Some(sitting) = self.sittings.get_mut(&ticket) else { return };
        let now = board::now();
        let after = book::Owner { name: sitting.name.clone(), user: sitting.user, class };
        let with = self.tables.get(&sitting.board).map_or(SeatedWith::OwnUser, |table| table.with);
        self.book.close(sitting.board.gpu, &sitting.account, now);
        sitting.account = self.book.open(sitting.board.gpu, with, &after, now);
    }

    fn table(&mut self, key: BoardKey, with: SeatedWith) -> Result<(), Reason> {
        if let Some(table) = self.tables.get_mut(&key) {
            if with == SeatedWith::Everybody {
                table.with = with;
            }
            return Ok(());
        }
        self.may_have_board(key, with)?;
        let gpu = key.gpu;
        let policy = self.configuration.policy_of(gpu);
        let settings = policy.settings(self.configuration.token);
        let (board, file) = Board::create(gpu, &settings).map_err(|_| Reason::Failed)?;
        let controller = Controller::default();
        board.set_dials(&controller.dials(&policy, self.domain()));
        self.tables.insert(
            key,
            Table {
                board,
                file,
                with,
                seats: 0,
                empty_since: board::now(),
                controller,
                tampered: 0,
                strangers_time: Nanos::ZERO,
            },
        );
        Ok(())
    }
}

/// A configuration has just been read and found right.
pub fn read_now() -> Reload {
    let time = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    Reload { successful: true, at: time.as_secs_f64() }
}

/// The number of a process that belongs to no tree.
fn alone(pid: u32, generation: u64) -> u64 {
    (generation ^ u64::from(pid).rotate_left(32)) | 1
}
