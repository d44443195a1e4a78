//! What may be asked in words: JSON, one request to a message or a line.
//!
//! On the tenants' socket come `attend`, `status` and `configuration`, on the admin socket `set`, `pause`, `resume`, `reload`,
//! `end` and what is only read. A key
//! that is not known is an error, since whoever sends it wants something that would not happen.

use model::{Bytes, Class, Nanos};
use serde::{Deserialize, Serialize};

use crate::report::{Entry, Report};

/// The longest request; a registration is shorter.
pub const LONGEST: usize = 4096;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "verb", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Request {
    /// "I am about to become a tenant with these terms": the daemon stays while the asking process lives.
    Attend {
        tenant: String,
        class: String,
        weight: u32,
        priority: u32,
    },
    Status,
    Set {
        target: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        class: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        weight: Option<u32>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        priority: Option<u32>,
        /// In nanoseconds; nought takes the objective away.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        slo_p99_ns: Option<u64>,
        /// What all its processes may have together; nought takes the limit away.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        memory_limit_bytes: Option<u64>,
    },
    Pause {
        target: String,
    },
    Resume {
        target: String,
    },
    /// What is in force, key by key.
    Configuration,
    /// "Read your configuration again."
    Reload,
    /// "End." Tenants go on, and find the next daemon.
    End {
        /// Only if this daemon would end by itself and has no tenants.
        #[serde(default)]
        if_idle: bool,
    },
}

/// The answer to a request.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    pub ok: bool,
    /// Why not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// To `status`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub report: Option<Report>,
    /// To `attend`: what the registration would be granted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outlook: Option<Outlook>,
    /// To what changes: whom it changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changed: Option<Changed>,
    /// To `configuration`. What no file says is not among it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub configuration: Option<Vec<Entry>>,
    /// To `reload`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reloaded: Option<Reloaded>,
    /// To `end`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<Ended>,
}

/// A daemon that ends.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ended {
    pub pid: u32,
    /// Who goes on without it, in words.
    pub tenants: Vec<String>,
}

/// What came of reading a configuration again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reloaded {
    /// Of what is in force now.
    pub config_generation: u64,
    /// Whether that is another one than before.
    pub changed: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outlook {
    pub class: String,
    pub weight: u32,
    pub priority: u32,
    pub lowered: bool,
    /// How it will share a GPU.
    #[serde(default)]
    pub domain: String,
    /// Where it finds MPS, in the shared domain.
    #[serde(default)]
    pub mps_pipes: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Changed {
    pub tenant: String,
    pub name: String,
    pub processes: Vec<u32>,
    /// What was in force before and what is now. Older daemons do not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<GrantedTerms>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<GrantedTerms>,
}

/// What a tenant has, in words.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GrantedTerms {
    pub class: String,
    pub weight: u32,
    pub priority: u32,
    pub slo_p99_ns: Option<u64>,
    pub memory_limit_bytes: Option<u64>,
    pub paused: bool,
}

impl From<&board::Terms> for GrantedTerms {
    fn from(terms: &board::Terms) -> GrantedTerms {
        GrantedTerms {
            class: terms.class.to_string(),
            weight: terms.weight,
            priority: terms.priority,
            slo_p99_ns: terms.slo.map(|slo| slo.0),
            memory_limit_bytes: terms.memory.map(|limit| limit.0),
            paused: terms.paused,
        }
    }
}

impl Answer {
    pub fn error(message: impl Into<String>) -> Answer {
        Answer { error: Some(message.into()), ..Answer::default() }
    }

    pub fn report(report: Report) -> Answer {
        Answer { ok: true, report: Some(report), ..Answer::default() }
    }

    pub fn outlook(outlook: Outlook) -> Answer {
        Answer { ok: true, outlook: Some(outlook), ..Answer::default() }
    }

    pub fn changed(changed: Changed) -> Answer {
        Answer { ok: true, changed: Some(changed), ..Answer::default() }
    }

    pub fn configuration(entries: Vec<Entry>) -> Answer {
        Answer { ok: true, configuration: Some(entries), ..Answer::default() }
    }

    pub fn reloaded(reloaded: Reloaded) -> Answer {
        Answer { ok: true, reloaded: Some(reloaded), ..Answer::default() }
    }

    pub fn ended(ended: Ended) -> Answer {
        Answer { ok: true, ended: Some(ended), ..Answer::default() }
    }

    /// As one line.
    pub fn line(&self) -> Vec<u8> {
        let mut line = serde_json::to_vec(self).expect("strings and integers can be written");
        line.push(b'\n');
        line
    }
}

