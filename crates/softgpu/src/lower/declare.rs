//! Declarations: sizes, initial values, and what a function declares for itself.

use ptx::{Declarator, Initialiser, Variable};

use super::error::{Error, Place};
use super::function::{Lowering, Name, Stride};
use super::module::{Linker, Source, check_shared};
use super::raw::{Class, Virtual};
use crate::isa::{GlobalVariable, InitialAddress, Symbol, Type};

/// How much memory a declaration takes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    pub ty: Type,
    /// Of all elements; zero for an open array.
    pub bytes: u64,
    pub align: u64,
    /// `[]`.
    pub is_open: bool,
    pub stride: Stride,
}

/// Sizes beyond this are refused whatever they are for.
const MOST_BYTES: u64 = 1 << 40;
const MOST_ALIGN: u64 = 1 << 16;
/// Initial values are held in memory twice, so all of a module together get a limit of their own.
const MOST_INITIAL: u64 = 1 << 27;

pub(super) fn shape(source: &Source, variable: &Variable, declarator: &Declarator) -> Result<Shape, Error> {
    let place = source.place(variable.span);
    let word = source.text(variable.ty).trim_start_matches('.');
    let Some(ty) = Type::named(word) else {
        return Err(Error::Unsupported { place, what: format!("variables of type .{word}") });
    };
    let vector = match variable.vector.map(|span| source.text(span)) {
        None => 1,
        Some(".v2") => 2,
        Some(".v4") => 4,
        Some(other) => return Err(Error::Unsupported { place, what: format!("{other} variables") }),
    };
    let unit = u64::from(ty.bytes()) * vector;
    let mut bytes = unit;
    let mut is_open = false;
    for (position, dimension) in declarator.dimensions.iter().enumerate() {
        match dimension {
            Some(count) => bytes = bytes.saturating_mul(*count),
            None if position == 0 => is_open = true,
            None => {
                let message = "only the first dimension may be open".to_owned();
                return Err(Error::Invalid { place, message });
            }
        }
    }
    // An open array with initial values is as long as they are.
    if let (true, Some(initialiser)) = (is_open, &declarator.initialiser) {
        bytes = bytes.saturating_mul(match initialiser {
            Initialiser::List(values) => values.len() as u64,
            Initialiser::Value(_) => 1,
        });
        is_open = false;
    }
    if is_open {
        bytes = 0;
    }
    if bytes > MOST_BYTES {
        return Err(Error::TooLarge { place, what: "a variable", value: bytes, most: MOST_BYTES });
    }
    let align = variable.align.unwrap_or(unit.next_power_of_two());
    if !align.is_power_of_two() || align > MOST_ALIGN {
        return Err(Error::TooLarge { place, what: "an alignment", value: align, most: MOST_ALIGN });
    }
    // Subscripts count scalars whatever the vector or the inner dimensions; in an array of unknown length a
    // card's compiler has them count bytes.
    let stride = (!declarator.dimensions.is_empty()).then_some(if is_open { 1 } else { ty.bytes() });
    Ok(Shape { ty, bytes, align, is_open, stride })
}

pub(super) fn global(source: &Source, variable: &Variable, text: &str, shape: &Shape) -> GlobalVariable {
    let managed = variable.attributes.iter().any(|span| source.text(*span).contains("managed"));
    GlobalVariable {
        name: text.to_owned(),
        bytes: shape.bytes,
        align: shape.align,
        initial: Vec::new(),
        addresses: Vec::new(),
        constant: source.text(variable.space) == ".const",
        managed,
    }
}

/// Initial bytes, and the addresses among them.
pub(super) fn initial(
    linker: &Linker,
    unit: usize,
    source: &Source,
    variable: &Variable,
    declarator: &Declarator,
    initialiser: &Initialiser,
) -> Result<(Vec<u8>, Vec<InitialAddress>), Error> {
    let shape = shape(source, variable, declarator)?;
    let room = MOST_INITIAL.saturating_sub(linker.initial_bytes);
    let place = source.place(declarator.span);
    let (bytes, addresses) = (Vec::new(), Vec::new());
    let mut filler = Filler { linker, unit, source, ty: shape.ty, place, room, bytes, addresses };
    let inner: Vec<u64> = declarator.dimensions.iter().skip(1).map(|count| count.unwrap_or(1)).collect();
    filler.put(initialiser, &inner, 0)?;
    Ok((filler.bytes, filler.addresses))
}

