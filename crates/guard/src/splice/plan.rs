//! What is to be changed about a kernel, worked out before anything is.

use super::code::{self, splice};
use super::outside::Outside;
use super::records::{News, retell};
use crate::machine::facts;
use crate::prologue::Prologue;
use crate::verdict::{Reason, Rule, Verdict};
use crate::{Control, Parameter};
use cubin::File;
use cubin::file::kind;
use cubin::kernel::{Description, Kernel, Registers};

/// ABI version from which a record counts a kernel's barriers. Before, its section does.
const ABI_BARRIERS_IN_RECORD: u8 = 8;
/// Where the flags of a section of instructions count barriers, in 7 bits.
const BARRIER_SHIFT: u32 = 20;
/// Where the number beside them counts registers, in 8 bits, if it does.
const REGISTER_SHIFT: u32 = 24;

/// No thread can have more.
const MOST_REGISTERS: u32 = 255;

/// What is the same for all kernels of a file.
pub(super) struct Shop {
    prologue: &'static Prologue,
    registers: Registers,
    outside: Outside,
    /// For each section, of how many kernels it is a part.
    claims: Vec<u32>,
    /// Whether launches of its kernels may overlap.
    pub overlaps: bool,
}

/// All that is new about a kernel.
pub(super) struct Change {
    pub rule: Rule,
    pub control_offset: u32,
    text: Vec<u8>,
    info: Vec<u8>,
    /// New length of its constant bank.
    constants: usize,
    registers: u32,
}

/// The sections of a kernel, where all that are needed are there.
#[derive(Clone, Copy)]
struct Parts {
    text: usize,
    info: usize,
    constants: usize,
}