/// A change to a tenant, found to make sense.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wish {
    pub class: Option<Class>,
    pub weight: Option<u32>,
    pub priority: Option<u32>,
    /// The inner one is what it becomes.
    pub slo: Option<Option<Nanos>>,
    pub memory: Option<Option<Bytes>>,
    pub paused: Option<bool>,
}

impl Request {
    pub fn parse(bytes: &[u8]) -> Result<Request, String> {
        serde_json::from_slice(bytes).map_err(|error| format!("the request is not understood: {error}"))
    }

    pub fn line(&self) -> Vec<u8> {
        let mut line = serde_json::to_vec(self).expect("strings and integers can be written");
        line.push(b'\n');
        line
    }

    /// Whom a request would change, and how; `None` for one that changes nothing.
    pub fn wish(&self) -> Option<Result<(&str, Wish), String>> {
        match self {
            Request::Attend { .. } | Request::Status | Request::Configuration => None,
            Request::Reload | Request::End { .. } => None,
            Request::Pause { target } => Some(Ok((target, Wish { paused: Some(true), ..Wish::default() }))),
            Request::Resume { target } => Some(Ok((target, Wish { paused: Some(false), ..Wish::default() }))),
            Request::Set { target, class, weight, priority, slo_p99_ns, memory_limit_bytes } => {
                let amounts = (*slo_p99_ns, *memory_limit_bytes);
                let wish = wish(class.as_deref(), *weight, *priority, amounts);
                Some(wish.map(|wish| (target.as_str(), wish)))
            }
        }
    }
}

fn wish(
    class: Option<&str>,
    weight: Option<u32>,
    priority: Option<u32>,
    (slo, memory): (Option<u64>, Option<u64>),
) -> Result<Wish, String> {
    let class: Option<Class> = class.map(str::parse).transpose().map_err(|error| format!("{error}"))?;
    if weight.is_some_and(|weight| !(1..=board::HIGHEST_WEIGHT).contains(&weight)) {
        return Err(format!("a weight is a number from 1 to {}", board::HIGHEST_WEIGHT));
    }
    if priority.is_some_and(|priority| priority > board::HIGHEST_PRIORITY) {
        return Err(format!("a priority is a number from 0 to {}", board::HIGHEST_PRIORITY));
    }
    let slo = slo.map(|slo| (slo != 0).then_some(Nanos(slo)));
    let memory = memory.map(|memory| (memory != 0).then_some(Bytes(memory)));
    let wish = Wish { class, weight, priority, slo, memory, paused: None };
    if wish == Wish::default() {
        return Err("nothing is asked to be changed".to_owned());
    }
    Ok(wish)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_read_as_they_are_written() {
        let requests = [
            Request::Status,
            Request::End { if_idle: true },
            Request::Pause { target: "a \"b\"\n".to_owned() },
            Request::Set {
                target: "7".to_owned(),
                class: Some("latency".to_owned()),
                weight: None,
                priority: Some(3),
                slo_p99_ns: Some(0),
                memory_limit_bytes: Some(1 << 30),
            },
        ];
        for request in requests {
            let line = request.line();
            assert_eq!(line.iter().filter(|&&byte| byte == b'\n').count(), 1);
            assert_eq!(Request::parse(&line), Ok(request));
        }
        assert_eq!(Request::parse(b"{\"verb\":\"status\"}"), Ok(Request::Status));
    }

    #[test]
    fn what_is_not_understood_is_said() {
        for wrong in ["", "{", "[]", "{\"verb\":\"dance\"}", "{\"verb\":\"pause\",\"target\":\"a\",\"b\":1}"]
        {
            assert!(Request::parse(wrong.as_bytes()).is_err(), "{wrong}");
        }
    }

    #[test]
    fn wishes_are_checked() {
        let set = |class: Option<&str>, weight, priority| wish(class, weight, priority, (None, None));
        assert_eq!(set(Some("latency"), None, None).unwrap().class, Some(Class::Latency));
        assert!(set(Some("fast"), None, None).unwrap_err().contains("best-effort"));
        assert!(set(None, Some(0), None).is_err() && set(None, Some(1001), None).is_err());
        assert!(set(None, None, Some(10)).is_err());
        assert!(set(None, None, None).unwrap_err().contains("nothing"));
        assert_eq!(wish(None, None, None, (Some(0), None)).unwrap().slo, Some(None));
        assert_eq!(wish(None, None, None, (None, Some(0))).unwrap().memory, Some(None));
        assert_eq!(wish(None, None, None, (None, Some(9))).unwrap().memory, Some(Some(Bytes(9))));
    }
}