struct Filler<'a> {
    linker: &'a Linker,
    unit: usize,
    source: &'a Source,
    ty: Type,
    place: Place,
    /// What the module's other variables have left.
    room: u64,
    bytes: Vec<u8>,
    addresses: Vec<InitialAddress>,
}

impl Filler<'_> {
    fn check_room(&self, bytes: u64) -> Result<(), Error> {
        if bytes <= self.room {
            return Ok(());
        }
        let value = bytes.saturating_add(self.linker.initial_bytes);
        Err(Error::TooLarge { place: self.place, what: "the initial values", value, most: MOST_INITIAL })
    }

    fn put(&mut self, initialiser: &Initialiser, inner: &[u64], depth: usize) -> Result<(), Error> {
        match initialiser {
            Initialiser::Value(value) => self.value(value),
            Initialiser::List(values) => {
                // A list inside a list fills one element of the dimension above, with zeroes at its end.
                let rest = inner.get(depth..).unwrap_or(&[]);
                let extent =
                    rest.iter().fold(u64::from(self.ty.bytes()), |bytes, count| bytes.saturating_mul(*count));
                for value in values {
                    let start = self.bytes.len() as u64;
                    self.put(value, inner, depth + 1)?;
                    let end = start.saturating_add(extent);
                    if matches!(value, Initialiser::List(_)) {
                        self.check_room(end)?;
                        self.bytes.resize((end as usize).max(self.bytes.len()), 0);
                    }
                }
                Ok(())
            }
        }
    }

    fn value(&mut self, operand: &ptx::Operand) -> Result<(), Error> {
        let size = self.ty.bytes() as usize;
        let bits = match operand {
            ptx::Operand::Integer { value, .. } => match self.ty {
                Type::F32 => u64::from((*value as i64 as f32).to_bits()),
                Type::F64 => (*value as i64 as f64).to_bits(),
                _ => *value,
            },
            ptx::Operand::Float { bits, double, .. } => match (self.ty.bits(), double) {
                (32, true) => u64::from((f64::from_bits(*bits) as f32).to_bits()),
                (64, false) => f64::from(f32::from_bits(*bits as u32)).to_bits(),
                _ => *bits,
            },
            address => {
                self.address(address, address, 0)?;
                0
            }
        };
        self.check_room((self.bytes.len() + size) as u64)?;
        let bits = u128::from(bits);
        self.bytes.extend_from_slice(&bits.to_le_bytes()[..size]);
        Ok(())
    }

    /// `name`, `name+8`, `generic(name)`, `0xFF00(name)`.
    fn address(&mut self, whole: &ptx::Operand, part: &ptx::Operand, shift: u8) -> Result<(), Error> {
        let (name, addend) = match part {
            ptx::Operand::Name(span) => (*span, 0),
            ptx::Operand::Offset { base, offset, .. } => (*base, *offset),
            ptx::Operand::Apply { function, argument, .. } => {
                let mask = self.source.text(*function);
                let shift = match mask.strip_prefix("0x").or(mask.strip_prefix("0X")) {
                    Some(digits) => {
                        u64::from_str_radix(digits, 16).map_or(0, |mask| mask.trailing_zeros().min(63))
                    }
                    None => 0,
                };
                return self.address(whole, argument, shift as u8);
            }
            _ => return Err(self.invalid(whole, "this is no constant")),
        };
        let text = self.source.text(name);
        let symbol = match self.linker.find(self.unit, text) {
            Some(Name::Variable(index, _)) => Symbol::Variable(index),
            Some(Name::Function(index)) => Symbol::Function(index),
            _ => return Err(self.invalid(whole, &format!("unknown name `{text}`"))),
        };
        let bytes = self.ty.bytes().min(8) as u8;
        self.addresses.push(InitialAddress { offset: self.bytes.len() as u64, bytes, symbol, addend, shift });
        Ok(())
    }

    fn invalid(&self, operand: &ptx::Operand, message: &str) -> Error {
        Error::Invalid { place: self.source.place(operand.span()), message: message.to_owned() }
    }
}

