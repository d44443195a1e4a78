//! Kernels of a cubin, and what belongs to each.
//!
//! A kernel has a symbol and sections of its own: instructions (`.text.K`), records about it (`.nv.info.K`), the
//! constant bank with its parameters (`.nv.constant0.K`), and shared memory (`.nv.shared.K`). The others name the
//! instructions' section in their headers.

use crate::file::kind;
use crate::info::{attribute, records};
use crate::{Error, File};

/// A kernel and the numbers of its sections.
#[derive(Clone, Copy, Debug)]
pub struct Kernel<'a> {
    pub name: &'a str,
    pub symbol: usize,
    pub text: usize,
    pub info: Option<usize>,
    /// Constant bank 0, where its parameters are.
    pub constants: Option<usize>,
    pub shared: Option<usize>,
}

/// A parameter, where it lies among the bytes of all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameter {
    pub ordinal: u16,
    pub offset: u16,
    pub size: u32,
}

/// What the records about a kernel say, as far as it matters here.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Description {
    /// In the order of their numbers.
    pub parameters: Vec<Parameter>,
    /// Bytes of all parameters together; none if there is no record of it.
    pub parameter_bytes: Option<u16>,
    /// Where they begin in constant bank 0; none if there is no record of it.
    pub parameter_base: Option<u16>,
    /// Named barriers; none if there is no record, as in files of ABI 7 and where none is used.
    pub barriers: Option<u8>,
}

impl<'a> File<'a> {
    /// All kernels, in the order of the symbol table. Where two sections claim to be the same part of one kernel, it has
    /// neither: which of them a driver takes is anybody's guess.
    pub fn kernels(&self) -> Vec<Kernel<'a>> {
        let info = self.belonging(".nv.info.");
        let constants = self.belonging(".nv.constant0.");
        let shared = self.belonging(".nv.shared.");
        let symbols = self.symbols().iter().enumerate();
        let kernels = symbols.filter(|(_, symbol)| symbol.is_kernel());
        let kernels = kernels.filter(|(_, symbol)| symbol.section != 0 && symbol.section < info.len());
        kernels
            .map(|(index, symbol)| Kernel {
                name: symbol.name,
                symbol: index,
                text: symbol.section,
                info: info[symbol.section].only(),
                constants: constants[symbol.section].only(),
                shared: shared[symbol.section].only(),
            })
            .collect()
    }

    /// For each section, the one that belongs to it and whose name begins so.
    fn belonging(&self, prefix: &str) -> Vec<Owner> {
        let mut owners = vec![Owner::None; self.sections().len()];
        for (index, section) in self.sections().iter().enumerate() {
            if !section.name.starts_with(prefix) {
                continue;
            }
            if let Some(owner) = owners.get_mut(section.info as usize) {
                *owner = match owner {
                    Owner::None => Owner::One(index),
                    Owner::One(_) | Owner::Several => Owner::Several,
                };
            }
        }
        owners
    }

    /// Where `.nv.info` says how many registers each symbol has: for each symbol, the place of the number.
    pub fn register_counts(&self) -> Result<Registers, Error> {
        let mut places = vec![None; self.symbols().len()];
        let mut sections = self.sections().iter();
        let section = sections.position(|section| section.kind == kind::INFO && section.name == ".nv.info");
        let data = section.map_or(&[][..], |section| &self.sections()[section].data);
        for record in records(data) {
            let record = record?;
            if record.attribute != attribute::REGCOUNT {
                continue;
            }
            let symbol = record.u32(0).and_then(|symbol| places.get_mut(symbol as usize));
            if let Some((place, count)) = symbol.zip(record.u32(4)) {
                *place = Some((record.at + 4, count));
            }
        }
        Ok(Registers { section, places })
    }
}

#[derive(Clone, Copy)]
enum Owner {
    None,
    One(usize),
    Several,
}

impl Owner {
    fn only(self) -> Option<usize> {
        match self {
            Owner::One(index) => Some(index),
            Owner::None | Owner::Several => None,
        }
    }
}

/// How many registers functions have, and where that is written.
#[derive(Clone, Debug)]
pub struct Registers {
    section: Option<usize>,
    places: Vec<Option<(usize, u32)>>,
}

impl Registers {
    /// Of the function with this symbol; none if the file does not say.
    pub fn of(&self, symbol: usize) -> Option<u32> {
        self.places.get(symbol).copied().flatten().map(|(_, count)| count)
    }

    /// Writes another number into `file`, from which these were read. Does nothing for a symbol without one.
    pub fn set(&self, file: &mut File<'_>, symbol: usize, count: u32) {
        let place = self.places.get(symbol).copied().flatten();
        if let Some((section, (at, _))) = self.section.zip(place) {
            let data = file.section_mut(section).data.to_mut();
            data[at..at + 4].copy_from_slice(&count.to_le_bytes());
        }
    }
}

impl Description {
    /// From the records about one kernel. Parameters that are not told of one by one, from 0 up, are an error.
    pub fn read(info: &[u8]) -> Result<Description, Error> {
        let mut description = Description::default();
        for record in records(info) {
            let record = record?;
            let short = || Error::Elf("a record about a kernel is too short".to_owned());
            match record.attribute {
                attribute::KPARAM_INFO | attribute::KPARAM_INFO_V2 => {
                    let word = record.u32(8).ok_or_else(short)?;
                    let old = record.attribute == attribute::KPARAM_INFO;
                    description.parameters.push(Parameter {
                        ordinal: record.u16(4).ok_or_else(short)?,
                        offset: record.u16(6).ok_or_else(short)?,
                        size: if old { word >> 18 } else { word & 0xff_ffff },
                    });
                }
                attribute::CBANK_PARAM_SIZE => {
                    description.parameter_bytes = Some(record.u16(0).ok_or_else(short)?);
                }
                attribute::PARAM_CBANK => {
                    description.parameter_base = Some(record.u16(4).ok_or_else(short)?);
                }
                attribute::NUM_BARRIERS => description.barriers = record.value.first().copied(),
                _ => {}
            }
        }
        description.parameters.sort_by_key(|parameter| parameter.ordinal);
        let ordinals = description.parameters.iter().map(|parameter| usize::from(parameter.ordinal));
        match ordinals.eq(0..description.parameters.len()) {
            true => Ok(description),
            false => Err(Error::Elf("a kernel's parameters are not told of one by one".to_owned())),
        }
    }
}
