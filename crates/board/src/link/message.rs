//! Requests and replies as bytes. What comes from outside is an allegation: decoding accepts what encoding gives, and
//! says of everything else what is wrong with it.

use model::{Bytes, Class, Domain, Nanos};

use crate::board::{Gpu, Place};
use crate::layout::{self, SEATS};
use crate::terms::{HIGHEST_PRIORITY, HIGHEST_WEIGHT, Terms};
use crate::text::Label;

pub use crate::layout::{NAME_BYTES, PROGRAM_BYTES};

const MAGIC: [u8; 4] = *b"ebb1";
const REGISTER: u32 = 1;
const GRANTED: u32 = 2;
const REFUSED: u32 = 3;
const NEW_TERMS: u32 = 4;

/// Magic, version, kind.
const HEAD: usize = 12;
pub const REQUEST_BYTES: usize = HEAD + 16 + 4 + 4 + 4 + 8 + 8 + 8 + 1 + NAME_BYTES + 1 + PROGRAM_BYTES;
const TERMS_BYTES: usize = 4 + 4 + 4 + 4 + 8 + 8;
pub const REPLY_BYTES: usize = HEAD + TERMS_BYTES + 4 + 4 + 4 + 4 + 8;

/// What a tenant asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    Register(Registration),
}

/// Who a tenant says it is. The daemon asks the kernel for the pid and the user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Registration {
    /// The layout that the tenant knows.
    pub version: u32,
    pub gpu: Gpu,
    pub class: Class,
    pub weight: u32,
    pub priority: u32,
    pub slo: Option<Nanos>,
    pub memory: Option<Bytes>,
    /// One for each `ebb run`.
    pub tenant: u64,
    pub name: Label<NAME_BYTES>,
    pub program: Label<PROGRAM_BYTES>,
}

/// What the daemon says on a tenant's connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reply {
    /// The answer to a registration; comes with the board's file.
    Granted(Granted),
    /// The answer to a registration, and the end of the connection.
    Refused(Reason),
    /// Later, without a question: other terms hold from now on.
    NewTerms(Terms),
}

/// What a tenant goes by. The board has a copy of some of it, which everybody at the board can write: that copy is advice for
/// others, and never tells a tenant anything about itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Granted {
    pub place: Place,
    pub terms: Terms,
    /// Whether class, weight or priority are lower than was asked for.
    pub lowered: bool,
    /// How contexts share the GPU, for as long as the seat is the tenant's.
    pub domain: Domain,
    /// Another number for each daemon, so that a tenant knows a new one.
    pub generation: u64,
}

/// Why the daemon refuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Reason {
    #[error("it has another version")]
    Version,
    #[error("all seats of the GPU are taken")]
    Full,
    #[error("this user has too many connections, seats or boards")]
    TooMany,
    #[error("this user is not allowed")]
    NotAllowed,
    #[error("it did not understand the request")]
    NotUnderstood,
    #[error("it failed")]
    Failed,
    #[error(
        "this process has not shown that it may use the GPU (its device file must be open for reading and writing)"
    )]
    NoAccess,
    #[error("the GPU is none of this machine's, as far as the daemon can see")]
    UnknownGpu,
    #[error("for a reason that this version does not know ({0})")]
    Other(u32),
}

/// What is wrong with a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    #[error("it has {0} bytes")]
    Length(usize),
    #[error("it does not begin like one of ebb's")]
    Magic,
    #[error("it has version {0}")]
    Version(u32),
    #[error("it is of an unknown kind ({0})")]
    Kind(u32),
    #[error("one of its values cannot be")]
    Value,
}

impl Registration {
    /// With what a tenant gets that asks for nothing.
    pub fn new(gpu: Gpu, tenant: u64) -> Registration {
        Registration {
            version: layout::VERSION,
            gpu,
            class: Class::BestEffort,
            weight: 1,
            priority: 0,
            slo: None,
            memory: None,
            tenant,
            name: Label::default(),
            program: Label::default(),
        }
    }
}

impl Request {
    pub fn encode(&self) -> [u8; REQUEST_BYTES] {
        let Request::Register(it) = self;
        let mut to = Writer { bytes: [0; REQUEST_BYTES], at: 0 };
        to.head(it.version, REGISTER);
        to.put(&it.gpu.0);
        to.put(&class_number(it.class).to_le_bytes());
        to.put(&it.weight.to_le_bytes());
        to.put(&it.priority.to_le_bytes());
        to.put(&it.slo.map_or(0, |slo| slo.0).to_le_bytes());
        to.put(&it.memory.map_or(0, |memory| memory.0).to_le_bytes());
        to.put(&it.tenant.to_le_bytes());
        to.label(&it.name);
        to.label(&it.program);
        to.bytes
    }

