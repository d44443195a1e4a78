//! Operands from constant banks.

/// A read from a constant bank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Read {
    pub bank: u64,
    pub place: Place,
}

/// Where in the bank, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    Fixed(u64),
    /// Behind what a register holds.
    Indexed {
        register: u64,
        offset: u64,
    },
}

/// `LDC`, `LDCU` and `ULDC` count bytes, from different bits on, other instructions words.
const LDC: u64 = 0xb82;
const LDCU: u64 = 0x7ac;
const ULDC: u64 = 0xab9;
/// The register that is always zero.
const RZ: u64 = 0xff;

impl Read {
    /// What the instruction with this low half reads. Operands come from a constant bank where the upper three bits of
    /// the opcode are 3 or 5.
    pub fn of(low: u64) -> Option<Read> {
        if !matches!(low >> 9 & 7, 3 | 5) {
            return None;
        }
        let register = low >> 24 & 0xff;
        let place = match low & 0xfff {
            LDC if register != RZ => Place::Indexed { register, offset: low >> 38 & 0xffff },
            LDCU if register != RZ => Place::Indexed { register, offset: low >> 37 & 0x1_ffff },
            LDC | ULDC => Place::Fixed(low >> 38 & 0xffff),
            LDCU => Place::Fixed(low >> 37 & 0x1_ffff),
            _ => Place::Fixed((low >> 40 & 0x3fff) * 4),
        };
        Some(Read { bank: low >> 54 & 0x1f, place })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_are_those_that_the_disassembler_shows() {
        let fixed = |bank, offset| Some(Read { bank, place: Place::Fixed(offset) });
        let indexed =
            |bank, register, offset| Some(Read { bank, place: Place::Indexed { register, offset } });
        let shown = [
            (0x0000_0a00_ff01_7624, fixed(0, 0x28)),
            (0x0000_8c00_ff02_7b82, fixed(0, 0x230)),
            (0x0000_8600_0004_7ab9, fixed(0, 0x218)),
            (0x0000_6b00_ff08_77ac, fixed(0, 0x358)),
            (0x0000_4b00_0707_77ac, indexed(0, 7, 0x258)),
            (0x00c0_0000_0007_7b82, indexed(3, 0, 0)),
            (0x0100_0000_ff02_7b82, fixed(4, 0)),
            // LDG and EXIT read none.
            (0x0000_0006_0202_7981, None),
            (0x0000_0000_0000_794d, None),
        ];
        for (low, read) in shown {
            assert_eq!(Read::of(low), read, "{low:#018x}");
        }
    }
}
