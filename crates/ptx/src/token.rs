//! Tokens: every byte of the text belongs to exactly one, comments and blanks included.

use crate::Span;
use logos::{Lexer, Logos};

/// What a token is. Trivia (the first four) never changes what a program means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Logos)]
pub enum TokenKind {
    #[regex(r"[ \t\r\n\x0B\x0C]+")]
    Whitespace,
    #[regex(r"//[^\n]*", allow_greedy = true)]
    LineComment,
    /// `/* … */`; one that is never closed reaches to the end of the text.
    #[token("/*", block_comment)]
    BlockComment,
    /// `# 1 "file.cu"`: what a C preprocessor leaves behind.
    #[regex(r"#[^\n]*", allow_greedy = true)]
    HashLine,

    /// `%rd1`, `$L__BB0_1`, `_`, `ld`: a name or an opcode without its modifiers.
    #[regex(r"[A-Za-z_$][A-Za-z0-9_$]*")]
    #[regex(r"%[A-Za-z0-9_$]+")]
    Word,
    /// `.global`, `.2d`, `.L2::cache_hint`: a directive, a type or a modifier, with its dot.
    #[regex(r"\.[A-Za-z0-9_$]+(::[A-Za-z0-9_$]+)*")]
    Dotted,
    /// `16`, `0x1FU`, `0f3F800000`, `8.0`, `1e-3`.
    #[regex(r"[0-9][0-9A-Za-z_]*")]
    #[regex(r"[0-9]+\.[0-9]*([eE][+-]?[0-9]+)?")]
    #[regex(r"[0-9]+[eE][+-][0-9]+")]
    Number,
    #[regex(r#""([^"\\\r\n]|\\[^\r\n])*""#)]
    Text,

    #[token("(")]
    OpenParen,
    #[token(")")]
    CloseParen,
    #[token("{")]
    OpenBrace,
    #[token("}")]
    CloseBrace,
    #[token("[")]
    OpenBracket,
    #[token("]")]
    CloseBracket,
    #[token("<")]
    Less,
    #[token(">")]
    Greater,
    #[token(",")]
    Comma,
    #[token(";")]
    Semicolon,
    #[token(":")]
    Colon,
    #[token("=")]
    Equals,
    #[token("@")]
    At,
    #[token("!")]
    Bang,
    #[token("|")]
    Pipe,
    #[token("+")]
    Plus,
    #[token("-")]
    Minus,
    #[token("~")]
    Tilde,
    #[token("?")]
    Question,
    /// The other operators of constant expressions.
    #[token("*")]
    #[token("/")]
    #[token("%")]
    #[token("&")]
    #[token("^")]
    #[token("<<")]
    #[token(">>")]
    #[token("<=")]
    #[token(">=")]
    #[token("==")]
    #[token("!=")]
    #[token("&&")]
    #[token("||")]
    Operator,

    /// Bytes that no PTX token begins with.
    Unknown,
    /// The end of the text; empty, and never among [`tokens`].
    End,
}

impl TokenKind {
    /// Blanks, comments and preprocessor lines.
    pub fn is_trivia(self) -> bool {
        matches!(
            self,
            TokenKind::Whitespace | TokenKind::LineComment | TokenKind::BlockComment | TokenKind::HashLine
        )
    }
}

fn block_comment(lexer: &mut Lexer<'_, TokenKind>) {
    let rest = lexer.remainder();
    lexer.bump(rest.find("*/").map_or(rest.len(), |at| at + 2));
}

/// One token and where it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token {
    pub kind: TokenKind,
    pub span: Span,
}

/// The tokens of a text in order, without a gap between them.
///
/// Spans are 32 bits wide: of a text longer than 4 GiB only what they can reach is cut into tokens.
pub fn tokens(source: &str) -> impl Iterator<Item = Token> + '_ {
    TokenKind::lexer(source).spanned().map_while(|(kind, range)| {
        Some(Token {
            kind: kind.unwrap_or(TokenKind::Unknown),
            span: Span { start: u32::try_from(range.start).ok()?, end: u32::try_from(range.end).ok()? },
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(source: &str) -> Vec<(TokenKind, &str)> {
        tokens(source).map(|token| (token.kind, &source[token.span.range()])).collect()
    }

    #[test]
    fn modifiers_keep_their_joins() {
        assert_eq!(
            kinds("ld.L2::128B.2d"),
            [(TokenKind::Word, "ld"), (TokenKind::Dotted, ".L2::128B"), (TokenKind::Dotted, ".2d"),]
        );
    }

    #[test]
    fn numbers_are_whole() {
        for number in ["0", "0x1FU", "0f3F800000", "8.0", "1.5e-3", "1e+9", "0b101"] {
            assert_eq!(kinds(number), [(TokenKind::Number, number)]);
        }
    }

    #[test]
    fn comments_reach_where_they_say() {
        assert_eq!(
            kinds("/*/a*/b//c\n"),
            [
                (TokenKind::BlockComment, "/*/a*/"),
                (TokenKind::Word, "b"),
                (TokenKind::LineComment, "//c"),
                (TokenKind::Whitespace, "\n"),
            ]
        );
        assert_eq!(kinds("/* open"), [(TokenKind::BlockComment, "/* open")]);
    }

    #[test]
    fn strange_text_is_still_covered() {
        let source = "é\u{0} \"open\n\\ % %r .. 'x'";
        let mut end = 0;
        for token in tokens(source) {
            assert_eq!(token.span.start, end);
            end = token.span.end;
        }
        assert_eq!(end as usize, source.len());
    }
}
