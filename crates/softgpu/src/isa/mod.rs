//! The dense program that PTX is lowered to.
//!
//! A warp's registers are *rows* of 32 lanes of 32 bits; a 64-bit value takes two rows, read as 32 lanes of
//! 64 bits; a 128-bit value takes four, as two 64-bit values. Predicates are one 32-bit mask each, in their
//! own file. A function's registers are numbered from the base of its frame. Immediates are rows, too, of a
//! *pool* that all functions of an image share, so that an operand is always a place to read 32 lanes from.
//!
//! An instruction is a function pointer and its operands. The function was picked by [`crate::lower`], which
//! alone knows what PTX means; [`crate::simt`] holds the functions and the loop that calls them.

mod types;

use std::collections::HashMap;

use model::Dim3;

use crate::simt::{Flow, Machine};
pub use types::Type;

pub const LANES: usize = 32;

/// Carries out an instruction for the lanes of a mask.
///
/// # Safety
/// Some of these functions use instruction sets the processor may lack; whoever makes an [`Instruction`] has
/// checked that it has them.
pub type Execute = unsafe fn(&mut Machine<'_>, &Instruction, u32) -> Flow;

/// An operand: a row of the frame, a row of the pool, a predicate, or plain bits, as the instruction wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot(pub u32);

impl Slot {
    pub const NONE: Slot = Slot(u32::MAX);
    /// Marks a row of the pool.
    pub const POOL: u32 = 1 << 31;
    /// Marks a predicate that is read inverted.
    pub const NOT: u32 = 1 << 31;
    /// The predicate that is always true.
    pub const TRUE: Slot = Slot(0x7fff_ffff);
}

/// One lowered instruction.
#[derive(Clone, Copy, Debug)]
pub struct Instruction {
    pub run: Execute,
    pub d: Slot,
    pub a: Slot,
    pub b: Slot,
    pub c: Slot,
    pub e: Slot,
    /// Predicate that must hold, or [`Slot::TRUE`].
    pub guard: Slot,
    /// Further operands: where they start in [`Image::lists`].
    pub list: u32,
    /// What else `run` needs to know; each function says what.
    pub aux: u32,
    pub offset: i64,
    /// Line of the source, counted from 1.
    pub line: u32,
    /// Splits of a diverged warp meet only here: the first instruction of a basic block.
    pub leader: bool,
}

/// A row of the pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C, align(64))]
pub struct PoolRow(pub [u32; LANES]);

impl PoolRow {
    pub fn splat(value: u32) -> PoolRow {
        PoolRow([value; LANES])
    }

    /// A 64-bit constant: two rows that hold 32 lanes of 64 bits.
    pub fn splat_wide(value: u64) -> [PoolRow; 2] {
        let (low, high) = (value as u32, (value >> 32) as u32);
        let row = PoolRow(std::array::from_fn(|lane| if lane % 2 == 0 { low } else { high }));
        [row, row]
    }
}

/// What an address in the pool or in a variable's initial value refers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Symbol {
    /// Index into [`Image::variables`].
    Variable(u32),
    /// Index into [`Image::functions`].
    Function(u32),
}

/// A pool constant that is known only once the module has memory: `symbol + addend`, 64 bits.
#[derive(Clone, Copy, Debug)]
pub struct PoolAddress {
    pub row: u32,
    pub symbol: Symbol,
    pub addend: i64,
}

/// An address inside a variable's initial bytes.
#[derive(Clone, Copy, Debug)]
pub struct InitialAddress {
    pub offset: u64,
    pub bytes: u8,
    pub symbol: Symbol,
    pub addend: i64,
    /// Right shift of the address before it is stored: `0xff00(name)` masks pick single bytes.
    pub shift: u8,
}

/// A variable in global or constant memory.
#[derive(Clone, Debug)]
pub struct GlobalVariable {
    pub name: String,
    pub bytes: u64,
    pub align: u64,
    /// Initial bytes; what is missing up to `bytes` is zero.
    pub initial: Vec<u8>,
    pub addresses: Vec<InitialAddress>,
    pub constant: bool,
    pub managed: bool,
}

/// One parameter of a kernel, as `cuFuncGetParamInfo` tells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameter {
    pub offset: u32,
    pub size: u32,
    pub align: u32,
}

/// What only kernels have.
#[derive(Clone, Debug, Default)]
pub struct KernelInfo {
    pub parameters: Vec<Parameter>,
    pub parameter_bytes: u32,
    /// Bytes of shared memory declared in the source.
    pub static_shared: u32,
    /// `.maxntid`, as a product.
    pub max_threads: Option<u32>,
    pub required_block: Option<Dim3>,
    pub max_registers: Option<u32>,
    pub min_blocks: Option<u32>,
    pub required_cluster: Option<Dim3>,
    /// Bytes of local memory of the deepest call chain without recursion.
    pub stack_bytes: u32,
    /// Calls itself, through whatever detour, or through a pointer: the stack has no static bound.
    pub unbounded_stack: bool,
}

/// A kernel or device function.
#[derive(Clone, Debug)]
pub struct Function {
    pub name: String,
    /// Its first instruction.
    pub entry: u32,
    /// Rows and predicates of a frame. The parameters come first, then the results, see `parameters`.
    pub rows: u32,
    pub predicates: u32,
    /// Rows the parameters and results take at the start of the frame of a device function.
    pub parameter_rows: u32,
    pub result_rows: u32,
    /// Local variables of a frame.
    pub local_bytes: u32,
    /// The most 32-bit registers live at once.
    pub pressure: u32,
    pub kernel: Option<KernelInfo>,
}

/// A compiled module, before it has memory.
#[derive(Debug)]
pub struct Image {
    pub ptx_version: (u8, u8),
    /// The `.target` word, for instance `sm_90a`, and its number.
    pub target: String,
    pub architecture: u32,
    pub functions: Vec<Function>,
    pub variables: Vec<GlobalVariable>,
    pub code: Vec<Instruction>,
    pub lists: Vec<Slot>,
    pub pool: Vec<PoolRow>,
    pub pool_addresses: Vec<PoolAddress>,
    /// Loops that may only wait for a clock: first and last instruction.
    pub clock_loops: HashMap<u32, u32>,
    /// Some function uses the shared memory that is set aside for the system.
    pub reserved_shared: bool,
}

/// Function pointers are numbers no memory access can reach: bits 48 to 55 make them non-canonical.
pub const FUNCTION_HANDLES: u64 = 0x00f0_0000_0000_0000;
const HANDLE_STEP: u64 = 16;

pub fn function_handle(index: u32) -> u64 {
    FUNCTION_HANDLES + u64::from(index) * HANDLE_STEP
}

impl Image {
    /// The function a handle stands for.
    pub fn function_of_handle(&self, handle: u64) -> Option<u32> {
        let steps = handle.checked_sub(FUNCTION_HANDLES)?;
        let index = steps / HANDLE_STEP;
        let known = steps % HANDLE_STEP == 0 && index < self.functions.len() as u64;
        known.then_some(index as u32)
    }
}
