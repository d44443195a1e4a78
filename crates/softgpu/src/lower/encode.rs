//! Functions with rows instead of virtual registers, and the image they make up.

use std::collections::HashMap;

use model::Dim3;
use ptx::{Function, FunctionKind, Item};

use super::allocate::{self, Allocation};
use super::calls::{self, Summary};
use super::declare;
use super::error::{Error, Place};
use super::flow::{self, Blocks};
use super::function::{Lowering, MOST_INSTRUCTIONS_OF_ALL, Name, check};
use super::live::{self, MOST_STEPS};
use super::module::{Linker, Source};
use super::raw::{Control, Operand, Raw};
use crate::isa::{self, Image, Instruction, KernelInfo, Parameter, Slot};
use crate::simt::control;

pub(super) fn link(texts: &[&str]) -> Result<Image, Error> {
    let sources = texts.iter().map(|text| Source::parse(text)).collect::<Result<Vec<_>, _>>()?;
    let mut image = empty(&sources)?;
    let mut linker = Linker::default();
    // List 0 stands for none.
    linker.lists.push(Slot::NONE);
    linker.steps = MOST_STEPS;
    linker.declare(&sources)?;
    let bodies: Vec<Vec<&Function>> = sources.iter().map(|source| source.functions().collect()).collect();
    let count = linker.functions.len();
    let mut functions: Vec<Option<isa::Function>> = (0..count).map(|_| None).collect();
    let mut summaries: Vec<Summary> = (0..count).map(|_| Summary::default()).collect();
    // Kernels come last: their shared memory begins where that of the functions ends.
    for kernels in [false, true] {
        for index in 0..count {
            let Some((unit, position)) = linker.functions[index].body else { continue };
            if linker.functions[index].is_kernel != kernels {
                continue;
            }
            let function = bodies[unit][position];
            let (made, summary) = one(&mut linker, &sources[unit], unit, index as u32, function, &mut image)?;
            (functions[index], summaries[index]) = (Some(made), summary);
            linker.check_pool()?;
        }
    }
    for (index, function) in functions.into_iter().enumerate() {
        // A function nobody defines is never called either, or lowering would have refused; its handle stays.
        let name = linker.functions[index].name.clone();
        image.functions.push(function.unwrap_or_else(|| undefined(name, &mut image.code)));
    }
    calls::finish_kernels(&mut image, &summaries)?;
    linker.finish(&mut image)?;
    Ok(image)
}

fn undefined(name: String, code: &mut Vec<Instruction>) -> isa::Function {
    let entry = code.len() as u32;
    code.push(encode_one(&Raw::end(), &Allocation::empty(), 0, 0, true));
    isa::Function {
        name,
        entry,
        rows: 0,
        predicates: 0,
        parameter_rows: 0,
        result_rows: 0,
        local_bytes: 0,
        pressure: 0,
        kernel: None,
    }
}

/// The newest PTX and GPU this understands.
const NEWEST_PTX: (u8, u8) = (9, 0);
const NEWEST_TARGET: u32 = 90;

fn empty(sources: &[Source]) -> Result<Image, Error> {
    let mut image = Image {
        ptx_version: (0, 0),
        target: String::new(),
        architecture: 0,
        functions: Vec::new(),
        variables: Vec::new(),
        code: Vec::new(),
        lists: Vec::new(),
        pool: Vec::new(),
        pool_addresses: Vec::new(),
        clock_loops: HashMap::new(),
        reserved_shared: false,
    };
    for source in sources {
        header(source, &mut image)?;
    }
    Ok(image)
}