impl Shop {
    pub fn new(file: &File<'_>, kernels: &[Kernel<'_>], prologue: &'static Prologue) -> Result<Shop, Reason> {
        let registers = file.register_counts().map_err(|_| Reason::UnknownRecords)?;
        if file.sections().iter().any(|section| section.kind == kind::INFO && section.is_shared()) {
            return Err(Reason::UnknownRecords);
        }
        let mut claims = vec![0; file.sections().len()];
        for kernel in kernels {
            let parts = [Some(kernel.text), kernel.info, kernel.constants];
            parts.iter().flatten().for_each(|&part| claims[part] += 1);
        }
        let outside = Outside::read(file, prologue.generation);
        let overlaps = prologue.generation.has_overlap() && !functions_let_the_next_begin(file, &claims);
        Ok(Shop { prologue, registers, outside, claims, overlaps })
    }

    /// Everything that is to be changed about the kernel, or why it must stay as it is.
    pub fn plan(&self, file: &File<'_>, kernel: &Kernel<'_>) -> Result<Change, Reason> {
        let parts = self.parts(file, kernel).ok_or(Reason::UnknownRecords)?;
        let sections = file.sections();
        let (text, info) = (&sections[parts.text].data, &sections[parts.info].data);
        let description = Description::read(info).map_err(|_| Reason::UnknownRecords)?;
        let rule = self.rule(kernel, text)?;
        let control_offset = self.control_offset(&description, sections[parts.constants].data.len())?;
        let first = code::first(text).filter(|first| self.prologue.generation.is_beginning(*first));
        if first.is_none() || self.outside.fills_in_beginning(parts.text) {
            return Err(Reason::UnknownBeginning);
        }
        let spliced = splice(text, self.prologue, control_offset)?;
        let in_record = file.abi() >= ABI_BARRIERS_IN_RECORD;
        let news = News {
            control_offset,
            ordinal: u16::try_from(description.parameters.len()).map_err(|_| Reason::ParametersTooLarge)?,
            barriers: in_record.then_some(self.prologue.barriers as u8),
            exits: &spliced.exits,
        };
        let registers = self.registers.of(kernel.symbol).filter(|count| *count <= MOST_REGISTERS);
        let registers = registers.ok_or(Reason::UnknownRecords)?;
        Ok(Change {
            rule,
            control_offset,
            info: retell(info, &news).ok_or(Reason::UnknownRecords)?,
            text: spliced.text,
            constants: (self.prologue.parameter_base + control_offset + Control::SIZE) as usize,
            registers: registers.max(self.prologue.registers),
        })
    }

    /// The kernel's sections, if it has all, nobody else has one of them, and its symbol is all of its instructions.
    fn parts(&self, file: &File<'_>, kernel: &Kernel<'_>) -> Option<Parts> {
        let parts = Parts { text: kernel.text, info: kernel.info?, constants: kernel.constants? };
        let sections = file.sections();
        // Kinds matter where somebody made a table of the file itself look like a part of a kernel.
        let own = |index: usize, kind: u32| {
            let section = &sections[index];
            section.kind == kind && !section.is_shared() && self.claims[index] == 1
        };
        let own =
            own(parts.text, kind::BYTES) && own(parts.info, kind::INFO) && own(parts.constants, kind::BYTES);
        let symbol = &file.symbols()[kernel.symbol];
        let whole = symbol.value == 0 && symbol.size == sections[parts.text].size();
        (own && whole && sections[parts.text].name.starts_with(".text.")).then_some(parts)
    }

    /// By which rule blocks of the kernel may be turned away.
    fn rule(&self, kernel: &Kernel<'_>, text: &[u8]) -> Result<Rule, Reason> {
        let reach = self.outside.reached_by(kernel.text);
        let mut facts = facts(self.prologue.generation, text);
        facts.synchronises_grid |= reach.grid;
        // What is asked in a function may be asked in a loop around its call.
        facts.may_wait |= reach.functions;
        match Verdict::on_sight(kernel.name, facts) {
            Verdict::Refuse(reason) => Err(reason),
            Verdict::Guard(_) if reach.launches => Err(Reason::DynamicParallelism),
            Verdict::Guard(_) if reach.variables => Err(Reason::TouchesModuleMemory),
            Verdict::Guard(rule) => Ok(rule),
        }
    }

    /// Where the control words go: behind the parameters, where nothing else may be.
    fn control_offset(&self, description: &Description, constants: usize) -> Result<u32, Reason> {
        let Some(bytes) = description.parameter_bytes.filter(|_| !description.parameters.is_empty()) else {
            return Err(Reason::NoParameters);
        };
        let bytes = u32::from(bytes);
        let offset = Control::offset(bytes);
        if offset + Control::SIZE > self.prologue.most_parameter_bytes {
            return Err(Reason::ParametersTooLarge);
        }
        let ends = description.parameters.iter();
        let mut ends = ends.map(|parameter| u32::from(parameter.offset) + parameter.size);
        let base = self.prologue.parameter_base;
        let usual = description.parameter_base.map(u32::from) == Some(base)
            && constants == (base + bytes) as usize
            && ends.all(|end| end <= bytes);
        usual.then_some(offset).ok_or(Reason::UnknownRecords)
    }

    /// Puts everything that is new about the kernel into the file.
    pub fn apply(&self, file: &mut File<'_>, kernel: &Kernel<'_>, change: Change) {
        let parts = self.parts(file, kernel).expect("a plan was made with them");
        let abi = file.abi();
        self.registers.set(file, kernel.symbol, change.registers);
        file.resize_symbol(kernel.symbol, change.text.len() as u64);
        let text = file.section_mut(parts.text);
        text.data = change.text.into();
        if abi < ABI_BARRIERS_IN_RECORD {
            text.flags = at_least(text.flags, BARRIER_SHIFT, 0x7f, self.prologue.barriers.into());
        }
        if text.info >> REGISTER_SHIFT != 0 {
            let registers = change.registers.into();
            text.info = at_least(text.info.into(), REGISTER_SHIFT, 0xff, registers) as u32;
        }
        file.section_mut(parts.info).data = change.info.into();
        file.section_mut(parts.constants).data.to_mut().resize(change.constants, 0);
    }
}

/// Whether a function would let the next launch begin that lies in a section of its own, where nothing is changed. Any kernel of
/// the file might call it.
fn functions_let_the_next_begin(file: &File<'_>, claims: &[u32]) -> bool {
    let sections = file.sections().iter().zip(claims);
    let functions = sections.filter(|(section, claims)| section.name.starts_with(".text.") && **claims == 0);
    functions.into_iter().any(|(section, _)| code::lets_the_next_begin(&section.data))
}

/// `word` with a field that is `least` or more.
fn at_least(word: u64, shift: u32, mask: u64, least: u64) -> u64 {
    let field = (word >> shift) & mask;
    word & !(mask << shift) | field.max(least) << shift
}

/// A kernel's own parameters, as far as they are told.
pub(super) fn parameters(file: &File<'_>, kernel: &Kernel<'_>) -> Vec<Parameter> {
    let info = kernel.info.map(|info| Description::read(&file.sections()[info].data));
    let description = info.and_then(Result::ok).unwrap_or_default();
    let parameters = description.parameters.iter();
    parameters.map(|parameter| Parameter { offset: parameter.offset.into(), size: parameter.size }).collect()
}
