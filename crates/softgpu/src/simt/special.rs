//! Special registers.

use super::machine::{Flow, Machine};
use crate::isa::{Instruction, LANES};

/// What a read of a special register yields; in `aux` of the instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum Special {
    TidX,
    TidY,
    TidZ,
    NtidX,
    NtidY,
    NtidZ,
    CtaidX,
    CtaidY,
    CtaidZ,
    NctaidX,
    NctaidY,
    NctaidZ,
    LaneId,
    WarpId,
    NwarpId,
    SmId,
    NsmId,
    LanemaskEq,
    LanemaskLe,
    LanemaskLt,
    LanemaskGe,
    LanemaskGt,
    DynamicShared,
    TotalShared,
    /// Where dynamic shared memory begins; not a register of PTX, but the address of an `extern` array.
    DynamicBase,
    Envreg1,
    Envreg2,
    One,
    Zero,
    /// Shared memory set aside for the system; here it lies behind the program's.
    Reserved,
    ReservedEnd,
    /// 64 bits, like those below.
    GridId,
    /// Where the windows of shared and local memory begin; not registers of PTX.
    SharedWindow,
    LocalWindow,
}

const ALL: [Special; 34] = {
    use Special::*;
    [
        TidX,
        TidY,
        TidZ,
        NtidX,
        NtidY,
        NtidZ,
        CtaidX,
        CtaidY,
        CtaidZ,
        NctaidX,
        NctaidY,
        NctaidZ,
        LaneId,
        WarpId,
        NwarpId,
        SmId,
        NsmId,
        LanemaskEq,
        LanemaskLe,
        LanemaskLt,
        LanemaskGe,
        LanemaskGt,
        DynamicShared,
        TotalShared,
        DynamicBase,
        Envreg1,
        Envreg2,
        One,
        Zero,
        Reserved,
        ReservedEnd,
        GridId,
        SharedWindow,
        LocalWindow,
    ]
};

impl Special {
    /// By its name in PTX, with whether it is read as a 64-bit register.
    pub(crate) fn named(name: &str) -> Option<Special> {
        use Special::*;
        Some(match name {
            "%tid.x" => TidX,
            "%tid.y" => TidY,
            "%tid.z" => TidZ,
            "%ntid.x" => NtidX,
            "%ntid.y" => NtidY,
            "%ntid.z" => NtidZ,
            "%ctaid.x" | "%clusterid.x" => CtaidX,
            "%ctaid.y" | "%clusterid.y" => CtaidY,
            "%ctaid.z" | "%clusterid.z" => CtaidZ,
            "%nctaid.x" | "%nclusterid.x" => NctaidX,
            "%nctaid.y" | "%nclusterid.y" => NctaidY,
            "%nctaid.z" | "%nclusterid.z" => NctaidZ,
            "%laneid" => LaneId,
            "%warpid" => WarpId,
            "%nwarpid" => NwarpId,
            "%smid" => SmId,
            "%nsmid" => NsmId,
            "%lanemask_eq" => LanemaskEq,
            "%lanemask_le" => LanemaskLe,
            "%lanemask_lt" => LanemaskLt,
            "%lanemask_ge" => LanemaskGe,
            "%lanemask_gt" => LanemaskGt,
            "%dynamic_smem_size" => DynamicShared,
            "%total_smem_size" | "%aggr_smem_size" => TotalShared,
            "%envreg1" => Envreg1,
            "%envreg2" => Envreg2,
            "%cluster_nctaid.x" | "%cluster_nctaid.y" | "%cluster_nctaid.z" | "%cluster_nctarank" => One,
            "%tid.w" | "%ntid.w" | "%ctaid.w" | "%nctaid.w" => Zero,
            "%cluster_ctaid.x" | "%cluster_ctaid.y" | "%cluster_ctaid.z" | "%cluster_ctarank" => Zero,
            "%reserved_smem_offset_begin" | "%reserved_smem_offset_0" | "%reserved_smem_offset_1" => Reserved,
            "%reserved_smem_offset_end" | "%reserved_smem_offset_cap" => ReservedEnd,
            "%gridid" => GridId,
            _ => return None,
        })
    }

    pub(crate) fn is_wide(self) -> bool {
        matches!(self, Special::GridId | Special::SharedWindow | Special::LocalWindow)
    }
}

/// What the system sets aside for cooperative groups.
pub(crate) const RESERVED_SHARED: u32 = 1024;
pub(crate) const RESERVED_ALIGN: u32 = 128;

/// Reads the special register in `aux` to `d`.
pub(crate) fn read(m: &mut Machine<'_>, i: &Instruction, mask: u32) -> Flow {
    use Special::*;
    let (launch, index) = (m.launch, m.state.index);
    let axis = match ALL[i.aux as usize] {
        TidX => Some(0),
        TidY => Some(1),
        TidZ => Some(2),
        _ => None,
    };
    if let Some(axis) = axis {
        let row = m.warp.thread[axis].0;
        m.fill(i.d, mask, |lane| row[lane]);
        return Flow::Next;
    }
    let threads = launch.block.volume().unwrap_or(0) as u32;
    let shared = launch.kernel.static_shared().next_multiple_of(16);
    let uniform = match ALL[i.aux as usize] {
        NtidX => launch.block.x,
        NtidY => launch.block.y,
        NtidZ => launch.block.z,
        CtaidX => index.x,
        CtaidY => index.y,
        CtaidZ => index.z,
        NctaidX => launch.grid.x,
        NctaidY => launch.grid.y,
        NctaidZ => launch.grid.z,
        WarpId => m.warp.index,
        NwarpId => threads.div_ceil(LANES as u32),
        SmId => m.state.sm,
        NsmId => launch.sm_count,
        DynamicShared => launch.dynamic_shared,
        TotalShared => shared + launch.dynamic_shared,
        DynamicBase => shared,
        Envreg1 => (launch.grid_workspace >> 32) as u32,
        Envreg2 => launch.grid_workspace as u32,
        Reserved => (shared + launch.dynamic_shared).next_multiple_of(RESERVED_ALIGN),
        ReservedEnd => (shared + launch.dynamic_shared).next_multiple_of(RESERVED_ALIGN) + RESERVED_SHARED,
        One => 1,
        GridId => return wide(m, i, mask, launch.grid_id),
        SharedWindow => return wide(m, i, mask, m.state.shared_window),
        LocalWindow => return wide(m, i, mask, m.state.local_window),
        LaneId => {
            m.fill(i.d, mask, |lane| lane as u32);
            return Flow::Next;
        }
        LanemaskEq => {
            m.fill(i.d, mask, |lane| 1u32 << lane);
            return Flow::Next;
        }
        LanemaskLt => {
            m.fill(i.d, mask, |lane| (1u32 << lane) - 1);
            return Flow::Next;
        }
        LanemaskLe => {
            m.fill(i.d, mask, |lane| u32::MAX >> (31 - lane));
            return Flow::Next;
        }
        LanemaskGe => {
            m.fill(i.d, mask, |lane| u32::MAX << lane);
            return Flow::Next;
        }
        LanemaskGt => {
            m.fill(i.d, mask, |lane| (u32::MAX << lane) << 1);
            return Flow::Next;
        }
        TidX | TidY | TidZ | Zero => 0,
    };
    m.fill(i.d, mask, |_| uniform);
    Flow::Next
}

fn wide(m: &mut Machine<'_>, i: &Instruction, mask: u32, value: u64) -> Flow {
    m.fill(i.d, mask, |_| value);
    Flow::Next
}
