//! Any text: nothing is lost, the tree covers it, errors are few, and edits land where they should.
#![no_main]

use libfuzzer_sys::fuzz_target;
use ptx::{Edits, Lines, MAX_ERRORS, parse, tokens};

fuzz_target!(|data: &[u8]| {
    let text = String::from_utf8_lossy(data);
    let mut end = 0;
    for token in tokens(&text) {
        assert_eq!(token.span.start, end, "tokens leave no gap");
        assert!(token.span.end > end, "tokens are not empty");
        end = token.span.end;
    }
    assert_eq!(end as usize, text.len());

    let parse = parse(&*text);
    assert_eq!(parse.module.print(), text);
    parse.module.verify().expect("the tree covers the text");
    assert!(parse.errors.len() <= MAX_ERRORS);
    let lines = Lines::new(&text);
    for error in &parse.errors {
        let place = lines.line_column(error.span.start);
        assert_eq!(place, (error.line, error.column));
    }
    edited(&parse);
});

/// A comment after each opening brace changes nothing.
fn edited(before: &ptx::Parse) {
    let mut edits = Edits::new();
    let mut bodies = 0;
    for body in before.module.functions().filter_map(|f| f.body.as_ref()) {
        edits.prologue(body, "/* prologue */");
        bodies += 1;
    }
    let text = edits.apply(&before.module).expect("no two bodies overlap");
    let inserted = bodies * "/* prologue */".len();
    assert_eq!(text.len(), before.module.source.len() + inserted);

    let after = parse(text);
    assert_eq!(after.module.items.len(), before.module.items.len());
    assert_eq!(after.errors.len(), before.errors.len());
}
