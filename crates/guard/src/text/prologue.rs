//! The prologue as text: the machine of [`rule`](crate::rule) in PTX.
//!
//! The block's first thread decides, and the others meet it at a barrier that tells them what was decided. What is read
//! once is loaded before anything is asked, so that the loads are under way together. `atom` without further words is
//! relaxed and reaches the whole GPU.
//!
//! In the template `%name` is a register of ours, `?name` one of the machine, `$name` a label and `CONTROL` the control
//! words; `LOAD`, `STORE` and `MEET` are what the target has for it; lines after a `C` are for targets with clusters, after an `S`
//! for those that can sleep.

use super::survey::Target;
use crate::Control;

const TEMPLATE: &str = include_str!("prologue.ptx");

/// The declaration of the control words as a parameter.
pub fn parameter(prefix: &str) -> String {
    format!(".param .align {} .b8 {prefix}_control[{}]", Control::ALIGNMENT, Control::SIZE)
}

/// A scope for the beginning of a kernel's body, in which all names begin with `prefix`.
pub fn text(prefix: &str, target: Target) -> String {
    let (load, store, meet) = match target.has_scopes() {
        true => ("ld.relaxed.gpu.global", "st.relaxed.gpu.global", "barrier.red.or.pred"),
        false => ("ld.volatile.global", "st.volatile.global", "bar.red.or.pred"),
    };
    let lines = TEMPLATE.lines().filter_map(|line| match line.as_bytes().first() {
        Some(b'C') => target.has_clusters().then_some(&line[1..]),
        Some(b'S') => target.can_sleep().then_some(&line[1..]),
        _ => Some(line),
    });
    let mut text = String::from("\n{\n");
    for line in lines {
        let line = line.replace('%', &format!("%{prefix}_")).replace('$', &format!("${prefix}_"));
        let line = line.replace('?', "%").replace("CONTROL", &format!("{prefix}_control"));
        text.push_str(&line.replace("LOAD", load).replace("STORE", store).replace("MEET", meet));
        text.push('\n');
    }
    text.push_str("}\n");
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Mode;
    use crate::rule::{BATCH, Cell};
    use std::mem::offset_of;

    /// Numbers in the template are the ones that the rest of the crate has names for.
    #[test]
    fn the_template_means_the_control_words() {
        let has = |line: String| assert!(TEMPLATE.contains(&line), "{line}");
        has(format!(
            "LOAD.u32 %stop, [%place];\n\tld.param.u64 %place, [CONTROL+{}];",
            offset_of!(Control, away)
        ));
        has(format!("%place, [CONTROL+{}];\n\tLOAD.u32 %stop", offset_of!(Control, stop)));
        has(format!("%marks, [CONTROL+{}];", offset_of!(Control, marks)));
        has(format!("%serial, [CONTROL+{}];", offset_of!(Control, serial)));
        has(format!("%mode, [CONTROL+{}];", offset_of!(Control, mode)));
        has(format!(
            "and.b32 %low, %mode, {};\n\tsetp.ne.u32 %is, %low, 0;\n\t@%is bra $ordered",
            Mode::ORDERED.0
        ));
        has(format!(
            "and.b32 %low, %mode, {};\n\tsetp.eq.u32 %is, %low, 0;\n\t@%is bra $based",
            Mode::AGAIN.0
        ));
        // The cells are eight bytes apart.
        has(format!(
            "and.b32 %low, %mode, {0};\n\tmul.wide.u32 %wide, %low, {1}",
            Mode::SECOND_CELL.0,
            8 / Mode::SECOND_CELL.0
        ));
        has(format!("or.b32 %limit, %index, {};", BATCH - 1));
        let stopped = Cell { serial: 0, stopped: true, limit: 0 }.word();
        has(format!("or.b32 %low, %low, {stopped:#x};"));
    }
}