/// `.version`, `.target`, `.address_size`.
fn header(source: &Source, image: &mut Image) -> Result<(), Error> {
    let mut versioned = false;
    for item in &source.module.items {
        let Item::Directive(directive) = item else { continue };
        let place = source.place(directive.span);
        let Some(argument) = directive.arguments.first().map(|span| source.text(*span)) else { continue };
        let invalid = |message: &str| Error::Invalid { place, message: format!("{message}: `{argument}`") };
        match source.text(directive.name) {
            ".version" => {
                let parts =
                    argument.split_once('.').and_then(|(a, b)| Some((a.parse().ok()?, b.parse().ok()?)));
                let version: (u8, u8) = parts.ok_or_else(|| invalid("no version"))?;
                if version > NEWEST_PTX {
                    return Err(Error::TooNew { place, what: format!("PTX {argument}") });
                }
                image.ptx_version = image.ptx_version.max(version);
                versioned = true;
            }
            ".target" => {
                let digits = argument.strip_prefix("sm_").unwrap_or("").trim_end_matches(['a', 'f']);
                let number: u32 = digits.parse().map_err(|_| invalid("no target"))?;
                if number > NEWEST_TARGET {
                    return Err(Error::TooNew { place, what: format!("target {argument}") });
                }
                if number >= image.architecture {
                    (image.architecture, image.target) = (number, argument.to_owned());
                }
            }
            ".address_size" if argument != "64" => {
                return Err(Error::Unsupported { place, what: format!(".address_size {argument}") });
            }
            _ => {}
        }
    }
    if !versioned {
        let message = "a module begins with .version".to_owned();
        return Err(Error::Invalid { place: Place { line: 1, column: 1 }, message });
    }
    Ok(())
}

fn one(
    linker: &mut Linker,
    source: &Source,
    unit: usize,
    index: u32,
    function: &Function,
    image: &mut Image,
) -> Result<(isa::Function, Summary), Error> {
    let is_kernel = function.kind == FunctionKind::Entry;
    let common = if is_kernel && linker.reaches_common_shared(index) { linker.common_shared } else { 0 };
    let mut f = Lowering::new(linker, source, unit, is_kernel);
    f.shared_bytes = common;
    let mut info = if is_kernel { Some(kernel_info(source, function)?) } else { None };
    match &mut info {
        Some(info) => kernel_parameters(&mut f, function, info)?,
        None => {
            f.parameter_rows = f.declare_formal(&function.parameters, 0, false)?;
            f.result_rows = f.declare_formal(&function.returns, f.parameter_rows, true)?;
        }
    }
    if let Some(body) = &function.body {
        f.body(body)?;
    }
    f.emit(Raw::end());
    let missing = f.labels.iter().position(|place| *place == usize::MAX);
    debug_assert!(missing.is_none(), "every label of a scope is met when the scope is lowered");
    if let Some(info) = &mut info {
        info.static_shared = f.shared_bytes as u32;
    }
    let summary = Summary::new(std::mem::take(&mut f.callees), f.calls_pointers);
    let made = encode(f, source.place(function.name), source.text(function.name), info, image)?;
    Ok((made, summary))
}

fn kernel_parameters(f: &mut Lowering<'_>, function: &Function, info: &mut KernelInfo) -> Result<(), Error> {
    const MOST: u64 = 32764;
    let mut end = 0u64;
    for variable in &function.parameters {
        for declarator in &variable.declarators {
            let shape = declare::shape(f.source, variable, declarator)?;
            let start = end.next_multiple_of(shape.align);
            end = start.saturating_add(shape.bytes);
            if end > MOST {
                let place = f.place(variable.span);
                return Err(Error::TooLarge { place, what: "the parameters", value: end, most: MOST });
            }
            let (offset, size) = (start as u32, shape.bytes as u32);
            info.parameters.push(Parameter { offset, size, align: shape.align as u32 });
            f.declare(declarator.name, Name::KernelParameter(offset))?;
        }
    }
    info.parameter_bytes = end as u32;
    Ok(())
}

fn kernel_info(source: &Source, function: &Function) -> Result<KernelInfo, Error> {
    let mut info = KernelInfo::default();
    for directive in &function.directives {
        let place = source.place(directive.span);
        let number = |index: usize| -> Result<u32, Error> {
            let Some(span) = directive.arguments.get(index) else { return Ok(1) };
            let message = || format!("not a number: `{}`", source.text(*span));
            source.text(*span).parse().map_err(|_| Error::Invalid { place, message: message() })
        };
        match source.text(directive.name) {
            ".maxntid" => {
                info.max_threads = Some(number(0)?.saturating_mul(number(1)?).saturating_mul(number(2)?))
            }
            ".reqntid" => info.required_block = Some(Dim3::new(number(0)?, number(1)?, number(2)?)),
            ".maxnreg" => info.max_registers = Some(number(0)?),
            ".minnctapersm" => info.min_blocks = Some(number(0)?),
            ".reqnctapercluster" => {
                info.required_cluster = Some(Dim3::new(number(0)?, number(1)?, number(2)?))
            }
            _ => {}
        }
    }
    Ok(info)
}

/// Rows of a frame: 2 MiB for every warp. A card has 255 registers.
const MOST_ROWS: usize = 1 << 14;

