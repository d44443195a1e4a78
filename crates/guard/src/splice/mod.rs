//! Prologues into machine code.
//!
//! Nothing of a kernel moves, because jumps, relocations and tables of the compiler would have to move with it. The
//! prologue is appended to the kernel's instructions, the first of which becomes a jump to it; the one that was there
//! comes at the prologue's end, before the jump back ([`code`]). It reads one register from a constant bank, so it does
//! the same there. Then the compiler's records must tell of it ([`records`]): one parameter more, more registers perhaps,
//! a barrier, more places where the kernel ends. One instruction is not left alone: a kernel that may be cut does not let the
//! next launch begin before it has ended.
//!
//! All of a kernel's new parts are made before the first is put into the file, so that whatever is found on the way
//! leaves the kernel as it was. A twin has its own copy of its module's variables; a kernel that uses one is refused,
//! whatever else could be done with it ([`outside`]).

mod code;
mod outside;
mod plan;
mod records;

use crate::prologue::for_architecture;
use crate::verdict::Reason;
use crate::{Error, Kernel, Rewritten, Verdict};
use cubin::File;
use plan::{Change, Shop};

/// Gives every kernel of a cubin that can have one its prologue.
pub fn rewrite_cubin(image: &[u8]) -> Result<Rewritten, Error> {
    let mut file = File::read(image)?;
    let found = file.kernels();
    let shop = match shop(&file, &found) {
        Ok(shop) => shop,
        Err(reason) => {
            let kernels = found.iter().map(|kernel| refused(&file, kernel, reason)).collect();
            return Ok(Rewritten { image: image.to_vec(), kernels });
        }
    };
    let mut kernels = Vec::with_capacity(found.len());
    for kernel in &found {
        kernels.push(match shop.plan(&file, kernel) {
            Ok(change) => guarded(&mut file, &shop, kernel, change),
            Err(reason) => refused(&file, kernel, reason),
        });
    }
    Ok(Rewritten { image: file.write(), kernels })
}

/// What rewriting this file takes, or why none of its kernels can be rewritten.
fn shop(file: &File<'_>, kernels: &[cubin::kernel::Kernel<'_>]) -> Result<Shop, Reason> {
    if file.is_relocatable() {
        return Err(Reason::Relocatable);
    }
    let prologue = for_architecture(file.target().number).ok_or(Reason::UnknownArchitecture)?;
    Shop::new(file, kernels, prologue)
}

fn guarded(file: &mut File<'_>, shop: &Shop, kernel: &cubin::kernel::Kernel<'_>, change: Change) -> Kernel {
    let rewritten = Kernel {
        name: kernel.name.to_owned(),
        verdict: Verdict::Guard(change.rule),
        parameters: plan::parameters(file, kernel),
        control_offset: change.control_offset,
        overlaps: shop.overlaps,
    };
    shop.apply(file, kernel, change);
    rewritten
}

fn refused(file: &File<'_>, kernel: &cubin::kernel::Kernel<'_>, reason: Reason) -> Kernel {
    Kernel {
        name: kernel.name.to_owned(),
        verdict: Verdict::Refuse(reason),
        parameters: plan::parameters(file, kernel),
        control_offset: 0,
        overlaps: false,
    }
}
