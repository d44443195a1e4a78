//! What admins have changed about tenants, for the next daemon.
//!
//! A tenant registers with what its environment says, and the daemon puts what was changed over it. A daemon that is started
//! anew would not know, so it is kept in a file in the daemon's own folder. The file is small, nobody else can read or write it,
//! and one that makes no sense is as good as none: then tenants have what they asked for.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use model::{Bytes, Nanos};
use serde::{Deserialize, Serialize};

use super::{Registry, TenantKey};
use crate::request::Wish;

const NAME: &str = "changes.json";
/// More tenants with changes than this are not remembered.
const MOST: usize = 1_024;
/// So many bytes are enough for all of them.
const LONGEST: u64 = 1 << 18;
/// For so long after a daemon began its predecessor's tenants may come back; their numbers are not used again.
const AWAITED_FOR: Nanos = Nanos::from_millis(600_000);

/// One tenant in the file.
#[derive(Debug, Serialize, Deserialize)]
struct KeptChange {
    user: u32,
    tenant: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    class: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    weight: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    priority: Option<u32>,
    /// 0: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    slo_p99_ns: Option<u64>,
    /// 0: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    memory_limit_bytes: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    paused: Option<bool>,
}

impl KeptChange {
    fn new(key: TenantKey, wish: &Wish) -> KeptChange {
        KeptChange {
            user: key.user,
            tenant: key.claimed,
            class: wish.class.map(|class| class.to_string()),
            weight: wish.weight,
            priority: wish.priority,
            slo_p99_ns: wish.slo.map(|slo| slo.map_or(0, |slo| slo.0)),
            memory_limit_bytes: wish.memory.map(|memory| memory.map_or(0, |memory| memory.0)),
            paused: wish.paused,
        }
    }

    fn wish(&self) -> Wish {
        Wish {
            class: self.class.as_ref().and_then(|class| class.parse().ok()),
            weight: self.weight.map(|weight| weight.clamp(1, board::HIGHEST_WEIGHT)),
            priority: self.priority.map(|priority| priority.min(board::HIGHEST_PRIORITY)),
            slo: self.slo_p99_ns.map(|slo| (slo != 0).then_some(Nanos(slo))),
            memory: self.memory_limit_bytes.map(|limit| (limit != 0).then_some(Bytes(limit))),
            paused: self.paused,
        }
    }
}

/// Reads what a daemon in this folder has left.
pub fn read(folder: &Path) -> io::Result<BTreeMap<TenantKey, Wish>> {
    let mut options = OpenOptions::new();
    let file = options.read(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK).open(folder.join(NAME));
    let file = match file {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(BTreeMap::new()),
        other => other?,
    };
    let mut text = Vec::new();
    file.take(LONGEST).read_to_end(&mut text)?;
    let all: Vec<KeptChange> = serde_json::from_slice(&text)?;
    let key = |one: &KeptChange| TenantKey { user: one.user, claimed: one.tenant };
    Ok(all.iter().take(MOST).map(|one| (key(one), one.wish())).collect())
}

/// Leaves what there is for the next daemon; no file, where there is nothing.
pub fn write(folder: &Path, wishes: &BTreeMap<TenantKey, Wish>) -> io::Result<()> {
    let (path, draft) = (folder.join(NAME), folder.join(format!("{NAME}.new")));
    if wishes.is_empty() {
        return match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        };
    }
    let all: Vec<_> = wishes.iter().take(MOST).map(|(key, wish)| KeptChange::new(*key, wish)).collect();
    let _ = fs::remove_file(&draft);
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&draft)?;
    file.write_all(&serde_json::to_vec(&all)?)?;
    fs::rename(&draft, &path)
}

impl Registry {
    /// What the daemon before this one knew, for tenants that come back.
    pub fn remember(&mut self, wishes: BTreeMap<TenantKey, Wish>) {
        self.remembered = wishes;
    }

    /// What is to be written down, if that has changed since it was last asked for.
    pub fn take_changes(&mut self, now: Nanos) -> Option<BTreeMap<TenantKey, Wish>> {
        if now.since(self.began) > AWAITED_FOR && !self.remembered.is_empty() {
            self.remembered.clear();
            self.changed = true;
        }
        std::mem::take(&mut self.changed).then(|| {
            let here = self.tenants.iter().map(|(key, tenant)| (*key, tenant.wish));
            let here = here.filter(|(_, wish)| *wish != Wish::default());
            here.chain(self.remembered.iter().map(|(key, wish)| (*key, *wish))).collect()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::Class;
    use std::os::unix::fs::MetadataExt as _;

    #[test]
    fn what_is_written_is_what_is_read_and_nobody_elses() {
        let folder = tempfile::tempdir().unwrap();
        assert!(read(folder.path()).unwrap().is_empty());
        let key = |claimed| TenantKey { user: 5, claimed };
        let all = Wish {
            class: Some(Class::Latency),
            weight: Some(7),
            priority: Some(9),
            slo: Some(None),
            memory: Some(Some(Bytes(1 << 30))),
            paused: Some(true),
        };
        let wishes =
            BTreeMap::from([(key(u64::MAX), all), (key(1), Wish { weight: Some(2), ..Wish::default() })]);
        write(folder.path(), &wishes).unwrap();
        assert_eq!(read(folder.path()).unwrap(), wishes);
        assert_eq!(fs::metadata(folder.path().join(NAME)).unwrap().mode() & 0o777, 0o600);
        write(folder.path(), &BTreeMap::new()).unwrap();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn nonsense_is_an_error_and_numbers_are_brought_within_what_can_be() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join(NAME), "{").unwrap();
        assert!(read(folder.path()).is_err());
        let odd = r#"[{"user":5,"tenant":1,"class":"odd","weight":0,"priority":99}]"#;
        fs::write(folder.path().join(NAME), odd).unwrap();
        let wish = Wish { weight: Some(1), priority: Some(9), ..Wish::default() };
        assert_eq!(read(folder.path()).unwrap().into_values().collect::<Vec<_>>(), [wish]);
    }
}
