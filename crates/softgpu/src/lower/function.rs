//! The body of one function: scopes, names, labels, and the instructions made so far.

use std::collections::HashMap;
use std::rc::Rc;

use ptx::{Body, Span, Statement};

use super::error::{Error, Place};
use super::module::{Linker, Source};
use super::raw::{Class, Control, Operand, Raw, Register, Virtual};
use super::table;
use crate::isa::{Execute, Type};

/// What a name in a function stands for.
#[derive(Clone, Debug)]
pub(super) enum Name {
    Register(Virtual, Type),
    /// `.reg .v4 .f32 v`.
    Vector(Vec<Virtual>, Type),
    /// A parameter of a call or of a device function: its bytes, four per register.
    Parameter(Rc<[Virtual]>),
    /// Offset in the kernel's parameters.
    KernelParameter(u32),
    /// Offset in the frame's local memory.
    Local(u32, Stride),
    /// Offset in the block's shared memory.
    Shared(u32, Stride),
    /// Shared memory whose size the launch says.
    DynamicShared(Stride),
    Variable(u32, Stride),
    Function(u32),
    Label(u32),
    Prototype,
    Targets(Rc<[u32]>),
}

/// Bytes from one subscript of an array to the next; `None` for what is no array.
pub(super) type Stride = Option<u32>;

/// `%r<100>`.
struct Family {
    count: u32,
    ty: Type,
}

#[derive(Default)]
struct Scope {
    names: HashMap<String, Name>,
    families: HashMap<String, Family>,
}

/// Limits against texts made to exhaust the host, where a few characters stand for thousands of instructions,
/// registers or operands: on one function, which is held in its dearest form, and on all of a module.
const MOST_REGISTERS: usize = 1 << 20;
const MOST_REGISTERS_OF_ALL: usize = 16 << 20;
const MOST_INSTRUCTIONS: usize = 1 << 20;
pub(super) const MOST_INSTRUCTIONS_OF_ALL: usize = 4 << 20;
const MOST_LISTED_OF_ALL: usize = 4 << 20;
const MOST_LOCAL: u64 = 512 << 10;

pub(super) struct Lowering<'a> {
    pub linker: &'a mut Linker,
    pub source: &'a Source,
    /// Which of the linked modules this is.
    pub unit: usize,
    pub is_kernel: bool,
    scopes: Vec<Scope>,
    pub registers: Vec<Register>,
    pub code: Vec<Raw>,
    /// Index of the instruction behind each label; `usize::MAX` until it is met.
    pub labels: Vec<usize>,
    /// Guard and line of the instruction being lowered.
    guard: Option<(Virtual, bool)>,
    line: u32,
    pub local_bytes: u64,
    pub shared_bytes: u64,
    pub parameter_rows: u32,
    pub result_rows: u32,
    /// Results declared as registers: copied to their rows before returning.
    pub result_registers: Vec<(Virtual, Vec<Virtual>)>,
    pub callees: Vec<u32>,
    pub calls_pointers: bool,
    pending_label: Option<String>,
    /// Operands in lists so far.
    listed: usize,
}

