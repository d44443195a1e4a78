//! What a PTX module looks like once read: spanned statements, open in the opcode.
//!
//! Nothing here owns text. Every node carries the span of the source it came from; `Module::text` turns a
//! span into a `&str`. What no pass understands is still a statement with a span, so it survives untouched.

use crate::Lines;
use std::ops::Range;

/// A half-open range of bytes in the source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Span {
    pub start: u32,
    pub end: u32,
}

impl Span {
    /// As a range to index the source with.
    pub fn range(self) -> Range<usize> {
        self.start as usize..self.end as usize
    }
}

/// A module in source order.
#[derive(Clone, Debug)]
pub struct Module {
    pub source: String,
    pub items: Vec<Item>,
}

impl Module {
    /// The source text of a span.
    pub fn text(&self, span: Span) -> &str {
        &self.source[span.range()]
    }

    /// Line and column where a span begins, both from one, the column in bytes. For many, use [`Lines`].
    pub fn line_column(&self, span: Span) -> (u32, u32) {
        Lines::new(&self.source[..span.range().start]).line_column(span.start)
    }
}

/// A statement at module level.
#[derive(Clone, Debug)]
pub enum Item {
    Variable(Variable),
    Function(Function),
    /// `.version`, `.target`, `.address_size`, `.file`, `.section …`, `.alias`, `.pragma`, and whatever is unknown.
    Directive(Directive),
}

/// A directive kept as words: `.target sm_90, debug` has name `.target` and arguments `sm_90`, `debug`.
#[derive(Clone, Debug)]
pub struct Directive {
    pub span: Span,
    pub name: Span,
    pub arguments: Vec<Span>,
}

/// `.global .align 4 .b8 table[16] = {…};`, a parameter, or a `.reg`/`.local`/`.shared` declaration.
#[derive(Clone, Debug)]
pub struct Variable {
    pub span: Span,
    pub linkage: Vec<Span>,
    /// `.reg`, `.global`, `.shared`, `.const`, `.local`, `.param`.
    pub space: Span,
    pub align: Option<u64>,
    /// `.v2`, `.v4`.
    pub vector: Option<Span>,
    /// `.b32`, `.f64`, `.pred`, `.texref` …
    pub ty: Span,
    /// Further words: `.ptr .global .align 4`, `.managed`, `.attribute(…)`.
    pub attributes: Vec<Span>,
    pub declarators: Vec<Declarator>,
}

/// One name of a declaration. `%r<12>` declares `%r0` to `%r11`.
#[derive(Clone, Debug)]
pub struct Declarator {
    pub span: Span,
    pub name: Span,
    pub count: Option<u32>,
    /// `[4][2]` is `[Some(4), Some(2)]`; `[]` is `[None]`.
    pub dimensions: Vec<Option<u64>>,
    pub initialiser: Option<Initialiser>,
}

#[derive(Clone, Debug)]
pub enum Initialiser {
    Value(Operand),
    List(Vec<Initialiser>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FunctionKind {
    Entry,
    Device,
}

#[derive(Clone, Debug)]
pub struct Function {
    pub span: Span,
    pub linkage: Vec<Span>,
    pub kind: FunctionKind,
    pub name: Span,
    pub returns: Vec<Variable>,
    /// The parentheses around the parameters and what is between; `.entry name { … }` has none.
    pub parameter_list: Option<Span>,
    pub parameters: Vec<Variable>,
    /// `.maxntid 256, 1, 1`, `.reqntid`, `.minnctapersm`, `.maxnreg`, `.noreturn`, `.pragma` …
    pub directives: Vec<Directive>,
    /// `None` for a forward declaration.
    pub body: Option<Body>,
}

/// The braces of a function or of a scope in it.
#[derive(Clone, Debug)]
pub struct Body {
    /// From `{` to `}` inclusive.
    pub span: Span,
    pub statements: Vec<Statement>,
}

#[derive(Clone, Debug)]
pub enum Statement {
    /// `$L__BB0_1:`; the span of `name` has no colon.
    Label {
        span: Span,
        name: Span,
    },
    Variable(Variable),
    Instruction(Instruction),
    /// `.loc`, `.pragma`, and the labelled `.branchtargets`, `.calltargets`, `.callprototype`.
    Directive(Directive),
    Scope(Body),
}

/// `@!%p1 ld.global.nc.v2.f32 {%f1, %f2}, [%rd4+16];`
#[derive(Clone, Debug)]
pub struct Instruction {
    pub span: Span,
    pub guard: Option<Guard>,
    /// `ld`; without modifiers.
    pub opcode: Span,
    /// `global`, `nc`, `v2`, `f32`, without the dots, in order. `::` joins stay: `L2::128B` is one modifier.
    pub modifiers: Vec<Span>,
    pub operands: Vec<Operand>,
}

#[derive(Clone, Copy, Debug)]
pub struct Guard {
    pub negated: bool,
    pub register: Span,
}

#[derive(Clone, Debug)]
pub enum Operand {
    /// A register, label, variable or special register; `%tid.x` and `%v.x` are one name.
    Name(Span),
    /// Bits of an integer literal, two's complement where a minus stood before it.
    Integer { span: Span, value: u64 },
    /// `0f3F800000` (32 bits), `0d…` (64 bits) or a decimal literal, as the bits of an f64 or f32.
    Float { span: Span, bits: u64, double: bool },
    /// `[%rd1+8]`, `[name]`, `[name+4]`, `[16]`; tensor coordinates and other words are in `rest`.
    Address { span: Span, base: Box<Operand>, offset: i64, rest: Vec<Operand> },
    /// `name+8` outside brackets, as in initialisers and `mov`.
    Offset { span: Span, base: Span, offset: i64 },
    /// `name[4]`: the address of an element of an array, whose size its declaration says.
    Element { span: Span, base: Span, index: i64 },
    /// `{%r1, %r2}`.
    Vector { span: Span, elements: Vec<Operand> },
    /// `(param0, param1)` of a call.
    List { span: Span, elements: Vec<Operand> },
    /// `!%p1`.
    Not { span: Span, register: Span },
    /// `-%r1`, seldom.
    Negated { span: Span, register: Span },
    /// `%r1|%p2`: two results.
    Pair { span: Span, first: Span, second: Span },
    /// `generic(name)` and other calls in initialisers.
    Apply { span: Span, function: Span, argument: Box<Operand> },
}
