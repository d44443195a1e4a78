//! A loaded module: an image whose variables have got addresses.

use std::fmt;
use std::sync::Arc;

use model::Dim3;

use super::control::CALL_BYTES;
use crate::isa::{Function, Image, KernelInfo, Parameter, PoolRow, Symbol, function_handle};
use crate::memory::{AddressSpace, ContextId, Error, Region};

/// An image in the memory of a context. Its variables live as long as it does.
pub struct Module {
    image: Arc<Image>,
    space: Arc<AddressSpace>,
    allocation: Option<Region>,
    /// Address of each of the image's variables.
    addresses: Box<[u64]>,
    /// The image's constant rows with the addresses filled in.
    pool: Box<[PoolRow]>,
}

impl Module {
    /// Gives the image memory in `space`, charged to `owner`, and fills its variables with their initial values.
    pub fn load(
        image: Arc<Image>,
        space: &Arc<AddressSpace>,
        owner: ContextId,
    ) -> Result<Arc<Module>, Error> {
        let (offsets, bytes) = place(&image);
        let pointer = if bytes == 0 { None } else { Some(space.allocate(owner, bytes)?) };
        let base = pointer.map_or(0, |pointer| pointer.0);
        let allocation = pointer.and_then(|pointer| space.lookup(pointer.0));
        let addresses: Box<[u64]> = offsets.iter().map(|offset| base + offset).collect();
        let pool = fill_pool(&image, &addresses);
        let module = Module { image, space: Arc::clone(space), allocation, addresses, pool };
        module.fill_variables()?;
        Ok(Arc::new(module))
    }

    pub fn image(&self) -> &Arc<Image> {
        &self.image
    }

    pub(crate) fn pool(&self) -> &[PoolRow] {
        &self.pool
    }

    pub fn kernel(self: &Arc<Self>, name: &str) -> Option<Kernel> {
        self.kernels().find(|kernel| kernel.name() == name)
    }

    pub fn kernels(self: &Arc<Self>) -> impl Iterator<Item = Kernel> + '_ {
        let of_kernel = |(index, function): (usize, &Function)| function.kernel.is_some().then_some(index);
        let indices = self.image.functions.iter().enumerate().filter_map(of_kernel);
        indices.map(|index| Kernel { module: Arc::clone(self), index })
    }

    /// Address and size of a variable.
    pub fn global(&self, name: &str) -> Option<(u64, u64)> {
        let index = self.image.variables.iter().position(|variable| variable.name == name)?;
        Some((self.addresses[index], self.image.variables[index].bytes))
    }

    /// All variables: name, address, size.
    pub fn globals(&self) -> impl Iterator<Item = (&str, u64, u64)> {
        let variables = self.image.variables.iter().zip(&self.addresses);
        variables.map(|(variable, address)| (variable.name.as_str(), *address, variable.bytes))
    }

    fn fill_variables(&self) -> Result<(), Error> {
        for (variable, &address) in self.image.variables.iter().zip(&self.addresses) {
            let mut bytes = variable.initial.clone();
            bytes.resize(variable.bytes as usize, 0);
            for place in &variable.addresses {
                let value =
                    resolve(place.symbol, &self.addresses).wrapping_add_signed(place.addend) >> place.shift;
                let (start, length) = (place.offset as usize, usize::from(place.bytes));
                bytes[start..start + length].copy_from_slice(&value.to_le_bytes()[..length]);
            }
            if !bytes.is_empty() {
                self.space.write(address, &bytes)?;
            }
        }
        Ok(())
    }
}

impl Drop for Module {
    fn drop(&mut self) {
        if let Some(region) = self.allocation.take() {
            // The context may have freed all it owned before, and another may have got the place since; then there is
            // nothing left to do.
            let _ = self.space.free_region(&region);
        }
    }
}

impl fmt::Debug for Module {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Module").field("addresses", &self.addresses).finish_non_exhaustive()
    }
}

/// Offset of each variable in one allocation, and its size.
fn place(image: &Image) -> (Vec<u64>, u64) {
    let mut end = 0u64;
    let mut put = |bytes: u64, align: u64| {
        let start = end.next_multiple_of(align.max(1));
        end = start + bytes.max(1);
        start
    };
    let offsets = image.variables.iter().map(|variable| put(variable.bytes, variable.align)).collect();
    (offsets, end)
}

fn resolve(symbol: Symbol, addresses: &[u64]) -> u64 {
    match symbol {
        Symbol::Variable(index) => addresses[index as usize],
        Symbol::Function(index) => function_handle(index),
    }
}

fn fill_pool(image: &Image, addresses: &[u64]) -> Box<[PoolRow]> {
    let mut pool: Box<[PoolRow]> = image.pool.clone().into();
    for place in &image.pool_addresses {
        let value = resolve(place.symbol, addresses).wrapping_add_signed(place.addend);
        pool[place.row as usize..][..2].copy_from_slice(&PoolRow::splat_wide(value));
    }
    pool
}

/// A kernel of a loaded module.
#[derive(Clone)]
pub struct Kernel {
    module: Arc<Module>,
    index: usize,
}

/// What occupancy is computed from when nothing is known to need less.
const LEAST_REGISTERS: u32 = 16;
const MOST_REGISTERS: u32 = 255;

impl Kernel {
    pub fn module(&self) -> &Arc<Module> {
        &self.module
    }

    pub(crate) fn function(&self) -> &Function {
        &self.module.image.functions[self.index]
    }

    pub(crate) fn function_index(&self) -> u32 {
        self.index as u32
    }

    pub fn info(&self) -> &KernelInfo {
        self.function().kernel.as_ref().expect("only kernels are made into a Kernel")
    }

    pub fn name(&self) -> &str {
        &self.function().name
    }

    pub fn parameters(&self) -> &[Parameter] {
        &self.info().parameters
    }

    pub fn parameter_bytes(&self) -> u32 {
        self.info().parameter_bytes
    }

    pub fn static_shared(&self) -> u32 {
        self.info().static_shared
    }

    /// Bytes of local memory per thread, as far as they are known before running.
    pub fn local_bytes(&self) -> u32 {
        // What every frame costs besides its variables is no variable of the kernel.
        self.info().stack_bytes.saturating_sub(CALL_BYTES)
    }

    /// An estimate of what a card would need, for occupancy: the most 32-bit registers live at once, in steps
    /// of eight, within what the source allows.
    pub fn registers(&self) -> u32 {
        let most = self.info().max_registers.unwrap_or(MOST_REGISTERS).clamp(LEAST_REGISTERS, MOST_REGISTERS);
        self.function().pressure.next_multiple_of(8).clamp(LEAST_REGISTERS, most)
    }

    /// The most threads a block may have, by the source.
    pub fn max_threads(&self) -> Option<u32> {
        self.info().max_threads
    }

    pub fn required_block(&self) -> Option<Dim3> {
        self.info().required_block
    }

    pub fn ptx_version(&self) -> (u8, u8) {
        self.module.image.ptx_version
    }

    /// Whether both handles mean the same kernel of the same loaded module.
    pub fn is(&self, other: &Kernel) -> bool {
        Arc::ptr_eq(&self.module, &other.module) && self.index == other.index
    }
}

impl fmt::Debug for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Kernel").field(&self.name()).finish()
    }
}