impl<'a> Lowering<'a> {
    pub(super) fn new(
        linker: &'a mut Linker,
        source: &'a Source,
        unit: usize,
        is_kernel: bool,
    ) -> Lowering<'a> {
        Lowering {
            linker,
            source,
            unit,
            is_kernel,
            scopes: vec![Scope::default()],
            registers: Vec::new(),
            code: Vec::new(),
            labels: Vec::new(),
            guard: None,
            line: 0,
            local_bytes: 0,
            shared_bytes: 0,
            parameter_rows: 0,
            result_rows: 0,
            result_registers: Vec::new(),
            callees: Vec::new(),
            calls_pointers: false,
            pending_label: None,
            listed: 0,
        }
    }

    pub(super) fn text(&self, span: Span) -> &'a str {
        self.source.text(span)
    }

    pub(super) fn place(&self, span: Span) -> Place {
        self.source.place(span)
    }

    pub(super) fn invalid(&self, span: Span, message: impl Into<String>) -> Error {
        Error::Invalid { place: self.place(span), message: message.into() }
    }

    pub(super) fn unsupported(&self, span: Span, what: impl Into<String>) -> Error {
        Error::Unsupported { place: self.place(span), what: what.into() }
    }

    pub(super) fn declare(&mut self, span: Span, name: Name) -> Result<(), Error> {
        let text = self.text(span).to_owned();
        let scope = self.scopes.last_mut().expect("a function has its outermost scope");
        match scope.names.insert(text, name) {
            // The compiler repeats `temp_param_reg` and the like, but only in scopes of their own.
            Some(Name::Label(_)) | None => Ok(()),
            Some(_) => Err(self.invalid(span, format!("`{}` is declared twice", self.text(span)))),
        }
    }

    pub(super) fn declare_family(&mut self, span: Span, count: u32, ty: Type) {
        let prefix = self.text(span).to_owned();
        let scope = self.scopes.last_mut().expect("a function has its outermost scope");
        scope.families.insert(prefix, Family { count, ty });
    }

    pub(super) fn register(&mut self, class: Class) -> Virtual {
        self.registers.push(Register { class, fixed: None, temporary: false });
        Virtual(self.registers.len() as u32 - 1)
    }

    pub(super) fn fixed(&mut self, row: u32) -> Virtual {
        self.registers.push(Register { class: Class::Narrow, fixed: Some(row), temporary: false });
        Virtual(self.registers.len() as u32 - 1)
    }

    pub(super) fn temporary(&mut self, class: Class) -> Virtual {
        self.registers.push(Register { class, fixed: None, temporary: true });
        Virtual(self.registers.len() as u32 - 1)
    }

    pub(super) fn check_registers(&self, span: Span) -> Result<(), Error> {
        let (place, own) = (self.place(span), self.registers.len());
        check(place, "the number of registers", own, MOST_REGISTERS)?;
        let all = self.linker.registers + own;
        check(place, "the number of registers in all functions", all, MOST_REGISTERS_OF_ALL)
    }

    /// Whether there is room for `more` operands of calls and jump tables.
    pub(super) fn check_listed(&self, span: Span, more: usize) -> Result<(), Error> {
        let all = self.linker.lists.len() + self.listed + more;
        check(self.place(span), "the operands of calls and jump tables", all, MOST_LISTED_OF_ALL)
    }

    /// What a name means here; `None` if nothing.
    pub(super) fn find(&mut self, text: &str) -> Option<Name> {
        for index in (0..self.scopes.len()).rev() {
            if let Some(name) = self.scopes[index].names.get(text) {
                return Some(name.clone());
            }
            if let Some(ty) = self.scopes[index].member(text) {
                let register = self.register(Class::of(ty));
                let name = Name::Register(register, ty);
                self.scopes[index].names.insert(text.to_owned(), name.clone());
                return Some(name);
            }
        }
        self.linker.find(self.unit, text)
    }

    /// The register a span names, with its type.
    pub(super) fn find_register(&mut self, span: Span) -> Result<(Virtual, Type), Error> {
        let text = self.text(span);
        match self.find(text) {
            Some(Name::Register(register, ty)) => Ok((register, ty)),
            Some(_) => Err(self.invalid(span, format!("`{text}` is not a register"))),
            None => match self.vector_element(text) {
                Some(found) => Ok(found),
                None => Err(self.invalid(span, format!("unknown name `{text}`"))),
            },
        }
    }

    /// `%v.x` of a vector register.
    fn vector_element(&mut self, text: &str) -> Option<(Virtual, Type)> {
        let (base, element) = text.rsplit_once('.')?;
        let index = match element {
            "x" | "r" => 0,
            "y" | "g" => 1,
            "z" | "b" => 2,
            "w" | "a" => 3,
            _ => return None,
        };
        match self.find(base)? {
            Name::Vector(registers, ty) => Some((*registers.get(index)?, ty)),
            _ => None,
        }
    }

    /// Adds an instruction under the guard and line of the statement being lowered.
    pub(super) fn emit(&mut self, raw: Raw) {
        self.listed += match &raw.control {
            Control::Table(targets) => targets.len(),
            _ => raw.list.len(),
        };
        self.code.push(Raw { guard: self.guard, line: self.line, ..raw });
    }

    /// An instruction of plain arithmetic.
    pub(super) fn emit_op(&mut self, run: Execute, d: Operand, sources: &[Operand], aux: u32) {
        let operand = |index: usize| sources.get(index).copied().unwrap_or(Operand::None);
        let raw = Raw::new(run).d(d).a(operand(0)).b(operand(1)).c(operand(2)).e(operand(3)).aux(aux);
        self.emit(raw);
    }

    pub(super) fn body(&mut self, body: &Body) -> Result<(), Error> {
        self.labels_of(body)?;
        for statement in &body.statements {
            self.statement(statement)?;
        }
        Ok(())
    }

    /// Labels may be used before they stand.
    fn labels_of(&mut self, body: &Body) -> Result<(), Error> {
        for statement in &body.statements {
            if let Statement::Label { name, .. } = statement {
                let label = Name::Label(self.labels.len() as u32);
                self.labels.push(usize::MAX);
                let text = self.text(*name).to_owned();
                let scope = self.scopes.last_mut().expect("a function has its outermost scope");
                if scope.names.insert(text, label).is_some() {
                    return Err(self.invalid(*name, format!("`{}` is declared twice", self.text(*name))));
                }
            }
        }
        Ok(())
    }

    fn statement(&mut self, statement: &Statement) -> Result<(), Error> {
        match statement {
            Statement::Label { name, .. } => {
                let text = self.text(*name);
                if let Some(Name::Label(label)) = self.find(text) {
                    self.labels[label as usize] = self.code.len();
                }
                self.pending_label = Some(text.to_owned());
                Ok(())
            }
            Statement::Variable(variable) => self.variable(variable),
            Statement::Directive(directive) => self.directive(directive),
            Statement::Scope(body) => {
                self.scopes.push(Scope::default());
                let done = self.body(body);
                self.scopes.pop();
                done
            }
            Statement::Instruction(instruction) => self.instruction(instruction),
        }
    }

    /// `.branchtargets` and `.callprototype` give a meaning to the label before them; the rest is for others.
    fn directive(&mut self, directive: &ptx::Directive) -> Result<(), Error> {
        let Some(label) = self.pending_label.clone() else { return Ok(()) };
        let name = match self.text(directive.name) {
            ".branchtargets" => Name::Targets(self.branch_targets(directive)?.into()),
            ".callprototype" | ".calltargets" => Name::Prototype,
            _ => return Ok(()),
        };
        let scope = self.scopes.last_mut().expect("a function has its outermost scope");
        scope.names.insert(label, name);
        Ok(())
    }

    fn branch_targets(&mut self, directive: &ptx::Directive) -> Result<Vec<u32>, Error> {
        let mut targets = Vec::new();
        for span in &directive.arguments {
            match self.find(self.text(*span)) {
                Some(Name::Label(label)) => targets.push(label),
                _ => return Err(self.invalid(*span, format!("`{}` is not a label", self.text(*span)))),
            }
        }
        Ok(targets)
    }

    fn instruction(&mut self, instruction: &ptx::Instruction) -> Result<(), Error> {
        self.pending_label = None;
        self.line = self.place(instruction.span).line;
        self.guard = match instruction.guard {
            None => None,
            Some(guard) => {
                let (register, ty) = self.find_register(guard.register)?;
                if ty != Type::Pred {
                    return Err(self.invalid(guard.register, "a guard is a predicate"));
                }
                Some((register, guard.negated))
            }
        };
        table::lower(self, instruction)?;
        self.check_registers(instruction.span)?;
        let place = self.place(instruction.span);
        check(place, "the number of instructions", self.code.len(), MOST_INSTRUCTIONS)?;
        self.check_listed(instruction.span, 0)
    }

    /// Takes room in local memory; the offset in the frame.
    pub(super) fn take_local(&mut self, span: Span, bytes: u64, align: u64) -> Result<u32, Error> {
        let start = self.local_bytes.next_multiple_of(align.max(1));
        self.local_bytes = start.saturating_add(bytes);
        if self.local_bytes > MOST_LOCAL {
            let (place, value) = (self.place(span), self.local_bytes);
            return Err(Error::TooLarge { place, what: "local memory", value, most: MOST_LOCAL });
        }
        Ok(start as u32)
    }
}

pub(super) fn check(place: Place, what: &'static str, value: usize, most: usize) -> Result<(), Error> {
    let (value, most) = (value as u64, most as u64);
    if value <= most { Ok(()) } else { Err(Error::TooLarge { place, what, value, most }) }
}

impl Scope {
    /// The type of a member of a family such as `%r<100>`.
    fn member(&self, text: &str) -> Option<Type> {
        let digits = text.len() - text.trim_end_matches(|c: char| c.is_ascii_digit()).len();
        // The prefix may itself end in digits, so that `%r1<10>` declares `%r15`.
        (1..=digits.min(10)).rev().find_map(|count| {
            let (prefix, number) = text.split_at(text.len() - count);
            let canonical = number.len() == 1 || !number.starts_with('0');
            let family = self.families.get(prefix).filter(|_| canonical)?;
            (number.parse::<u32>().ok()? < family.count).then_some(family.ty)
        })
    }
}
