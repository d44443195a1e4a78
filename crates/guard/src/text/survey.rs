//! What a module is, and what each of its kernels reaches.
//!
//! A function reaches every name that stands in its text, and whatever these reach. That is more than it can call, so
//! what follows from it is on the safe side.

use std::collections::{BTreeMap, BTreeSet};

use ptx::{Directive, Function, FunctionKind, Item, Module, Span, TokenKind, Variable, tokens};

use super::waits;
use crate::{Error, Reason, Rule, Verdict};

/// For what a module was written: its `.version` and `.target`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target {
    /// Major and minor number of the language.
    pub version: (u32, u32),
    /// 90 for `sm_90a`.
    pub architecture: u32,
}

impl Target {
    /// Whether loads and stores can say how far they reach, and barriers need not be met by whole warps.
    pub fn has_scopes(self) -> bool {
        self.architecture >= 70 && self.version >= (6, 0)
    }

    pub fn can_sleep(self) -> bool {
        self.architecture >= 70 && self.version >= (6, 3)
    }

    pub fn has_clusters(self) -> bool {
        self.architecture >= 90 && self.version >= (7, 8)
    }

    /// How many bytes of parameters a kernel may have.
    pub fn most_parameters(self) -> u32 {
        if self.architecture >= 70 && self.version >= (8, 1) { 32764 } else { 4096 }
    }
}

/// What stands in the way of guarding whoever reaches it.
#[derive(Clone, Debug, Default)]
struct Thing<'m> {
    reaches: BTreeSet<&'m str>,
    refusal: Option<Reason>,
    /// Whether calling it may mean waiting for other blocks.
    waits: bool,
}

pub struct Survey<'m> {
    pub target: Target,
    things: BTreeMap<&'m str, Thing<'m>>,
    /// Functions of which there is the text, and all that are announced.
    here: BTreeSet<&'m str>,
    announced: BTreeSet<&'m str>,
    /// What stands in the way of every kernel of the module.
    refusal: Option<Reason>,
}

/// Functions that a driver has for every module.
const BUILT_IN: &[&str] = &["vprintf", "malloc", "free", "__assertfail"];

/// How names begin that compilers make up for what nobody can write to: texts, tables of library functions, virtual
/// functions. A program has no way to mean them, so a twin may have its own.
const MADE_UP: &[&str] =
    &["$str", "__unnamed_", "__cudart_", "_ZTV", "_$_str", "assertMessage_", "assertFile_"];

impl<'m> Survey<'m> {
    pub fn of(module: &'m Module) -> Result<Survey<'m>, Error> {
        let mut survey = Survey {
            target: target(module)?,
            things: BTreeMap::new(),
            here: BTreeSet::new(),
            announced: BTreeSet::new(),
            refusal: None,
        };
        for item in &module.items {
            match item {
                Item::Function(function) => survey.function(module, function),
                Item::Variable(variable) => survey.variable(module, variable),
                Item::Directive(directive) => survey.directive(module, directive),
            }
        }
        survey.resolve();
        Ok(survey)
    }

    /// The verdict on a kernel.
    pub fn judge(&self, kernel: &str) -> Verdict {
        if let Some(reason) = self.refusal.or_else(|| by_name(kernel)) {
            return Verdict::Refuse(reason);
        }
        let mut rule = Rule::Plain;
        for name in self.reached(kernel) {
            let thing = &self.things[name];
            if let Some(reason) = thing.refusal {
                return Verdict::Refuse(reason);
            }
            if thing.waits {
                rule = Rule::Ordered;
            }
        }
        Verdict::Guard(rule)
    }

    fn reached(&self, from: &str) -> BTreeSet<&'m str> {
        let mut reached = BTreeSet::new();
        let mut open: Vec<&'m str> =
            self.things.get_key_value(from).map(|(name, _)| *name).into_iter().collect();
        while let Some(name) = open.pop() {
            let known = self.things.get(name).filter(|_| reached.insert(name));
            open.extend(known.into_iter().flat_map(|thing| &thing.reaches));
        }
        reached.retain(|name| self.things.contains_key(name));
        reached
    }

