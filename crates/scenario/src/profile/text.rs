//! A profile as it is written: compact JSON, one kernel to a line, so that two recordings can be compared by eye and by
//! any tool that compares lines.

use std::fmt;

use super::{Kernel, Part, Profile};

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Profile { schema, workload, recorded, sms, parts } = self;
        let recorded = serde_json::to_string(recorded).map_err(|_| fmt::Error)?;
        writeln!(f, "{{\"schema\":{schema},\"workload\":{},", quoted(workload))?;
        writeln!(f, "\"recorded\":{recorded},")?;
        write!(f, "\"sms\":{sms},\"parts\":[")?;
        for (number, part) in parts.iter().enumerate() {
            writeln!(f, "{}", if number == 0 { "" } else { "," })?;
            part.fmt(f)?;
        }
        writeln!(f, "]}}")
    }
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Part { name, times, host_us, kernels } = self;
        let name = quoted(name);
        write!(f, "{{\"name\":{name},\"times\":{times},\"host_us\":{host_us},\"kernels\":[")?;
        for (number, kernel) in kernels.iter().enumerate() {
            let Kernel { at_us, blocks, threads, per_sm, block_us } = kernel;
            writeln!(f, "{}", if number == 0 { "" } else { "," })?;
            write!(f, "[{at_us},{blocks},{threads},{per_sm},{block_us}]")?;
        }
        write!(f, "]}}")
    }
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