impl Lowering<'_> {
    /// A declaration in a body.
    pub(super) fn variable(&mut self, variable: &Variable) -> Result<(), Error> {
        let space = self.text(variable.space);
        for declarator in &variable.declarators {
            if space == ".reg" {
                self.declare_registers(variable, declarator)?;
                continue;
            }
            let shape = shape(self.source, variable, declarator)?;
            let name = match space {
                ".param" => {
                    let registers = self.parameter_registers(variable, shape.bytes)?;
                    Name::Parameter(registers.into())
                }
                ".local" => {
                    Name::Local(self.take_local(variable.span, shape.bytes, shape.align)?, shape.stride)
                }
                ".shared" if shape.is_open => Name::DynamicShared(shape.stride),
                ".shared" => Name::Shared(self.take_shared(variable, &shape)?, shape.stride),
                _ => return Err(self.unsupported(variable.span, format!("{space} inside a function"))),
            };
            self.declare(declarator.name, name)?;
        }
        Ok(())
    }

    fn take_shared(&mut self, variable: &Variable, shape: &Shape) -> Result<u32, Error> {
        let place = self.place(variable.span);
        if !self.is_kernel {
            return self.linker.take_shared(place, shape);
        }
        let start = self.shared_bytes.next_multiple_of(shape.align);
        self.shared_bytes = start.saturating_add(shape.bytes);
        check_shared(place, self.shared_bytes)?;
        Ok(start as u32)
    }

    /// The registers that hold a parameter of a call.
    fn parameter_registers(&mut self, variable: &Variable, bytes: u64) -> Result<Vec<Virtual>, Error> {
        const MOST: u64 = 32764;
        if bytes > MOST {
            let place = self.place(variable.span);
            return Err(Error::TooLarge { place, what: "a parameter", value: bytes, most: MOST });
        }
        let registers = (0..bytes.div_ceil(4)).map(|_| self.register(Class::Narrow)).collect();
        self.check_registers(variable.span)?;
        Ok(registers)
    }

    fn declare_registers(&mut self, variable: &Variable, declarator: &Declarator) -> Result<(), Error> {
        let word = self.text(variable.ty).trim_start_matches('.');
        let Some(ty) = Type::named(word) else {
            return Err(self.unsupported(variable.span, format!("registers of type .{word}")));
        };
        if let Some(vector) = variable.vector {
            let count = match self.text(vector) {
                ".v2" => 2,
                _ => 4,
            };
            let registers = (0..count).map(|_| self.register(Class::of(ty))).collect();
            return self.declare(declarator.name, Name::Vector(registers, ty));
        }
        if let Some(count) = declarator.count {
            self.declare_family(declarator.name, count, ty);
            return Ok(());
        }
        let register = self.register(Class::of(ty));
        self.declare(declarator.name, Name::Register(register, ty))
    }

    /// Parameters or results of a device function, in rows from `first` on; the number of rows.
    pub(super) fn declare_formal(
        &mut self,
        variables: &[Variable],
        first: u32,
        results: bool,
    ) -> Result<u32, Error> {
        let mut row = first;
        for variable in variables {
            for declarator in &variable.declarators {
                let shape = shape(self.source, variable, declarator)?;
                if shape.bytes > 32764 {
                    let place = self.place(variable.span);
                    return Err(Error::TooLarge {
                        place,
                        what: "a parameter",
                        value: shape.bytes,
                        most: 32764,
                    });
                }
                let rows = (shape.bytes as u32).div_ceil(4);
                let registers: Vec<Virtual> = (row..row + rows).map(|row| self.fixed(row)).collect();
                self.check_registers(variable.span)?;
                row += rows;
                if self.text(variable.space) == ".reg" {
                    let register = self.register(Class::of(shape.ty));
                    self.declare(declarator.name, Name::Register(register, shape.ty))?;
                    match results {
                        true => self.result_registers.push((register, registers)),
                        false => self.gather(&registers, register, shape.ty),
                    }
                    continue;
                }
                self.declare(declarator.name, Name::Parameter(registers.into()))?;
            }
        }
        Ok(row - first)
    }
}
