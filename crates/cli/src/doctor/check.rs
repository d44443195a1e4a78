//! One line of the doctor's list.

use std::fmt::Display;

use crate::json::Json;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Status {
    Ok,
    /// Worth knowing, and no obstacle.
    Note,
    /// Something may not work as expected.
    Warning,
    /// Something does not work.
    Failed,
}

impl Status {
    fn word(self) -> &'static str {
        match self {
            Status::Ok => "ok",
            Status::Note => "note",
            Status::Warning => "warning",
            Status::Failed => "failed",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    pub name: &'static str,
    pub status: Status,
    pub found: String,
    /// What to do, unless all is well.
    pub fix: Option<String>,
}

impl Check {
    pub fn ok(name: &'static str, found: impl Into<String>) -> Check {
        Check { name, status: Status::Ok, found: found.into(), fix: None }
    }

    pub fn new(
        name: &'static str,
        status: Status,
        found: impl Into<String>,
        fix: impl Into<String>,
    ) -> Check {
        Check { name, status, found: found.into(), fix: Some(fix.into()) }
    }

    /// From a message of ours, which says what is wrong and, after a semicolon, how to mend it.
    pub fn told(name: &'static str, status: Status, message: &dyn Display) -> Check {
        let message = message.to_string();
        match message.split_once("; ") {
            Some((found, fix)) => Check::new(name, status, found, fix),
            None => Check { name, status, found: message, fix: None },
        }
    }
}

pub fn well(checks: &[Check], strict: bool) -> bool {
    let limit = if strict { Status::Warning } else { Status::Failed };
    checks.iter().all(|check| check.status < limit)
}

pub fn text(checks: &[Check]) -> String {
    let mut page = String::new();
    for Check { name, status, found, fix } in checks {
        page.push_str(&format!("{:8} {name:14}  {found}\n", status.word()));
        if let Some(fix) = fix {
            page.push_str(&format!("{:8} {:14}  fix: {fix}\n", "", ""));
        }
    }
    let count = |status| checks.iter().filter(|check| check.status == status).count();
    let plural = |count: usize, one: &str| format!("{count} {one}{}", if count == 1 { "" } else { "s" });
    page.push_str(&format!(
        "\n{}, {} failed, {}\n",
        plural(checks.len(), "check"),
        count(Status::Failed),
        plural(count(Status::Warning), "warning")
    ));
    page
}

pub fn print_json(checks: &[Check], strict: bool) {
    let check = |check: &Check| {
        Json::object([
            ("name", check.name.into()),
            ("status", check.status.word().into()),
            ("found", check.found.as_str().into()),
            ("fix", check.fix.as_deref().into()),
        ])
    };
    let list = Json::list(checks.iter().map(check));
    println!("{}", Json::object([("ok", well(checks, strict).into()), ("checks", list)]));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warnings_count_only_where_it_is_strict() {
        let list = |status| [Check::ok("a", "fine"), Check::new("b", status, "x", "y")];
        assert!(well(&list(Status::Note), true));
        assert!(well(&list(Status::Warning), false) && !well(&list(Status::Warning), true));
        assert!(!well(&list(Status::Failed), false));
    }

    #[test]
    fn a_message_is_parted_into_what_and_how() {
        let check = Check::told("a", Status::Failed, &"it is gone; bring it back; then try again");
        assert_eq!(
            (check.found.as_str(), check.fix.as_deref()),
            ("it is gone", Some("bring it back; then try again"))
        );
        assert_eq!(Check::told("a", Status::Failed, &"it is gone").fix, None);
    }
}
