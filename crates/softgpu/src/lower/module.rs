//! Modules: their texts, what they declare, and how several become one image.

use std::collections::{HashMap, HashSet};

use ptx::{Function, FunctionKind, Item, Lines, Span, Variable};

use super::declare::{self, Shape};
use super::error::{Error, Place};
use super::function::Name;
use crate::isa::{self, GlobalVariable, Image, PoolAddress, PoolRow, Slot, Symbol};

/// One parsed text.
pub(super) struct Source {
    pub module: ptx::Module,
    lines: Lines,
}

impl Source {
    pub(super) fn parse(text: &str) -> Result<Source, Error> {
        let parse = ptx::parse(text);
        if let Some(error) = parse.errors.into_iter().next() {
            let place = Place { line: error.line, column: error.column };
            return Err(Error::Invalid { place, message: error.message });
        }
        Ok(Source { lines: Lines::new(&parse.module.source), module: parse.module })
    }

    pub(super) fn text(&self, span: Span) -> &str {
        self.module.text(span)
    }

    pub(super) fn place(&self, span: Span) -> Place {
        let (line, column) = self.lines.line_column(span.start);
        Place { line, column }
    }

    pub(super) fn functions(&self) -> impl Iterator<Item = &Function> {
        self.module.items.iter().filter_map(|item| if let Item::Function(f) = item { Some(f) } else { None })
    }

    fn variables(&self) -> impl Iterator<Item = &Variable> {
        self.module.items.iter().filter_map(|item| if let Item::Variable(v) = item { Some(v) } else { None })
    }
}

/// Shared memory of all blocks, whatever is declared where; a card has 227 KiB for a block.
const MOST_SHARED: u64 = 227 << 10;
const MOST_GLOBAL: u64 = 1 << 34;
const MOST_NAMES: usize = 1 << 20;
/// Rows of constants: 128 MiB.
const MOST_POOL: usize = 1 << 20;

/// What has been made of all modules so far.
#[derive(Default)]
pub(super) struct Linker {
    /// Names of each module, and those that all modules see.
    units: Vec<HashMap<String, Name>>,
    visible: HashMap<String, Name>,
    pub variables: Vec<GlobalVariable>,
    pub functions: Vec<Declared>,
    /// Shared memory that is not a single kernel's own.
    pub common_shared: u64,
    pool: Vec<PoolRow>,
    narrow: HashMap<u32, u32>,
    wide: HashMap<u64, u32>,
    symbols: HashMap<(Symbol, i64), u32>,
    addresses: Vec<PoolAddress>,
    pub lists: Vec<Slot>,
    pub reserved_shared: bool,
    /// Functions that can get to shared memory that is not a kernel's own.
    shares: HashSet<u32>,
    /// What the functions and variables so far have taken of the limits on a module.
    pub registers: usize,
    pub initial_bytes: u64,
    pub steps: u64,
}

/// A function that some module declares.
pub(super) struct Declared {
    pub name: String,
    /// Module and position among its functions, once its body is known.
    pub body: Option<(usize, usize)>,
    pub is_kernel: bool,
    /// Functions and shared variables that its text mentions.
    pub mentions: Vec<String>,
}

impl Linker {
    /// The meaning of a name outside functions.
    pub(super) fn find(&self, unit: usize, text: &str) -> Option<Name> {
        self.units[unit].get(text).or_else(|| self.visible.get(text)).cloned()
    }

    pub(super) fn pool_narrow(&mut self, bits: u32) -> u32 {
        *self.narrow.entry(bits).or_insert_with(|| {
            self.pool.push(PoolRow::splat(bits));
            self.pool.len() as u32 - 1
        })
    }

    pub(super) fn pool_wide(&mut self, bits: u64) -> u32 {
        *self.wide.entry(bits).or_insert_with(|| {
            self.pool.extend(PoolRow::splat_wide(bits));
            self.pool.len() as u32 - 2
        })
    }

    pub(super) fn pool_symbol(&mut self, symbol: Symbol, addend: i64) -> u32 {
        *self.symbols.entry((symbol, addend)).or_insert_with(|| {
            let row = self.pool.len() as u32;
            self.pool.extend(PoolRow::splat_wide(0));
            self.addresses.push(PoolAddress { row, symbol, addend });
            row
        })
    }

    pub(super) fn check_pool(&self) -> Result<(), Error> {
        let (value, most) = (self.pool.len() as u64, MOST_POOL as u64);
        let place = Place::default();
        if value <= most {
            Ok(())
        } else {
            Err(Error::TooLarge { place, what: "the constants", value, most })
        }
    }

