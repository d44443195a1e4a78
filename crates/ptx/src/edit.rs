//! Changes to a module's text.
//!
//! A pass reads the tree, writes down what to put where, and applies all of it at once. Spans always mean the
//! text as it was parsed, so the order in which edits are collected does not matter, except that insertions at
//! one place keep theirs.
//!
//! ```
//! let text = "\
//! .version 9.0
//! .target sm_90
//! .visible .entry scale(.param .u64 data) // by two
//! {
//!     ret;
//! }
//! ";
//! let module = ptx::parse(text).module;
//! let scale = module.function("scale").expect("it is there");
//!
//! let mut edits = ptx::Edits::new();
//! edits.add_parameter(scale, ".param .u64 control");
//! edits.prologue(scale.body.as_ref().expect("an entry has one"), "\n    // prologue");
//! edits.rename(&module, "scale", "scale_guarded");
//! assert_eq!(
//!     edits.apply(&module).expect("the edits do not overlap"),
//!     "\
//! .version 9.0
//! .target sm_90
//! .visible .entry scale_guarded(.param .u64 data, .param .u64 control) // by two
//! {
//!     // prologue
//!     ret;
//! }
//! "
//! );
//! ```

use crate::walk::Role;
use crate::{Body, Function, Module, Span, TokenKind, tokens};

/// Edits to one module, collected to be applied together.
#[derive(Clone, Debug, Default)]
pub struct Edits {
    edits: Vec<Edit>,
}

#[derive(Clone, Debug)]
struct Edit {
    span: Span,
    text: String,
}

/// Why edits cannot be applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EditError {
    #[error("two edits want bytes {}..{} and {}..{}", first.start, first.end, second.start, second.end)]
    Overlap { first: Span, second: Span },
    #[error("bytes {}..{} are no piece of the text", .0.start, .0.end)]
    NoPlace(Span),
}

impl Edits {
    pub fn new() -> Edits {
        Edits::default()
    }

    pub fn is_empty(&self) -> bool {
        self.edits.is_empty()
    }

    /// Puts `text` where `span` is now.
    pub fn replace(&mut self, span: Span, text: impl Into<String>) -> &mut Self {
        let text = text.into();
        self.edits.push(Edit { span, text });
        self
    }

    pub fn delete(&mut self, span: Span) -> &mut Self {
        self.replace(span, "")
    }

    /// Puts `text` before the byte at `offset`.
    pub fn insert(&mut self, offset: u32, text: impl Into<String>) -> &mut Self {
        let (start, end) = (offset, offset);
        self.replace(Span { start, end }, text)
    }

    pub fn before(&mut self, span: Span, text: impl Into<String>) -> &mut Self {
        self.insert(span.start, text)
    }

    pub fn after(&mut self, span: Span, text: impl Into<String>) -> &mut Self {
        self.insert(span.end, text)
    }

    /// Puts `text` right after the opening brace.
    pub fn prologue(&mut self, body: &Body, text: impl Into<String>) -> &mut Self {
        self.insert(body.span.start + 1, text)
    }

    /// Adds a last parameter, as `.param .u64 control`.
    pub fn add_parameter(&mut self, function: &Function, parameter: &str) -> &mut Self {
        match (function.parameters.last(), function.parameter_list) {
            (Some(last), _) => self.after(last.span, format!(", {parameter}")),
            (None, Some(list)) => self.insert(list.start + 1, parameter),
            (None, None) => self.after(function.name, format!("({parameter})")),
        }
    }

    /// Gives a function, variable, register or label another name wherever it is declared or used, and says in
    /// how many places. Opcodes and modifiers that happen to read the same stay. That `new` is not taken is the
    /// caller's to know.
    pub fn rename(&mut self, module: &Module, old: &str, new: &str) -> usize {
        let before = self.edits.len();
        for leaf in module.leaves() {
            match leaf.role {
                Role::Syntax => {}
                Role::Name => self.rename_name(leaf.span, module.text(leaf.span), old, new),
                Role::Text => self.rename_words(leaf.span, module.text(leaf.span), old, new),
            }
        }
        self.edits.len() - before
    }

