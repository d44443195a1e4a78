//! Prologues into PTX.
//!
//! A kernel that arrives as text is given its prologue as text: one parameter more behind its own, and a scope at the
//! beginning of its body. Both are insertions; every other byte of the module stays where it was, relative to its
//! neighbours. Names and labels of the prologue are chosen so that the module has none like them.
//!
//! * [`survey`]: what the module is, and what each of its kernels reaches
//! * [`waits`]: whether a kernel's blocks may be waiting for each other
//! * [`layout`]: where parameters lie
//! * [`prologue`]: the instructions
//!
//! What cannot be told from the text is decided against the kernel: a refused kernel is held between launches, which
//! costs latency; a wrong guess would cost results.

mod layout;
mod prologue;
mod survey;
#[cfg(test)]
mod tests;
mod waits;

use ptx::{Edits, Function, FunctionKind, Module};

use crate::{Control, Error, Kernel, Reason, Rewritten, Verdict};
use layout::Layout;
use survey::Survey;

/// Gives every kernel of a PTX module that can have one its prologue.
pub fn rewrite_ptx(text: &str) -> Result<Rewritten, Error> {
    let parse = ptx::parse(text.trim_end_matches('\0'));
    if let Some(error) = parse.errors.into_iter().next() {
        return Err(Error::Text(error));
    }
    let module = parse.module;
    let survey = Survey::of(&module)?;
    let prefix = unused_prefix(&module.source);
    let mut edits = Edits::new();
    let mut kernels = Vec::new();
    for function in entries(&module) {
        kernels.push(rewrite_kernel(&module, &survey, function, &prefix, &mut edits));
    }
    let mut image = edits.apply(&module).map_err(Error::Edit)?.into_bytes();
    image.push(0);
    Ok(Rewritten { image, kernels })
}

/// The kernels that are here, not only announced.
fn entries(module: &Module) -> impl Iterator<Item = &Function> {
    module.functions().filter(|function| function.kind == FunctionKind::Entry && function.body.is_some())
}

fn rewrite_kernel(
    module: &Module,
    survey: &Survey<'_>,
    function: &Function,
    prefix: &str,
    edits: &mut Edits,
) -> Kernel {
    let name = module.text(function.name).to_owned();
    let layout = Layout::of(module, function);
    let parameters = layout.as_ref().map(|layout| layout.parameters.clone()).unwrap_or_default();
    let refused = |reason| Kernel {
        name: name.clone(),
        verdict: Verdict::Refuse(reason),
        parameters: parameters.clone(),
        control_offset: 0,
        overlaps: false,
    };
    let (Some(layout), Some(body)) = (&layout, &function.body) else {
        return refused(Reason::UnknownRecords);
    };
    let most = survey.target.most_parameters() - Control::SIZE;
    if layout.bytes > most || Control::offset(layout.bytes) > most {
        return refused(Reason::ParametersTooLarge);
    }
    let control_offset = Control::offset(layout.bytes);
    match survey.judge(&name) {
        Verdict::Refuse(reason) => refused(reason),
        Verdict::Guard(rule) => {
            edits.add_parameter(function, &prologue::parameter(prefix));
            edits.prologue(body, prologue::text(prefix, survey.target));
            // Its prologue does not wait, and its own instructions may let the next launch begin before it has ended.
            Kernel { name, verdict: Verdict::Guard(rule), parameters, control_offset, overlaps: false }
        }
    }
}

/// What the prologue's names begin with: nothing in the module does.
fn unused_prefix(source: &str) -> String {
    let numbered = (1..).map(|number| format!("ebb{number}"));
    let mut candidates = std::iter::once("ebb".to_owned()).chain(numbered);
    candidates.find(|candidate| !source.contains(candidate.as_str())).expect("a text is finite")
}