    /// Makes all names known, before any body is looked at.
    pub(super) fn declare(&mut self, sources: &[Source]) -> Result<(), Error> {
        for (unit, source) in sources.iter().enumerate() {
            self.units.push(HashMap::new());
            for (position, function) in source.functions().enumerate() {
                self.declare_function(unit, source, position, function)?;
            }
            for variable in source.variables() {
                self.declare_variable(unit, source, variable)?;
            }
            self.declare_aliases(unit, source)?;
            if self.units[unit].len() > MOST_NAMES {
                let (value, most) = (self.units[unit].len() as u64, MOST_NAMES as u64);
                return Err(Error::TooLarge {
                    place: Place::default(),
                    what: "the number of names",
                    value,
                    most,
                });
            }
        }
        // Initial values may name what is declared later.
        for (unit, source) in sources.iter().enumerate() {
            for variable in source.variables() {
                self.initialise(unit, source, variable)?;
            }
        }
        self.find_shares();
        Ok(())
    }

    fn declare_function(
        &mut self,
        unit: usize,
        source: &Source,
        position: usize,
        function: &Function,
    ) -> Result<(), Error> {
        let name = source.text(function.name);
        let is_kernel = function.kind == FunctionKind::Entry;
        let known = match self.find(unit, name) {
            Some(Name::Function(index)) => index,
            Some(_) => return Err(Error::Duplicate { name: name.to_owned() }),
            None => {
                let declared =
                    Declared { name: name.to_owned(), body: None, is_kernel, mentions: Vec::new() };
                self.functions.push(declared);
                self.functions.len() as u32 - 1
            }
        };
        let is_static = function.linkage.is_empty() && !is_kernel;
        self.name(unit, is_static, name, Name::Function(known));
        let Some(body) = &function.body else { return Ok(()) };
        let declared = &mut self.functions[known as usize];
        let weak = function.linkage.iter().any(|span| source.text(*span) == ".weak");
        match declared.body {
            Some(_) if weak => return Ok(()),
            Some((first, _)) if first == unit || !weak => {
                return Err(Error::Duplicate { name: name.to_owned() });
            }
            _ => {}
        }
        declared.body = Some((unit, position));
        declared.is_kernel = is_kernel;
        declared.mentions = words(source.text(body.span)).into_iter().map(str::to_owned).collect();
        Ok(())
    }

    /// `.alias a, b;`: another name of a function.
    fn declare_aliases(&mut self, unit: usize, source: &Source) -> Result<(), Error> {
        for item in &source.module.items {
            let Item::Directive(directive) = item else { continue };
            if source.text(directive.name) != ".alias" {
                continue;
            }
            let words: Vec<&str> = directive.arguments.iter().map(|span| source.text(*span)).collect();
            let target = words.get(1).and_then(|word| self.find(unit, word));
            let (Some(alias), Some(name @ Name::Function(_))) = (words.first(), target) else {
                let message = "an alias names two functions".to_owned();
                return Err(Error::Invalid { place: source.place(directive.span), message });
            };
            let is_static = self.units[unit].contains_key(*alias);
            self.name(unit, is_static, alias, name);
        }
        Ok(())
    }

    fn name(&mut self, unit: usize, is_static: bool, text: &str, name: Name) {
        match is_static {
            true => drop(self.units[unit].insert(text.to_owned(), name)),
            false => drop(self.visible.insert(text.to_owned(), name)),
        }
    }

    fn declare_variable(&mut self, unit: usize, source: &Source, variable: &Variable) -> Result<(), Error> {
        let linked = |word: &str| variable.linkage.iter().any(|span| source.text(*span) == word);
        let is_static = variable.linkage.is_empty();
        for declarator in &variable.declarators {
            let shape = declare::shape(source, variable, declarator)?;
            let text = source.text(declarator.name);
            let name = match source.text(variable.space) {
                ".shared" if linked(".extern") => Name::DynamicShared(shape.stride),
                ".shared" if shape.is_open => Name::DynamicShared(shape.stride),
                ".shared" => {
                    Name::Shared(self.take_shared(source.place(variable.span), &shape)?, shape.stride)
                }
                ".global" | ".const" => match self.declare_global(unit, source, variable, text, &shape)? {
                    Some(name) => name,
                    None => continue,
                },
                space => {
                    let (place, what) = (source.place(variable.span), format!("{space} outside functions"));
                    return Err(Error::Unsupported { place, what });
                }
            };
            self.name(unit, is_static, text, name);
        }
        Ok(())
    }

    pub(super) fn take_shared(&mut self, place: Place, shape: &Shape) -> Result<u32, Error> {
        let start = self.common_shared.next_multiple_of(shape.align);
        self.common_shared = start.saturating_add(shape.bytes);
        check_shared(place, self.common_shared)?;
        Ok(start as u32)
    }

