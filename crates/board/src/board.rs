//! A board, and the daemon's half of it.

use std::sync::atomic::AtomicU64;

use model::{Bytes, Class, Dials, Domain, Nanos};
use rustix::fd::{BorrowedFd, OwnedFd};

use crate::condition::Condition;
use crate::experience::Experience;
use crate::layout::{self, Header, Layout, MAGIC, SEATS, VERSION};
use crate::outlook::Outlook;
use crate::reading::Reading;
use crate::standing::{self, Standing};
use crate::strangers::StrangersSeen;
use crate::sync::Ordering;
use crate::terms::{Change, Terms};
use crate::text::Label;
use crate::token::{self, Token};
use crate::{Error, Seat, Settings, segment};

/// A GPU, as `cuDeviceGetUuid` names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Gpu(pub [u8; 16]);

/// The place of one process on one board. The generation tells one occupant of a seat from the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    pub seat: u16,
    pub generation: u32,
}

/// Who takes a seat.
#[derive(Clone, Copy, Debug)]
pub struct Occupant<'a> {
    pub pid: u32,
    /// One for each `ebb run`: all processes of a tree share it.
    pub tenant: u64,
    pub class: Class,
    pub weight: u32,
    pub priority: u32,
    pub slo: Option<Nanos>,
    /// What all processes of the tenant may have together.
    pub memory: Option<Bytes>,
    /// As much of it as fits into 64 bytes.
    pub name: &'a [u8],
    /// As much of it as fits into 128 bytes.
    pub program: &'a [u8],
}

/// The shared segment of one GPU. It stays mapped for as long as the process lives.
#[derive(Clone, Copy)]
pub struct Board {
    pub(crate) layout: &'static Layout,
}

impl Board {
    /// Makes a board, and the file by which others open it.
    pub fn create(gpu: Gpu, settings: &Settings) -> Result<(Board, OwnedFd), Error> {
        let (layout, file) = segment::create()?;
        Ok((Board { layout }.begin(gpu, settings), file))
    }

    /// A board that nobody else sees.
    pub fn private(gpu: Gpu, settings: &Settings) -> Result<Board, Error> {
        Ok(Board { layout: segment::private()? }.begin(gpu, settings))
    }

    /// Opens what somebody says is a board. Its size is made certain before it is mapped, and what it says of itself is
    /// looked at before anything else is.
    pub fn open(file: BorrowedFd<'_>) -> Result<Board, Error> {
        let board = Board { layout: segment::open(file)? };
        if let Err(error) = check(&board.layout.header) {
            // SAFETY: nobody else has it yet.
            unsafe { board.close() };
            return Err(error);
        }
        Ok(board)
    }

    /// Gives the memory back: for the daemon, which makes more boards in its life than there are GPUs.
    ///
    /// # Safety
    ///
    /// No copy of this board and no seat of it is used in this process from here on.
    pub unsafe fn close(self) {
        // SAFETY: as the caller says.
        unsafe { segment::unmap(self.layout) };
    }

    pub(crate) fn begin(self, gpu: Gpu, settings: &Settings) -> Board {
        self.layout.header.dials.write(&Dials::default());
        self.restore(gpu, settings);
        self
    }

    /// Writes what a board is and which settings hold, at its beginning and whenever somebody else wrote there.
    pub fn restore(&self, gpu: Gpu, settings: &Settings) {
        let header = &self.layout.header;
        header.version.store(VERSION, Ordering::Relaxed);
        header.seats.store(SEATS as u32, Ordering::Relaxed);
        let (halves, _) = gpu.0.as_chunks::<8>();
        for (place, half) in header.gpu.iter().zip(halves) {
            place.store(u64::from_le_bytes(*half), Ordering::Relaxed);
        }
        settings.write(header);
        // SYNC(board-open): pairs with `check`, which looks for the magic first.
        header.magic.store(MAGIC, Ordering::Release);
    }

    /// Whether it still says that it is a board of this version.
    pub fn is_whole(&self) -> bool {
        check(&self.layout.header).is_ok()
    }

    /// Writes anew who sits at a place and with which terms; `false` when the place is no longer what it was. What the
    /// occupant says of itself stays.
    pub fn correct(&self, place: Place, occupant: &Occupant<'_>, paused: bool) -> bool {
        let Some(seat) = self.seat(place) else { return false };
        if !Standing::of(&seat.standing).is(place.generation) {
            return false;
        }
        name(seat, occupant, paused);
        self.layout.round.below.fetch_max(u32::from(place.seat) + 1, Ordering::Relaxed);
        seat.bell.ring();
        true
    }

