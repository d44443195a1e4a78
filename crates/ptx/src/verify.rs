//! The invariant that printing and edits rest on, checked from outside.
//!
//! Statements stand in the order of the text, inside the braces they belong to, and between two of them there
//! is nothing but trivia and semicolons. Inside a statement the leaves are in order too. Tests and fuzzers ask
//! for this after every parse; nothing else needs to.

use crate::{Body, Function, Item, Module, Operand, Span, Statement, TokenKind, tokens};

/// Where a tree does not fit its text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Misfit {
    #[error("{0:?} is not a place in the text")]
    NoPlace(Span),
    #[error("{inner:?} should lie inside {outer:?}")]
    Outside { inner: Span, outer: Span },
    #[error("{second:?} should come after {first:?}")]
    Disorder { first: Span, second: Span },
    #[error("{0:?} belongs to no statement")]
    Uncovered(Span),
}

impl Module {
    /// Checks that the tree covers the text as described above.
    pub fn verify(&self) -> Result<(), Misfit> {
        let end = u32::try_from(self.source.len()).unwrap_or(u32::MAX);
        let whole = Span { start: 0, end };
        let items: Vec<Span> = self.items.iter().map(Item::span).collect();
        self.covers(whole, &items)?;
        for item in &self.items {
            if let Item::Function(function) = item {
                self.verify_function(function)?;
            }
        }
        self.verify_leaves(&items)
    }

    fn verify_function(&self, function: &Function) -> Result<(), Misfit> {
        let parts = [&function.returns, &function.parameters].into_iter().flatten();
        for variable in parts {
            inside(variable.span, function.span)?;
        }
        if let Some(span) = function.parameter_list {
            inside(span, function.span)?;
        }
        match &function.body {
            Some(body) => {
                inside(body.span, function.span)?;
                self.verify_body(body)
            }
            None => Ok(()),
        }
    }

    fn verify_body(&self, body: &Body) -> Result<(), Misfit> {
        let text = self.source.get(body.span.range());
        let text = text.ok_or(Misfit::NoPlace(body.span))?;
        let statements: Vec<Span> = body.statements.iter().map(Statement::span).collect();
        // A body that is never closed ends with its last statement, which may itself end with a brace.
        let full = statements.last().is_some_and(|last| last.end == body.span.end);
        let closed = !full && text.len() > 1 && text.ends_with('}');
        let inner = Span { start: body.span.start + 1, end: body.span.end - u32::from(closed) };
        self.covers(inner, &statements)?;
        for statement in &body.statements {
            match statement {
                Statement::Scope(scope) => self.verify_body(scope)?,
                Statement::Instruction(instruction) => {
                    for operand in &instruction.operands {
                        verify_operand(operand, instruction.span)?;
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// `parts` lie in `whole`, in order, with only trivia and semicolons around them.
    fn covers(&self, whole: Span, parts: &[Span]) -> Result<(), Misfit> {
        let mut before = Span { start: whole.start, end: whole.start };
        for part in parts {
            inside(*part, whole)?;
            self.gap(before, *part)?;
            before = *part;
        }
        let end = Span { start: whole.end, end: whole.end };
        self.gap(before, end)
    }

    fn gap(&self, first: Span, second: Span) -> Result<(), Misfit> {
        if second.start < first.end {
            return Err(Misfit::Disorder { first, second });
        }
        let gap = Span { start: first.end, end: second.start };
        let text = self.source.get(gap.range()).ok_or(Misfit::NoPlace(gap))?;
        let idle = |kind: TokenKind| kind.is_trivia() || kind == TokenKind::Semicolon;
        match tokens(text).all(|token| idle(token.kind)) {
            true => Ok(()),
            false => Err(Misfit::Uncovered(gap)),
        }
    }

    /// Leaves are in order, and none crosses the border of an item.
    fn verify_leaves(&self, items: &[Span]) -> Result<(), Misfit> {
        let mut first = Span { start: 0, end: 0 };
        let mut items = items.iter();
        let mut item = first;
        for leaf in self.leaves() {
            let second = leaf.span;
            if self.source.get(second.range()).is_none() {
                return Err(Misfit::NoPlace(second));
            }
            if second.start < first.end {
                return Err(Misfit::Disorder { first, second });
            }
            while second.end > item.end {
                item = *items.next().ok_or(Misfit::Uncovered(second))?;
            }
            inside(second, item)?;
            first = second;
        }
        Ok(())
    }
}

fn verify_operand(operand: &Operand, outer: Span) -> Result<(), Misfit> {
    let span = operand.span();
    inside(span, outer)?;
    match operand {
        Operand::Address { base, rest, .. } => {
            verify_operand(base, span)?;
            rest.iter().try_for_each(|part| verify_operand(part, span))
        }
        Operand::Vector { elements, .. } | Operand::List { elements, .. } => {
            elements.iter().try_for_each(|element| verify_operand(element, span))
        }
        Operand::Apply { argument, .. } => verify_operand(argument, span),
        _ => Ok(()),
    }
}

fn inside(inner: Span, outer: Span) -> Result<(), Misfit> {
    let fits = outer.start <= inner.start && inner.start <= inner.end && inner.end <= outer.end;
    match fits {
        true => Ok(()),
        false => Err(Misfit::Outside { inner, outer }),
    }
}
