//! Cubins: ELF files of machine code.
//!
//! This tells what a cubin is for and which kernels it has, which is what a refusal should name.

use crate::{Error, Target, Variant};
use object::LittleEndian;
use object::elf::{FileHeader64, STT_FUNC};
use object::read::elf::{FileHeader, Sym, SymbolTable};

/// ELF's number for CUDA devices.
const EM_CUDA: u16 = 190;
/// In the `st_other` of a symbol: a kernel, not a device function.
const STO_CUDA_ENTRY: u8 = 0x10;
/// ABI version from which the architecture is in the second byte of the flags; before, in the first.
const ABI_SM_IN_SECOND_BYTE: u8 = 8;

type Elf = FileHeader64<LittleEndian>;

/// A cubin, as far as its names go.
#[derive(Clone, Debug)]
pub struct Cubin<'a> {
    /// Number only: the file's header does not tell `sm_90a` from `sm_90`.
    pub target: Target,
    pub abi: u8,
    /// Names of the kernels, in the order of the symbol table.
    pub kernels: Vec<&'a str>,
}

impl<'a> Cubin<'a> {
    pub fn read(bytes: &'a [u8]) -> Result<Cubin<'a>, Error> {
        let header = Elf::parse(bytes).map_err(damaged)?;
        let endian = header.endian().map_err(damaged)?;
        let machine = header.e_machine(endian).0;
        if machine != EM_CUDA {
            return Err(Error::Machine(machine));
        }
        let abi = header.e_ident.abi_version;
        let flags = header.e_flags(endian).0;
        let number = match abi >= ABI_SM_IN_SECOND_BYTE {
            true => (flags >> 8) & 0xff,
            false => flags & 0xff,
        };
        let sections = header.sections(endian, bytes).map_err(damaged)?;
        let symbols = sections.symbols(endian, bytes, object::elf::SHT_SYMTAB);
        let kernels = kernels(&symbols.map_err(damaged)?, bytes.len())?;
        let variant = Variant::Portable;
        Ok(Cubin { target: Target { number, variant }, abi, kernels })
    }
}

/// Symbols may share one long name; that must not make a small file into long work.
fn kernels<'a>(symbols: &SymbolTable<'a, Elf>, size: usize) -> Result<Vec<&'a str>, Error> {
    let mut kernels = Vec::new();
    let mut named = 0;
    for symbol in symbols.iter() {
        let function = symbol.st_type() == STT_FUNC;
        if !function || symbol.st_other().0 & STO_CUDA_ENTRY == 0 {
            continue;
        }
        let name = symbol.name(LittleEndian, symbols.strings());
        let name = name.map_err(damaged)?;
        named += name.len();
        if named > size {
            return Err(Error::Elf("its names overlap".to_owned()));
        }
        let name = std::str::from_utf8(name);
        kernels.push(name.map_err(|_| Error::Elf("a kernel's name is not UTF-8".to_owned()))?);
    }
    Ok(kernels)
}

fn damaged(error: object::read::Error) -> Error {
    Error::Elf(error.to_string())
}