    pub fn decode(bytes: &[u8]) -> Result<Request, Malformed> {
        let mut from = Reader { rest: bytes };
        match from.head()? {
            REGISTER => from.whole(bytes, REQUEST_BYTES)?,
            other => return Err(Malformed::Kind(other)),
        }
        let it = Registration {
            version: layout::VERSION,
            gpu: Gpu(from.take()?),
            class: class_of(from.u32()?)?,
            weight: from.weight()?,
            priority: from.priority()?,
            slo: Some(Nanos(from.u64()?)).filter(|slo| *slo != Nanos::ZERO),
            memory: Some(Bytes(from.u64()?)).filter(|memory| *memory != Bytes::ZERO),
            tenant: from.u64()?,
            name: from.label()?,
            program: from.label()?,
        };
        Ok(Request::Register(it))
    }
}

impl Reply {
    pub fn encode(&self) -> [u8; REPLY_BYTES] {
        let mut to = Writer { bytes: [0; REPLY_BYTES], at: 0 };
        match self {
            Reply::Granted(it) => {
                to.head(layout::VERSION, GRANTED);
                to.terms(&it.terms);
                to.put(&u32::from(it.place.seat).to_le_bytes());
                to.put(&it.place.generation.to_le_bytes());
                to.put(&u32::from(it.lowered).to_le_bytes());
                to.put(&u32::from(it.domain == Domain::Shared).to_le_bytes());
                to.put(&it.generation.to_le_bytes());
            }
            Reply::NewTerms(terms) => {
                to.head(layout::VERSION, NEW_TERMS);
                to.terms(terms);
            }
            Reply::Refused(reason) => {
                to.head(layout::VERSION, REFUSED);
                to.put(&reason.number().to_le_bytes());
            }
        }
        to.bytes
    }

    pub fn decode(bytes: &[u8]) -> Result<Reply, Malformed> {
        let mut from = Reader { rest: bytes };
        let kind = match from.head() {
            // A refusal is understood from any version: it says why.
            Err(Malformed::Version(_)) if from.peek() == Some(REFUSED) => from.u32()?,
            other => other?,
        };
        match kind {
            GRANTED => {
                from.whole(bytes, REPLY_BYTES)?;
                let terms = from.terms()?;
                let seat = u16::try_from(from.u32()?).ok().filter(|seat| usize::from(*seat) < SEATS);
                let seat = seat.ok_or(Malformed::Value)?;
                let place = Place { seat, generation: from.u32()? };
                let lowered = from.flag()?;
                let domain = if from.flag()? { Domain::Shared } else { Domain::Isolated };
                Ok(Reply::Granted(Granted { place, terms, lowered, domain, generation: from.u64()? }))
            }
            REFUSED => Ok(Reply::Refused(Reason::of(from.u32()?))),
            NEW_TERMS => {
                from.whole(bytes, REPLY_BYTES)?;
                let terms = from.terms()?;
                // One way to say a thing: what is not used is empty.
                let empty = from.rest.iter().all(|&byte| byte == 0);
                empty.then_some(Reply::NewTerms(terms)).ok_or(Malformed::Value)
            }
            other => Err(Malformed::Kind(other)),
        }
    }
}

impl Reason {
    const KNOWN: [Reason; 8] = [
        Reason::Version,
        Reason::Full,
        Reason::TooMany,
        Reason::NotAllowed,
        Reason::NotUnderstood,
        Reason::Failed,
        Reason::NoAccess,
        Reason::UnknownGpu,
    ];

    fn number(self) -> u32 {
        match self {
            Reason::Other(number) => number,
            known => {
                (1..).zip(Reason::KNOWN).find(|(_, reason)| *reason == known).map_or(0, |(number, _)| number)
            }
        }
    }

    fn of(number: u32) -> Reason {
        (1..)
            .zip(Reason::KNOWN)
            .find(|(known, _)| *known == number)
            .map_or(Reason::Other(number), |(_, reason)| reason)
    }
}

