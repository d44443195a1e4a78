//! Which tenants there are, and what admins have changed about them: for as long as they are here, for a while longer, and for the
//! next daemon.
//!
//! A tenant registers with what its environment says, and the daemon puts what was changed over it. A tenant whose last process has
//! gone may be about to come back: after a restart of the daemon no command attends for it, and somebody hostile may have taken
//! its only seat. So what was changed is remembered for some time. A daemon that is started anew would not know, so it is kept
//! in a file in the daemon's own folder. The file is small, nobody else can read or write it, and one that makes no sense is as good
//! as none: then tenants have what they asked for.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use model::{Bytes, Nanos};
use serde::{Deserialize, Serialize};

use super::{Registry, Tenant, TenantKey};
use crate::request::Wish;

const NAME: &str = "changes.json";
/// More tenants with changes than this are not remembered.
const MOST: usize = 1_024;
/// So many bytes are enough for all of them.
const LONGEST: u64 = 1 << 18;
/// For so long after a daemon began its predecessor's tenants may come back; their numbers are not used again.
const AWAITED_FOR: Nanos = Nanos::from_millis(600_000);
/// For so long a tenant may come back that has gone while this daemon was there.
const KEPT_FOR: Nanos = Nanos::from_millis(60_000);

/// What was changed about a tenant that is not here, and until when it is waited for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Kept {
    wish: Wish,
    until: Nanos,
}

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
        let until = self.began + AWAITED_FOR;
        self.remembered = wishes.into_iter().map(|(key, wish)| (key, Kept { wish, until })).collect();
    }

    /// Counts a member of a tenant, who keeps what is known about it.
    pub fn expect(&mut self, user: u32, claimed: u64) -> TenantKey {
        let key = TenantKey { user, claimed };
        if !self.tenants.contains_key(&key) {
            self.await_no_longer(board::now());
            let number = self.free_number(claimed);
            let kept = self.remembered.remove(&key);
            let (wish, awaited) = kept.map_or_else(Default::default, |kept| (kept.wish, kept.until));
            self.tenants.insert(key, Tenant { number, wish, members: 0, awaited });
        }
        self.tenants.get_mut(&key).expect("it is there or was just put there").members += 1;
        key
    }

    /// A tenant has a member less. What was changed about it is remembered when that was the last, and not for less long than
    /// it was before.
    pub fn forget(&mut self, key: TenantKey, now: Nanos) {
        let Some(tenant) = self.tenants.get_mut(&key) else { return };
        tenant.members -= 1;
        if tenant.members > 0 {
            return;
        }
        let (wish, until) = (tenant.wish, tenant.awaited.max(now + KEPT_FOR));
        self.tenants.remove(&key);
        if wish == Wish::default() {
            return;
        }
        self.remembered.insert(key, Kept { wish, until });
        if self.remembered.len() > MOST {
            let first = self.remembered.iter().min_by_key(|(_, kept)| kept.until).map(|(key, _)| *key);
            first.map(|key| self.remembered.remove(&key));
            self.changed = true;
        }
    }

    /// Forgets what was changed about tenants that have not come back in time.
    fn await_no_longer(&mut self, now: Nanos) {
        let before = self.remembered.len();
        self.remembered.retain(|_, kept| kept.until > now);
        self.changed |= self.remembered.len() < before;
    }

    /// When something may next be forgotten.
    pub fn next_forgetting(&self) -> Option<Nanos> {
        self.remembered.values().map(|kept| kept.until).min()
    }

    /// What is to be written down, if that has changed since it was last asked for: of those who are here, and then of others, as
    /// many as there is room for. Who comes and goes changes nothing of it.
    pub fn take_changes(&mut self, now: Nanos) -> Option<BTreeMap<TenantKey, Wish>> {
        self.await_no_longer(now);
        std::mem::take(&mut self.changed).then(|| {
            let here = self.tenants.iter().map(|(key, tenant)| (*key, tenant.wish));
            let here = here.filter(|(_, wish)| *wish != Wish::default());
            here.chain(self.remembered.iter().map(|(key, kept)| (*key, kept.wish))).take(MOST).collect()
        })
    }

    /// The number a tenant claims, or another one where it is taken.
    fn free_number(&self, claimed: u64) -> u64 {
        let taken = |number: u64| self.tenants.values().any(|tenant| tenant.number == number);
        let mut number = claimed;
        while number == 0 || taken(number) {
            // Any walk that meets all numbers does.
            number = number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        }
        number
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{peer, process, registration, registry};
    use super::super::{End, Ticket};
    use super::*;
    use crate::access::SeatedWith;
    use crate::report::State;
    use board::Terms;
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

    #[test]
    fn what_is_known_of_a_tenant_goes_a_while_after_its_last_member() {
        let mut registry = registry(&[]);
        let guest = registry.expect(5, 1);
        let (seat, _) =
            registry.register(&peer(5, 50), &registration(1, "train"), SeatedWith::Everybody).unwrap();
        registry.change("train", Wish { paused: Some(true), ..Wish::default() }).unwrap();
        registry.leave(seat, End::Gone, board::now());
        let (seat, _) =
            registry.register(&peer(5, 51), &registration(1, "train"), SeatedWith::Everybody).unwrap();
        assert_eq!(
            process(&registry, 51).state,
            State::Paused,
            "its first process lives and may start others"
        );
        registry.leave(seat, End::Gone, board::now());
        registry.forget(guest, board::now());
        assert!(registry.tenants.is_empty());
        assert!(registry.next_forgetting().is_some_and(|at| at > board::now()), "it may come back");
        registry.take_changes(board::now() + KEPT_FOR + KEPT_FOR);
        registry.register(&peer(5, 52), &registration(1, "train"), SeatedWith::Everybody).unwrap();
        assert_eq!(process(&registry, 52).state, State::Idle);
        assert_eq!((registry.tenants.len(), registry.next_forgetting()), (1, None));
    }

    #[test]
    fn what_an_admin_changed_outlives_a_seat_and_a_daemon() {
        let mut first = registry(&[]);
        let (ticket, _) =
            first.register(&peer(5, 50), &registration(1, "train"), SeatedWith::Everybody).unwrap();
        assert_eq!(first.take_changes(board::now()), None);
        let wish = Wish { class: Some(Class::Latency), memory: Some(Some(Bytes(1))), ..Wish::default() };
        first.change("train", wish).unwrap();
        // It lost its seat, asks for another with what it wanted in the beginning, and only then lets go of the first.
        let (again, granted) =
            first.register(&peer(5, 50), &registration(1, "train"), SeatedWith::Everybody).unwrap();
        first.leave(ticket, End::Gone, board::now());
        assert_eq!((granted.terms.class, granted.terms.memory), (Class::Latency, Some(Bytes(1))));
        let kept = first.take_changes(board::now()).unwrap();
        let mut second = registry(&[]);
        second.remember(kept.clone());
        let (_, granted) =
            second.register(&peer(5, 50), &registration(1, "train"), SeatedWith::Everybody).unwrap();
        assert_eq!(granted.terms.class, Class::Latency);
        let other =
            second.register(&peer(6, 50), &registration(1, "train"), SeatedWith::Everybody).unwrap().1;
        assert_eq!(other.terms.class, Class::BestEffort, "another user's tenant of that number is another");
        first.leave(again, End::Gone, board::now());
        assert_eq!(
            first.take_changes(board::now()),
            None,
            "its tenant may come back, to this daemon or the next"
        );
        let later = board::now() + KEPT_FOR;
        assert_eq!(first.take_changes(later), Some(BTreeMap::new()), "it is forgotten after its tenant");
        let mut third = registry(&[]);
        third.remember(kept);
        let late = board::now() + Nanos::from_millis(3_600_000);
        assert_eq!(third.take_changes(late), Some(BTreeMap::new()), "nobody came back");
    }

    fn seat(registry: &mut Registry, tenant: u64) -> (Ticket, Terms) {
        let claim = registration(tenant, "train");
        let (ticket, granted) = registry.register(&peer(5, 50), &claim, SeatedWith::Everybody).unwrap();
        (ticket, granted.terms)
    }

    /// A daemon that was started anew knows of no command that attends for its tenants.
    #[test]
    fn a_tenant_that_loses_its_only_seat_for_a_moment_has_what_an_admin_changed() {
        let mut registry = registry(&[]);
        let (ticket, _) = seat(&mut registry, 1);
        registry.change("train", Wish { paused: Some(true), ..Wish::default() }).unwrap();
        let kept = registry.take_changes(board::now()).unwrap();
        registry.leave(ticket, End::Gone, board::now());
        let (_, terms) = seat(&mut registry, 1);
        assert!(terms.paused);
        assert_eq!(registry.take_changes(board::now()), None, "and nothing is written for it");
        assert_eq!(kept.len(), 1);
    }

    #[test]
    fn a_tenant_of_the_daemon_before_is_not_waited_for_less_long_because_it_came_and_went() {
        let mut registry = registry(&[]);
        let wish = Wish { paused: Some(true), ..Wish::default() };
        registry.remember(BTreeMap::from([(TenantKey { user: 5, claimed: 1 }, wish)]));
        let (ticket, _) = seat(&mut registry, 1);
        let now = registry.began;
        registry.leave(ticket, End::Gone, now);
        assert_eq!(registry.take_changes(now + KEPT_FOR + KEPT_FOR), None);
        assert_eq!(registry.next_forgetting(), Some(now + AWAITED_FOR));
    }

    #[test]
    fn no_more_is_kept_of_those_who_have_gone_than_there_is_room_for() {
        let mut registry = registry(&[]);
        let folder = tempfile::tempdir().unwrap();
        let begin = board::now();
        for tenant in 1..=2 * MOST as u64 {
            let (ticket, _) = seat(&mut registry, tenant);
            registry.change("train", Wish { weight: Some(7), ..Wish::default() }).unwrap();
            registry.leave(ticket, End::Gone, begin + Nanos(tenant));
        }
        let (_, terms) = seat(&mut registry, 2 * MOST as u64);
        assert_eq!((terms.weight, registry.remembered.len()), (7, MOST - 1), "the newest are kept");
        assert_eq!(seat(&mut registry, 1).1.weight, 1);
        let changes = registry.take_changes(begin).unwrap();
        write(folder.path(), &changes).unwrap();
        assert!(fs::metadata(folder.path().join(NAME)).unwrap().len() < LONGEST);
        assert_eq!((changes.len(), read(folder.path()).unwrap()), (MOST, changes));
    }
}
