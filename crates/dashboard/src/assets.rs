//! The files of the page.

use web::Response;

/// Nothing from elsewhere, nothing inline, nothing that text could turn into.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'";

const HTML: &str = "text/html; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";
const JS: &str = "text/javascript; charset=utf-8";
const SVG: &str = "image/svg+xml";

macro_rules! files {
    ($($path:literal $kind:ident $file:literal)*) => {
        &[$(($path, $kind, include_str!(concat!("../page/", $file)))),*]
    };
}

/// Under which path, of which type, and its text.
static FILES: &[(&str, &str, &str)] = files! {
    "/" HTML "index.html"
    "/style.css" CSS "style.css"
    "/icon.svg" SVG "icon.svg"
    "/main.js" JS "main.js"
    "/state.js" JS "state.js"
    "/draw.js" JS "draw.js"
    "/words.js" JS "words.js"
    "/table.js" JS "table.js"
    "/overview.js" JS "overview.js"
    "/timeline.js" JS "timeline.js"
    "/tenant.js" JS "tenant.js"
    "/curve.js" JS "curve.js"
    "/lists.js" JS "lists.js"
    "/change.js" JS "change.js"
};

/// One of the files, if there is one at this path.
pub fn find(path: &str) -> Option<Response> {
    let (_, kind, text) = FILES.iter().find(|(at, ..)| *at == path)?;
    let response = Response::new(kind, *text).with("Content-Security-Policy", POLICY);
    Some(response.with("Referrer-Policy", "no-referrer").with("Cross-Origin-Opener-Policy", "same-origin"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_names_nothing_but_its_own_files() {
        for (path, _, text) in FILES {
            assert!(!text.contains("https://") && !text.contains("innerHTML"), "{path}");
            let mentioned =
                text.split(['"', '\'']).filter(|word| word.ends_with(".js") || word.ends_with(".css"));
            for word in mentioned {
                let named = format!("/{}", word.trim_start_matches(['.', '/']));
                assert!(find(&named).is_some(), "{path} wants {word}");
            }
        }
    }

    #[test]
    fn a_file_comes_with_its_policy() {
        let head = find("/").unwrap().head();
        assert!(head.contains("Content-Security-Policy: default-src 'none'"), "{head}");
        assert!(find("/nothing").is_none());
    }
}
