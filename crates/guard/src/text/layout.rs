//! Where a kernel's parameters lie among the bytes that it is launched with.

use ptx::{Declarator, Function, Module, Variable};

use crate::Parameter;

pub struct Layout {
    pub parameters: Vec<Parameter>,
    /// How many bytes they take up.
    pub bytes: u32,
}

impl Layout {
    /// `None` where the text says less than is needed, or what cannot be.
    pub fn of(module: &Module, function: &Function) -> Option<Layout> {
        let mut layout = Layout { parameters: Vec::new(), bytes: 0 };
        for variable in &function.parameters {
            for declarator in &variable.declarators {
                let (size, align) = shape(module, variable, declarator)?;
                let offset = layout.bytes.checked_next_multiple_of(align)?;
                layout.parameters.push(Parameter { offset, size });
                layout.bytes = offset.checked_add(size)?;
            }
        }
        Some(layout)
    }
}

/// Bytes and alignment of a parameter.
fn shape(module: &Module, variable: &Variable, declarator: &Declarator) -> Option<(u32, u32)> {
    let lanes = match variable.vector.map(|span| module.text(span)) {
        None => 1,
        Some(vector) => vector.strip_prefix(".v")?.parse().ok()?,
    };
    let unit = scalar(module.text(variable.ty))?.checked_mul(lanes)?;
    let count =
        declarator.dimensions.iter().try_fold(1u64, |count, dimension| count.checked_mul((*dimension)?))?;
    let size = u64::from(unit).checked_mul(count)?;
    let align = variable.align.unwrap_or(u64::from(unit).next_power_of_two());
    let align = u32::try_from(align).ok().filter(|align| align.is_power_of_two())?;
    Some((u32::try_from(size).ok()?, align))
}

/// Bytes of a type, as `.f32`. Handles of textures and samplers are eight.
fn scalar(ty: &str) -> Option<u32> {
    match ty {
        ".texref" | ".samplerref" | ".surfref" => return Some(8),
        _ => {}
    }
    let digits = ty.find(|letter: char| letter.is_ascii_digit())?;
    let bits: String = ty[digits..].chars().take_while(char::is_ascii_digit).collect();
    // `.f16x2` is two in one register.
    let lanes = if ty.ends_with("x2") { 2 } else { 1 };
    match bits.parse::<u32>().ok()?.checked_mul(lanes)? {
        bits @ (8 | 16 | 32 | 64 | 128) => Some(bits / 8),
        _ => None,
    }
}