    fn function(&mut self, module: &'m Module, function: &'m Function) {
        let name = module.text(function.name);
        let thing = self.things.entry(name).or_default();
        self.announced.insert(name);
        match &function.body {
            Some(body) => {
                self.here.insert(name);
                thing.reaches.extend(words(module, body.span));
                let cooperative = thing.reaches.iter().any(|word| word.starts_with("%envreg"));
                thing.refusal = cooperative.then_some(Reason::Cooperative);
                let callee = function.kind == FunctionKind::Device;
                thing.waits = waits::may_wait(module, function, body, callee);
            }
            // The device's own runtime: launches, streams and what belongs to them.
            None if name.starts_with("cuda") => thing.refusal = Some(Reason::DynamicParallelism),
            None => {}
        }
    }

    fn variable(&mut self, module: &'m Module, variable: &'m Variable) {
        let space = module.text(variable.space);
        let elsewhere = variable.linkage.iter().any(|&span| module.text(span) == ".extern");
        let shared = space == ".shared";
        if elsewhere && !shared {
            self.refusal = Some(Reason::Relocatable);
        }
        for declarator in &variable.declarators {
            let name = module.text(declarator.name);
            let made_up = MADE_UP.iter().any(|prefix| name.starts_with(prefix));
            let harmless = shared || made_up && declarator.initialiser.is_some();
            let thing = self.things.entry(name).or_default();
            thing.reaches.extend(words(module, declarator.span).filter(|&word| word != name));
            thing.refusal = (!harmless).then_some(Reason::TouchesModuleMemory);
        }
    }

    /// `.alias one, other;`: whoever reaches the one reaches the other.
    fn directive(&mut self, module: &'m Module, directive: &Directive) {
        if let (".alias", [one, other]) = (module.text(directive.name), &directive.arguments[..]) {
            self.here.insert(module.text(*one));
            self.things.entry(module.text(*one)).or_default().reaches.insert(module.text(*other));
        }
    }

    /// Functions that are announced and neither here nor the driver's must come from another module.
    fn resolve(&mut self) {
        let mut missing = self.announced.difference(&self.here);
        if missing.any(|name| !BUILT_IN.contains(name) && self.things[name].refusal.is_none()) {
            self.refusal = Some(Reason::Relocatable);
        }
    }
}

/// Kernels known by their names.
fn by_name(kernel: &str) -> Option<Reason> {
    let nccl =
        kernel.starts_with("nccl") || kernel.contains("ncclDevKernel") || kernel.contains("ncclKernel");
    nccl.then_some(Reason::Nccl)
}

fn words(module: &Module, span: Span) -> impl Iterator<Item = &str> {
    let text = module.text(span);
    let words = tokens(text).filter(|token| token.kind == TokenKind::Word);
    words.map(move |token| &text[token.span.range()])
}

fn target(module: &Module) -> Result<Target, Error> {
    let argument = |name: &str| {
        module.items.iter().find_map(|item| match item {
            Item::Directive(directive) if module.text(directive.name) == name => {
                directive.arguments.first().map(|&span| module.text(span))
            }
            _ => None,
        })
    };
    // A module that does not say is of 32 bits.
    if argument(".address_size") != Some("64") {
        return Err(Error::AddressSize);
    }
    let version = argument(".version").and_then(|version| version.split_once('.'));
    let version = version.and_then(|(major, minor)| Some((major.parse().ok()?, minor.parse().ok()?)));
    let architecture = argument(".target").and_then(|target| {
        let number =
            target.strip_prefix("sm_")?.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
        number.parse().ok()
    });
    version
        .zip(architecture)
        .map(|(version, architecture)| Target { version, architecture })
        .ok_or(Error::Target)
}