fn encode(
    f: Lowering<'_>,
    place: Place,
    name: &str,
    info: Option<KernelInfo>,
    image: &mut Image,
) -> Result<isa::Function, Error> {
    let blocks = Blocks::of(&f.code, &f.labels);
    let candidates = flow::candidates(&f.code, &f.labels, &blocks);
    let watched = flow::watched(&f.code, &blocks, &candidates);
    f.linker.steps = live::granted(f.linker.steps, f.code.len());
    let liveness = live::liveness(&f.code, &blocks, &f.registers, &watched, &mut f.linker.steps);
    let loops = flow::clock_loops(&f.code, &blocks, &candidates, &liveness);
    let fixed = f.parameter_rows + f.result_rows;
    let allocation = allocate::allocate(&liveness.intervals, &f.registers, fixed);
    f.linker.registers += f.registers.len();
    let entry = image.code.len();
    check(place, "the number of instructions", entry + f.code.len(), MOST_INSTRUCTIONS_OF_ALL)?;
    check(place, "the number of registers live at once", allocation.rows as usize, MOST_ROWS)?;
    let mut leads = vec![false; f.code.len()];
    blocks.starts.iter().for_each(|start| leads[*start] = true);
    for (index, raw) in f.code.iter().enumerate() {
        let list = put_list(raw, &allocation, &f.labels, entry, &mut f.linker.lists);
        let mut made = encode_one(raw, &allocation, list, raw.line, leads[index]);
        if let Control::Jumps(label) = raw.control {
            let target = f.labels[label as usize];
            made.aux = (entry + target) as u32;
            made.run = match (loops.get(&index), target <= index) {
                (Some(head), _) => {
                    let end = image.clock_loops.entry((entry + head) as u32).or_default();
                    *end = (*end).max((entry + index) as u32);
                    control::branch_clock
                }
                (None, true) => control::branch_back,
                (None, false) => control::branch,
            };
        }
        image.code.push(made);
    }
    Ok(isa::Function {
        name: name.to_owned(),
        entry: entry as u32,
        rows: allocation.rows,
        predicates: allocation.predicates,
        parameter_rows: f.parameter_rows,
        result_rows: f.result_rows,
        local_bytes: f.local_bytes as u32,
        pressure: allocation.pressure,
        kernel: info,
    })
}

fn put_list(
    raw: &Raw,
    allocation: &Allocation,
    labels: &[usize],
    entry: usize,
    lists: &mut Vec<Slot>,
) -> u32 {
    let start = lists.len() as u32;
    match &raw.control {
        Control::Table(targets) => {
            lists.extend(targets.iter().map(|label| Slot((entry + labels[*label as usize]) as u32)));
        }
        _ if raw.list.is_empty() => return 0,
        _ => lists.extend(raw.list.iter().map(|operand| allocation.slot(*operand))),
    }
    start
}

fn encode_one(raw: &Raw, allocation: &Allocation, list: u32, line: u32, leader: bool) -> Instruction {
    let guard = match raw.guard {
        None => Slot::TRUE,
        Some((register, negated)) => {
            let Slot(index) = allocation.slot(Operand::Use(register));
            Slot(if negated { index | Slot::NOT } else { index })
        }
    };
    Instruction {
        run: raw.run,
        d: allocation.slot(raw.d),
        a: allocation.slot(raw.a),
        b: allocation.slot(raw.b),
        c: allocation.slot(raw.c),
        e: allocation.slot(raw.e),
        guard,
        list,
        aux: raw.aux,
        offset: raw.offset,
        line,
        leader,
    }
}

impl Allocation {
    fn empty() -> Allocation {
        Allocation { places: Vec::new(), rows: 0, predicates: 0, pressure: 0 }
    }

    fn slot(&self, operand: Operand) -> Slot {
        match operand {
            Operand::None => Slot::NONE,
            Operand::Use(v) | Operand::Def(v) => Slot(self.places[v.0 as usize]),
            Operand::UseNot(v) => Slot(self.places[v.0 as usize] | Slot::NOT),
            Operand::UseHalf(v, half) | Operand::DefHalf(v, half) => {
                Slot(self.places[v.0 as usize] + 2 * half)
            }
            Operand::Pool(row) => Slot(row | Slot::POOL),
            Operand::True => Slot::TRUE,
            Operand::Bits(bits) => Slot(bits),
        }
    }
}