    /// Frees all seats but those that the daemon gave, so that there is room again where somebody else wrote that there is
    /// none. How many there were.
    pub fn sweep(&self, given: impl Fn(Place) -> bool) -> usize {
        let seats = self.layout.seats.iter().zip(0u16..);
        let strange = seats.filter(|(seat, number)| {
            let standing = Standing::of(&seat.standing);
            !standing.is_free() && !given(Place { seat: *number, generation: standing.generation() })
        });
        let clear = |(seat, number): (&layout::Seat, u16)| {
            standing::clear(&seat.standing);
            token::forgo(self.layout, number);
            seat.stop_word.withdraw();
            self.layout.round.stopped.remove(number);
            self.layout.round.listening.remove(number);
        };
        strange.map(clear).count()
    }

    pub fn gpu(&self) -> Gpu {
        let mut bytes = [0; 16];
        for (place, half) in bytes.chunks_exact_mut(8).zip(&self.layout.header.gpu) {
            place.copy_from_slice(&half.load(Ordering::Relaxed).to_le_bytes());
        }
        Gpu(bytes)
    }

    /// Of the daemon: somebody who does not sit here has work on the GPU, and is believed to have until then.
    pub fn say_stranger(&self, until: Nanos) {
        self.layout.header.stranger_until.store(until.0, Ordering::Relaxed);
    }

    /// Up to which moment somebody had work on the GPU who does not sit here, as far as the daemon knows; `None`: nobody.
    pub fn stranger_seen(&self, now: Nanos) -> Option<Nanos> {
        let until = Nanos(self.layout.header.stranger_until.load(Ordering::Relaxed)).min(now);
        (until != Nanos::ZERO).then_some(until)
    }

    /// How the tenants' contexts share the GPU.
    pub fn domain(&self) -> Domain {
        self.settings().domain
    }

    /// What is written there, brought within what can work.
    pub fn settings(&self) -> Settings {
        Settings::read(&self.layout.header)
    }

    /// Who else is on the GPU, as the daemon last saw it.
    pub fn strangers(&self) -> StrangersSeen {
        self.layout.header.strangers.read()
    }

    /// Says who else is on the GPU. It is advice, and takes effect as seats look.
    pub fn set_strangers(&self, seen: StrangersSeen) {
        self.layout.header.strangers.write(seen);
    }

    /// Takes effect as seats look; [`announce`](Board::announce) makes them look now.
    pub fn set_settings(&self, settings: &Settings) {
        settings.write(&self.layout.header);
    }

    /// Gives a free seat to a process; `None` when there is none. The seat shows no life until its occupant does.
    pub fn take(&self, occupant: &Occupant<'_>) -> Option<Place> {
        let mut seats = self.layout.seats.iter().zip(0u16..);
        let (seat, number, generation) = seats.find_map(|(seat, number)| {
            standing::reserve(&seat.standing).map(|generation| (seat, number, generation))
        })?;
        settle(seat, occupant);
        // Who sat here before may have had it when somebody else ended its occupation.
        token::forgo(self.layout, number);
        self.layout.round.stopped.remove(number);
        self.layout.round.listening.remove(number);
        self.layout.round.below.fetch_max(u32::from(number) + 1, Ordering::Relaxed);
        standing::publish(&seat.standing, generation);
        Some(Place { seat: number, generation })
    }

    /// Ends an occupation, and frees the token if the seat had it; `false` when it was over already.
    pub fn free(&self, place: Place) -> bool {
        let Some(seat) = self.seat(place) else { return false };
        if !standing::vacate(&seat.standing, place.generation) {
            return false;
        }
        let active = Nanos(seat.heart.active_since.swap(0, Ordering::Relaxed));
        if active != Nanos::ZERO {
            seat.heart.busy.fetch_add(crate::now().since(active).0, Ordering::Relaxed);
        }
        seat.need.leave(crate::now());
        token::forgo(self.layout, place.seat);
        seat.stop_word.withdraw();
        self.layout.round.stopped.remove(place.seat);
        self.layout.round.listening.remove(place.seat);
        seat.bell.ring();
        // If it was the last one with work, those whom it had stopped go on.
        self.wake_stopped();
        true
    }

    /// Changes the terms of a seat and rings its bell; `false` when the place is no longer what it was.
    pub fn change(&self, place: Place, change: Change) -> bool {
        let Some(seat) = self.seat(place) else { return false };
        if !Standing::of(&seat.standing).is(place.generation) {
            return false;
        }
        let terms = seat.terms.read().with(change);
        seat.terms.write(&terms);
        seat.bell.ring();
        true
    }

    /// Says which part of the time in which a seat has work it is on the GPU, in permille; `None`: all of it, as far as is
    /// known.
    pub fn set_presence(&self, place: Place, permille: Option<u32>) {
        if let Some(seat) = self.seat(place) {
            seat.presence.store(permille.map_or(0, |part| part.min(1_000) + 1), Ordering::Relaxed);
        }
    }