fn class_number(class: Class) -> u32 {
    match class {
        Class::BestEffort => 0,
        Class::Latency => 1,
    }
}

fn class_of(number: u32) -> Result<Class, Malformed> {
    match number {
        0 => Ok(Class::BestEffort),
        1 => Ok(Class::Latency),
        _ => Err(Malformed::Value),
    }
}

struct Writer<const N: usize> {
    bytes: [u8; N],
    at: usize,
}

impl<const N: usize> Writer<N> {
    fn put(&mut self, bytes: &[u8]) {
        self.bytes[self.at..self.at + bytes.len()].copy_from_slice(bytes);
        self.at += bytes.len();
    }

    fn head(&mut self, version: u32, kind: u32) {
        self.put(&MAGIC);
        self.put(&version.to_le_bytes());
        self.put(&kind.to_le_bytes());
    }

    fn terms(&mut self, terms: &Terms) {
        self.put(&class_number(terms.class).to_le_bytes());
        self.put(&terms.weight.to_le_bytes());
        self.put(&terms.priority.to_le_bytes());
        self.put(&u32::from(terms.paused).to_le_bytes());
        self.put(&terms.slo.map_or(0, |slo| slo.0).to_le_bytes());
        self.put(&terms.memory.map_or(0, |memory| memory.0).to_le_bytes());
    }

    /// Always in its full width, so that all messages of a kind are of one length.
    fn label<const M: usize>(&mut self, text: &Label<M>) {
        let (text, mut padded) = (text.as_bytes(), [0; M]);
        padded[..text.len()].copy_from_slice(text);
        self.put(&[u8::try_from(text.len()).expect("labels are shorter than 256 bytes")]);
        self.put(&padded);
    }
}

struct Reader<'a> {
    rest: &'a [u8],
}

impl Reader<'_> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let (first, rest) = self.rest.split_first_chunk().ok_or(Malformed::Length(self.rest.len()))?;
        self.rest = rest;
        Ok(*first)
    }

    fn u32(&mut self) -> Result<u32, Malformed> {
        Ok(u32::from_le_bytes(self.take()?))
    }

    fn u64(&mut self) -> Result<u64, Malformed> {
        Ok(u64::from_le_bytes(self.take()?))
    }

    fn flag(&mut self) -> Result<bool, Malformed> {
        match self.u32()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(Malformed::Value),
        }
    }

    fn weight(&mut self) -> Result<u32, Malformed> {
        let weight = self.u32()?;
        (1..=HIGHEST_WEIGHT).contains(&weight).then_some(weight).ok_or(Malformed::Value)
    }

    fn priority(&mut self) -> Result<u32, Malformed> {
        let priority = self.u32()?;
        (priority <= HIGHEST_PRIORITY).then_some(priority).ok_or(Malformed::Value)
    }

    fn terms(&mut self) -> Result<Terms, Malformed> {
        Ok(Terms {
            class: class_of(self.u32()?)?,
            weight: self.weight()?,
            priority: self.priority()?,
            paused: self.flag()?,
            slo: Some(Nanos(self.u64()?)).filter(|slo| *slo != Nanos::ZERO),
            memory: Some(Bytes(self.u64()?)).filter(|memory| *memory != Bytes::ZERO),
        })
    }

    fn peek(&self) -> Option<u32> {
        self.rest.first_chunk().map(|bytes| u32::from_le_bytes(*bytes))
    }

    /// The kind, after a magic and a version that are right.
    fn head(&mut self) -> Result<u32, Malformed> {
        if self.take()? != MAGIC {
            return Err(Malformed::Magic);
        }
        match self.u32()? {
            layout::VERSION => self.u32(),
            other => Err(Malformed::Version(other)),
        }
    }

    fn whole(&self, bytes: &[u8], expected: usize) -> Result<(), Malformed> {
        if bytes.len() == expected { Ok(()) } else { Err(Malformed::Length(bytes.len())) }
    }

    /// A text whose padding is empty: one text, one way to write it.
    fn label<const M: usize>(&mut self) -> Result<Label<M>, Malformed> {
        let [length] = self.take()?;
        let bytes: [u8; M] = self.take()?;
        let (text, padding) = bytes.split_at_checked(usize::from(length)).ok_or(Malformed::Value)?;
        if text.contains(&0) || padding.iter().any(|&byte| byte != 0) {
            return Err(Malformed::Value);
        }
        Ok(Label::new(text))
    }
}
