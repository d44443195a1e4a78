//! How large something is, by its shape, as well as that can be known before the driver has laid it out.

use std::ffi::c_uint;

use cuda_abi::{
    CUDA_ARRAY_DESCRIPTOR, CUDA_ARRAY_DESCRIPTOR_v1, CUDA_ARRAY3D_DESCRIPTOR, CUDA_ARRAY3D_DESCRIPTOR_v1,
};

/// Rows begin at multiples of this on all cards known; what the driver chose is counted once it has said so.
const PITCH: u64 = 512;

pub fn pitched(width: u64, rows: u64) -> u64 {
    width.checked_next_multiple_of(PITCH).unwrap_or(u64::MAX).saturating_mul(rows)
}

/// What an array's description says.
pub trait Shape {
    /// Width, height and depth.
    fn sides(&self) -> [u64; 3];
    /// The format, how many of it an element has, and flags.
    fn kind(&self) -> (c_uint, c_uint, c_uint);
}

macro_rules! shapes {
    ($($type:ty: $depth:expr, $flags:expr;)*) => {
        $(impl Shape for $type {
            #[allow(clippy::unnecessary_cast, reason = "the older descriptions have narrower sides")]
            fn sides(&self) -> [u64; 3] {
                let depth: fn(&$type) -> u64 = $depth;
                [self.Width as u64, self.Height as u64, depth(self)]
            }

            fn kind(&self) -> (c_uint, c_uint, c_uint) {
                let flags: fn(&$type) -> c_uint = $flags;
                (self.Format.0, self.NumChannels, flags(self))
            }
        })*
    };
}
shapes! {
    CUDA_ARRAY_DESCRIPTOR_v1: |_| 0, |_| 0;
    CUDA_ARRAY_DESCRIPTOR: |_| 0, |_| 0;
    CUDA_ARRAY3D_DESCRIPTOR_v1: |shape| shape.Depth.into(), |shape| shape.Flags;
    CUDA_ARRAY3D_DESCRIPTOR: |shape| shape.Depth as u64, |shape| shape.Flags;
}

/// The depth is a number of layers, which do not become fewer from level to level.
const LAYERED: c_uint = 0x01;
/// Memory is mapped into it later, and counted where it is made.
const SPARSE: c_uint = 0x40;
const DEFERRED: c_uint = 0x80;

/// An array with so many levels, each half as wide, high and deep as the one before.
pub fn array(shape: &impl Shape, levels: c_uint) -> u64 {
    let (format, channels, flags) = shape.kind();
    if flags & (SPARSE | DEFERRED) != 0 {
        return 0;
    }
    let [width, height, depth] = shape.sides();
    let element = element_bytes(format).saturating_mul(channels.into());
    let level = |level: u32| {
        let side = |side: u64| (side >> level).max(1);
        let layers = if flags & LAYERED != 0 { depth.max(1) } else { side(depth) };
        side(width).saturating_mul(side(height)).saturating_mul(layers).saturating_mul(element)
    };
    // There are no more than 32 levels of anything; what claims more is refused by the driver.
    (0..levels.clamp(1, 32)).fold(0, |sum: u64, number| sum.saturating_add(level(number)))
}

/// The plain formats; what block-compressed and planar ones take, the driver knows.
pub fn element_bytes(format: c_uint) -> u64 {
    const BYTES: [(c_uint, u64); 8] =
        [(0x01, 1), (0x02, 2), (0x03, 4), (0x08, 1), (0x09, 2), (0x0a, 4), (0x10, 2), (0x20, 4)];
    BYTES.iter().find(|(known, _)| *known == format).map_or(1, |(_, bytes)| *bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use cuda_abi::CUarray_format;

    fn shape(sides: [usize; 3], flags: c_uint) -> CUDA_ARRAY3D_DESCRIPTOR {
        let [width, height, depth] = sides;
        CUDA_ARRAY3D_DESCRIPTOR {
            Width: width,
            Height: height,
            Depth: depth,
            Format: CUarray_format(0x20),
            NumChannels: 4,
            Flags: flags,
        }
    }

    #[test]
    fn arrays_take_their_elements() {
        assert_eq!(array(&shape([100, 0, 0], 0), 1), 1600);
        assert_eq!(array(&shape([100, 10, 3], 0), 1), 48_000);
        assert_eq!(array(&shape([usize::MAX, 10, 3], 0), 1), u64::MAX);
        assert_eq!(array(&shape([100, 10, 3], SPARSE), 1), 0);
    }

    #[test]
    fn levels_become_smaller_and_layers_do_not_become_fewer() {
        assert_eq!(array(&shape([4, 4, 4], 0), 3), 16 * (64 + 8 + 1));
        assert_eq!(array(&shape([4, 4, 4], LAYERED), 3), 16 * (64 + 16 + 4));
    }

    #[test]
    fn rows_are_rounded_up() {
        assert_eq!(pitched(1, 3), 1536);
        assert_eq!(pitched(u64::MAX, 3), u64::MAX);
    }
}