    /// Rings every bell: something that concerns all has changed.
    pub fn announce(&self) {
        let taken = self.layout.used().iter().filter(|seat| Standing::of(&seat.standing).is_taken());
        taken.for_each(|seat| seat.bell.ring());
    }

    /// Who sits where. Each reading belongs to one occupant, or is left out.
    pub fn seats(&self) -> impl Iterator<Item = (Place, Reading)> {
        let board = *self;
        (0..self.layout.used().len())
            .filter_map(move |number| Reading::take(&board, u16::try_from(number).ok()?))
    }

    /// Who has the token, and since when.
    pub fn token(&self) -> Option<(Place, Nanos)> {
        // Somebody else may have it while we look who it is; then it is as true to look once more.
        for _ in 0..8 {
            let token = Token::of(&self.layout.round.token);
            let number = token.holder()?;
            let seat = self.layout.seats.get(usize::from(number))?;
            let standing = Standing::of(&seat.standing);
            let since = Nanos(seat.held_since.load(Ordering::Relaxed));
            if standing.is_taken() && Token::of(&self.layout.round.token) == token {
                return Some((Place { seat: number, generation: standing.generation() }, since));
            }
        }
        None
    }

    /// The process at a place, and when it last showed life; `None` when the place is no longer what it was.
    pub fn pulse(&self, place: Place) -> Option<(u32, Nanos)> {
        let seat = self.seat(place)?;
        let pulse = (seat.pid.load(Ordering::Relaxed), Nanos(seat.heart.beat.load(Ordering::Relaxed)));
        Standing::of(&seat.standing).is(place.generation).then_some(pulse)
    }

    /// The highest priority among the latency tenants that are here.
    pub fn highest_priority(&self) -> u32 {
        let taken = self.layout.used().iter().filter(|seat| Standing::of(&seat.standing).is_taken());
        let terms = taken.map(|seat| seat.terms.read()).filter(|terms| terms.class == Class::Latency);
        terms.map(|terms| terms.priority).max().unwrap_or(0)
    }

    /// What the board says of the occupant of a place, if it is that one still.
    pub fn read(&self, place: Place) -> Option<Reading> {
        let (found, reading) = Reading::take(self, place.seat)?;
        (found == place).then_some(reading)
    }

    /// The tenant's half: takes the place that the daemon gave.
    pub fn sit(&self, place: Place) -> Result<Seat, Error> {
        let seat = self.seat(place).filter(|seat| Standing::of(&seat.standing).is(place.generation));
        seat.map(|_| Seat::new(*self, place)).ok_or(Error::Stale)
    }

    pub(crate) fn seat(&self, place: Place) -> Option<&'static layout::Seat> {
        self.layout.seats.get(usize::from(place.seat))
    }
}

fn check(header: &Header) -> Result<(), Error> {
    // SYNC(board-open): pairs with `begin`.
    if header.magic.load(Ordering::Acquire) != MAGIC {
        return Err(Error::NotABoard);
    }
    let found = header.version.load(Ordering::Relaxed);
    let same_seats = header.seats.load(Ordering::Relaxed) == SEATS as u32;
    if found != VERSION || !same_seats {
        return Err(Error::Version { found });
    }
    Ok(())
}

/// Writes down who takes a reserved seat.
fn settle(seat: &layout::Seat, occupant: &Occupant<'_>) {
    name(seat, occupant, false);
    seat.said.write(&Condition::default());
    let plain: [&AtomicU64; 2] = [&seat.wanted_since, &seat.heart.beat];
    plain.into_iter().for_each(|place| place.store(0, Ordering::Relaxed));
    seat.heart.active_since.store(0, Ordering::Relaxed);
    seat.presence.store(0, Ordering::Relaxed);
    seat.heart.memory.clear();
    seat.stop_word.withdraw();
    seat.raises.clear();
    seat.outlook.write(&Outlook::default());
    seat.experience.write(&Experience::default());
    seat.need.clear();
    seat.virtual_time.store(0, Ordering::Relaxed);
    seat.held_since.store(0, Ordering::Relaxed);
    seat.tally.clear();
    seat.bell.hang();
}

/// What only the daemon writes of a seat.
fn name(seat: &layout::Seat, occupant: &Occupant<'_>, paused: bool) {
    let Occupant { class, weight, priority, slo, memory, .. } = *occupant;
    seat.terms.write(&Terms { class, weight, priority, slo, memory, paused });
    seat.name.write(&Label::new(occupant.name));
    seat.program.write(&Label::new(occupant.program));
    seat.pid.store(occupant.pid, Ordering::Relaxed);
    seat.tenant.store(occupant.tenant, Ordering::Relaxed);
}
