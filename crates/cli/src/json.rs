//! JSON, as much of it as is printed here.

use std::fmt::{self, Display, Formatter, Write as _};

/// A value. Objects keep the order in which they were made, so that the same facts give the same text.
#[derive(Clone, Debug, PartialEq)]
pub enum Json {
    Null,
    Bool(bool),
    Number(i128),
    /// With three places; what is no number is nothing.
    Real(f64),
    Text(String),
    List(Vec<Json>),
    Object(Vec<(String, Json)>),
}

impl Json {
    pub fn object<const N: usize>(members: [(&str, Json); N]) -> Json {
        Json::Object(members.map(|(key, value)| (key.to_owned(), value)).into())
    }

    /// An object with more members.
    pub fn and<const N: usize>(self, more: [(&str, Json); N]) -> Json {
        let Json::Object(mut members) = self else { return self };
        members.extend(more.map(|(key, value)| (key.to_owned(), value)));
        Json::Object(members)
    }

    pub fn list(items: impl IntoIterator<Item = impl Into<Json>>) -> Json {
        Json::List(items.into_iter().map(Into::into).collect())
    }
}

impl Display for Json {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Json::Null => out.write_str("null"),
            Json::Bool(truth) => write!(out, "{truth}"),
            Json::Number(number) => write!(out, "{number}"),
            Json::Real(number) if number.is_finite() => write!(out, "{}", (number * 1e3).round() / 1e3),
            Json::Real(_) => out.write_str("null"),
            Json::Text(text) => quote(out, text),
            Json::List(items) => {
                let write = |out: &mut Formatter<'_>, item: &Json| write!(out, "{item}");
                between(out, ['[', ']'], items, write)
            }
            Json::Object(members) => between(out, ['{', '}'], members, |out, (key, value)| {
                quote(out, key)?;
                write!(out, ":{value}")
            }),
        }
    }
}

fn between<T>(
    out: &mut Formatter<'_>,
    [open, close]: [char; 2],
    items: &[T],
    write: impl Fn(&mut Formatter<'_>, &T) -> fmt::Result,
) -> fmt::Result {
    out.write_char(open)?;
    for (index, item) in items.iter().enumerate() {
        if index > 0 {
            out.write_char(',')?;
        }
        write(out, item)?;
    }
    out.write_char(close)
}

fn quote(out: &mut Formatter<'_>, text: &str) -> fmt::Result {
    out.write_char('"')?;
    for character in text.chars() {
        match character {
            '"' | '\\' => write!(out, "\\{character}")?,
            '\n' => out.write_str("\\n")?,
            control if control < ' ' => write!(out, "\\u{:04x}", u32::from(control))?,
            other => out.write_char(other)?,
        }
    }
    out.write_char('"')
}

macro_rules! from {
    ($($type:ty => $make:expr),* $(,)?) => {
        $(impl From<$type> for Json {
            fn from(value: $type) -> Json {
                $make(value)
            }
        })*
    };
}

from! {
    bool => Json::Bool,
    u64 => |number| Json::Number(i128::from(number)),
    u32 => |number| Json::Number(i128::from(number)),
    i32 => |number| Json::Number(i128::from(number)),
    String => Json::Text,
    &str => |text: &str| Json::Text(text.to_owned()),
}

impl<T: Into<Json>> From<Option<T>> for Json {
    fn from(value: Option<T>) -> Json {
        value.map_or(Json::Null, Into::into)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_written_as_json_wants_them() {
        let value = Json::object([
            ("text", "a \"b\" \\ \n \u{1} ü".into()),
            ("list", Json::list([1_u64, u64::MAX])),
            ("none", Json::from(None::<bool>)),
            ("empty", Json::Object(Vec::new())),
            ("reals", Json::List([1.23456, 2.0, f64::INFINITY].map(Json::Real).into())),
        ]);
        let wanted = r#"{"text":"a \"b\" \\ \n \u0001 ü","list":[1,18446744073709551615],"none":null,"empty":{},"reals":[1.235,2,null]}"#;
        assert_eq!(value.to_string(), wanted);
    }
}