    /// A name may carry a selector, as `%v.x`.
    fn rename_name(&mut self, span: Span, text: &str, old: &str, new: &str) {
        let Some(selector) = text.strip_prefix(old) else {
            return;
        };
        if selector.is_empty() || selector.starts_with('.') {
            let shorter = u32::try_from(selector.len()).expect("a span is 32 bits");
            let end = span.end - shorter;
            self.replace(Span { end, ..span }, new);
        }
    }

    /// Arguments of directives are kept whole; the words in them may be names.
    fn rename_words(&mut self, span: Span, text: &str, old: &str, new: &str) {
        for token in tokens(text) {
            if token.kind == TokenKind::Word && &text[token.span.range()] == old {
                let place = Span { start: span.start + token.span.start, end: span.start + token.span.end };
                self.replace(place, new);
            }
        }
    }

    /// The module's text with all edits made. Untouched text is the same byte for byte.
    pub fn apply(&self, module: &Module) -> Result<String, EditError> {
        let mut edits: Vec<&Edit> = self.edits.iter().collect();
        // Stable, so that insertions at one place keep their order, and come before what replaces that place.
        edits.sort_by_key(|edit| (edit.span.start, edit.span.end));
        let source = &module.source;
        let mut text = String::with_capacity(source.len());
        let mut done = Span { start: 0, end: 0 };
        for edit in edits {
            if source.get(edit.span.range()).is_none() {
                return Err(EditError::NoPlace(edit.span));
            }
            if edit.span.start < done.end {
                let (first, second) = (done, edit.span);
                return Err(EditError::Overlap { first, second });
            }
            text.push_str(&source[done.range().end..edit.span.range().start]);
            text.push_str(&edit.text);
            done = edit.span;
        }
        text.push_str(&source[done.range().end..]);
        Ok(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse;

    fn span(start: u32, end: u32) -> Span {
        Span { start, end }
    }

    #[test]
    fn edits_meet_but_do_not_overlap() {
        let module = parse("abcdef").module;
        let mut edits = Edits::new();
        edits.replace(span(2, 4), "X").insert(4, "1").insert(4, "2").insert(2, "0").delete(span(5, 6));
        assert_eq!(edits.apply(&module).as_deref(), Ok("ab0X12e"));

        edits.insert(3, "inside");
        let overlap = EditError::Overlap { first: span(2, 4), second: span(3, 3) };
        assert_eq!(edits.apply(&module), Err(overlap));
    }

    #[test]
    fn edits_stay_in_the_text() {
        let module = parse("aé").module;
        for wrong in [span(0, 9), span(2, 2), span(3, 1)] {
            let mut edits = Edits::new();
            edits.replace(wrong, "");
            assert_eq!(edits.apply(&module), Err(EditError::NoPlace(wrong)));
        }
    }

    #[test]
    fn parameters_are_added_to_any_list() {
        for (before, after) in [
            (".entry a { ret; }", ".entry a(.param .u64 z) { ret; }"),
            (".entry a() { ret; }", ".entry a(.param .u64 z) { ret; }"),
            (".entry a ( .param .u32 x\n) { ret; }", ".entry a ( .param .u32 x, .param .u64 z\n) { ret; }"),
        ] {
            let module = parse(before).module;
            let mut edits = Edits::new();
            edits.add_parameter(module.function("a").expect("declared"), ".param .u64 z");
            assert_eq!(edits.apply(&module).as_deref(), Ok(after));
        }
    }

    #[test]
    fn renaming_leaves_opcodes_and_longer_names_alone() {
        let module = parse(
            ".func add(.reg .u32 %a);\n.alias plus, add;\n.global .u64 t[1] = {add};\n\
             .func b() { add.u32 %r1, %r1, 1; call add, (%add); p: .calltargets add, added; }",
        )
        .module;
        let mut edits = Edits::new();
        assert_eq!(edits.rename(&module, "add", "sum"), 5);
        assert_eq!(
            edits.apply(&module).as_deref(),
            Ok(".func sum(.reg .u32 %a);\n.alias plus, sum;\n.global .u64 t[1] = {sum};\n\
                 .func b() { add.u32 %r1, %r1, 1; call sum, (%add); p: .calltargets sum, added; }")
        );
    }
}