    fn declare_global(
        &mut self,
        unit: usize,
        source: &Source,
        variable: &Variable,
        text: &str,
        shape: &Shape,
    ) -> Result<Option<Name>, Error> {
        let linked = |word: &str| variable.linkage.iter().any(|span| source.text(*span) == word);
        let declares = linked(".extern");
        let known = match self.find(unit, text) {
            Some(Name::Variable(index, _)) => Some(index),
            Some(_) => return Err(Error::Duplicate { name: text.to_owned() }),
            None => None,
        };
        let place = source.place(variable.span);
        if shape.bytes > MOST_GLOBAL {
            return Err(Error::TooLarge { place, what: "a variable", value: shape.bytes, most: MOST_GLOBAL });
        }
        match known {
            Some(_) if declares || linked(".weak") || linked(".common") => Ok(None),
            Some(index) if self.variables[index as usize].is_declared_only() => {
                self.variables[index as usize] = declare::global(source, variable, text, shape);
                Ok(Some(Name::Variable(index, shape.stride)))
            }
            Some(_) => Err(Error::Duplicate { name: text.to_owned() }),
            None => {
                let mut global = declare::global(source, variable, text, shape);
                if declares {
                    global.align = 0;
                }
                self.variables.push(global);
                Ok(Some(Name::Variable(self.variables.len() as u32 - 1, shape.stride)))
            }
        }
    }

    fn initialise(&mut self, unit: usize, source: &Source, variable: &Variable) -> Result<(), Error> {
        for declarator in &variable.declarators {
            let Some(initialiser) = &declarator.initialiser else { continue };
            let Some(Name::Variable(index, _)) = self.find(unit, source.text(declarator.name)) else {
                continue;
            };
            let (initial, addresses) =
                declare::initial(self, unit, source, variable, declarator, initialiser)?;
            self.initial_bytes += initial.len() as u64;
            let global = &mut self.variables[index as usize];
            if initial.len() as u64 > global.bytes {
                let message = "more initial values than elements".to_owned();
                return Err(Error::Invalid { place: source.place(declarator.span), message });
            }
            (global.initial, global.addresses) = (initial, addresses);
        }
        Ok(())
    }

    /// Whether a kernel can get to shared memory that is not its own.
    pub(super) fn reaches_common_shared(&self, kernel: u32) -> bool {
        self.shares.contains(&kernel)
    }

    /// From the functions with shared memory to all that mention them.
    fn find_shares(&mut self) {
        let mut mentioned_by: HashMap<u32, Vec<u32>> = HashMap::new();
        let mut queue = Vec::new();
        for (index, declared) in self.functions.iter().enumerate() {
            let Some((unit, _)) = declared.body else { continue };
            for word in &declared.mentions {
                match self.find(unit, word) {
                    Some(Name::Shared(..)) => queue.push(index as u32),
                    Some(Name::Function(next)) => mentioned_by.entry(next).or_default().push(index as u32),
                    _ if word == ".shared" && !declared.is_kernel => queue.push(index as u32),
                    _ => {}
                }
            }
        }
        while let Some(function) = queue.pop() {
            if self.shares.insert(function) {
                queue.extend(mentioned_by.remove(&function).unwrap_or_default());
            }
        }
    }

    /// All that is not code.
    pub(super) fn finish(self, image: &mut Image) -> Result<(), Error> {
        if let Some(open) = self.variables.iter().find(|variable| variable.is_declared_only()) {
            return Err(Error::Unresolved { name: open.name.clone() });
        }
        self.check_pool()?;
        image.variables = self.variables;
        image.lists = self.lists;
        image.pool = self.pool;
        image.reserved_shared = self.reserved_shared;
        image.pool_addresses = self.addresses;
        Ok(())
    }
}

pub(super) fn check_shared(place: Place, value: u64) -> Result<(), Error> {
    if value <= MOST_SHARED {
        return Ok(());
    }
    Err(Error::TooLarge { place, what: "shared memory", value, most: MOST_SHARED })
}

impl isa::GlobalVariable {
    /// An `.extern` that nobody has defined yet has no alignment.
    fn is_declared_only(&self) -> bool {
        self.align == 0
    }
}

/// The words in a body that could be names of functions or variables, and whether it declares shared memory.
fn words(text: &str) -> HashSet<&str> {
    let is_word = |token: &ptx::Token| matches!(token.kind, ptx::TokenKind::Word | ptx::TokenKind::Dotted);
    let spans = ptx::tokens(text).filter(is_word).map(|token| &text[token.span.range()]);
    spans.filter(|word| !word.starts_with('%') && (!word.starts_with('.') || *word == ".shared")).collect()
}
