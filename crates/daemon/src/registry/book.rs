//! What tenants have counted, kept for longer than their processes live.
//!
//! A process counts on its seat, and the seat goes with it. Whoever adds up what a tenant has used must not see the sum go back
//! because one of its processes has ended, so what was counted on a seat is entered here: whenever somebody asks, and before
//! the seat is freed. An *account* is a tenant on a GPU, in one class, under its name: one that is started again goes on
//! with its account, and the name is what people know it by. Two users who choose one name have two accounts, and
//! the second of them has its user's number behind the name.
//!
//! Accounts of tenants that have ended are forgotten after a while, and the oldest of them sooner where there are many. What they
//! had counted stays in the sums of their GPU, which is forgotten only where there are too many.
//!
//! Names are free, so one user's must not push out another's: each user has a bounded number of accounts. Where they are all in
//! use, or ended so lately that nobody may have read how, a tenant with a further name is counted in one account that gathers
//! the rest of its user's, `other@UID`. GPUs that nobody has shown are names as well: each user has a bounded number of those that
//! nobody else uses, and none of them takes the place of a GPU that was shown.

use std::collections::{BTreeMap, BTreeSet};

use board::{Figures, Gpu};
use model::{Class, Nanos};

use super::bounds::UNSHOWN_BOARDS_PER_USER;
use crate::access::SeatedWith;

/// For so long an account is kept without a process. A reader that comes once in a few minutes sees how it ended.
const KEPT_FOR: Nanos = Nanos::from_millis(60 * 60 * 1_000);
/// More accounts than this are not kept for those who have ended.
const MOST_ACCOUNTS: usize = 1_024;
/// More than this one user does not have: sixteen tenants on each of eight GPUs.
const MOST_OF_USER: usize = 128;
/// An account that ended is kept for so long at least, before it makes room for another of its user. Every reader has been here
/// meanwhile; and one that keeps all series it has ever seen does not see more than this allows.
const KEPT_AT_LEAST: Nanos = Nanos::from_millis(5 * 60 * 1_000);
/// More GPUs than any machine has: tenants name their GPUs themselves.
const MOST_GPUS: usize = 64;
/// GPUs that one user has named, nobody has shown and nobody else uses: as many as it may sit at.
const MOST_NAMED: usize = UNSHOWN_BOARDS_PER_USER;

/// Whose account it is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Owner {
    pub name: String,
    pub user: u32,
    pub class: Class,
}

impl Owner {
    /// Under whom a user's tenants are counted that have no account of their own.
    fn gathered(&self) -> Owner {
        Owner { name: format!("other@{}", self.user), ..self.clone() }
    }
}

#[derive(Debug)]
pub struct Account {
    /// What it is called outside: no two of a GPU and class are called the same.
    pub label: String,
    pub figures: Box<Figures>,
    processes: usize,
    ended: Nanos,
}

/// What was counted on one GPU.
#[derive(Debug)]
pub struct Page {
    began: Nanos,
    /// Whether somebody has shown the GPU. Otherwise it may be a mere name.
    shown: bool,
    /// By everybody, those who are forgotten too.
    pub all: Box<Figures>,
    /// GPU time of best-effort tenants, those who are forgotten too.
    pub harvested: Nanos,
    pub idle: Nanos,
    /// How often a tenant was counted, or came to be counted, in the account that gathers its user's.
    pub gathered: u64,
    pub accounts: BTreeMap<Owner, Account>,
}

#[derive(Debug, Default)]
pub struct Book {
    pages: BTreeMap<Gpu, Page>,
}

impl Book {
    pub fn pages(&self) -> impl Iterator<Item = (&Gpu, &Page)> {
        self.pages.iter()
    }

    /// A process begins to count for an account: its owner's own, or the one that gathers those of its user. With whom it may be
    /// seated says whether the GPU was shown.
    #[must_use]
    pub fn open(&mut self, gpu: Gpu, with: SeatedWith, owner: &Owner, now: Nanos) -> Owner {
        self.forget(now);
        let shown = with == SeatedWith::Everybody;
        if !self.pages.contains_key(&gpu) {
            self.make_room(shown, owner.user);
        }
        let known = |page: &Page| page.accounts.contains_key(owner);
        let own = self.pages.get(&gpu).is_some_and(known) || self.has_room_for(owner.user, now);
        let page = self.pages.entry(gpu).or_insert_with(|| Page::new(now));
        page.shown |= shown;
        page.gathered += u64::from(!own);
        let owner = if own { owner.clone() } else { owner.gathered() };
        page.account(&owner, now).processes += 1;
        owner
    }

    /// Whether a user may have one more account, which may be at the cost of the one that ended first.
    fn has_room_for(&mut self, user: u32, now: Nanos) -> bool {
        let of_user = |(owner, _): &(&Owner, &Account)| owner.user == user;
        let all = self.pages.values().map(|page| page.accounts.iter().filter(of_user).count());
        if all.sum::<usize>() < MOST_OF_USER {
            return true;
        }
        let over = |(gpu, page): (&Gpu, &Page)| {
            let gpu = *gpu;
            let ended = page.accounts.iter().filter(of_user).filter(|(owner, account)| {
                let long_ago = now.since(account.ended) >= KEPT_AT_LEAST;
                account.processes == 0 && long_ago && **owner != owner.gathered()
            });
            ended.map(|(owner, account)| (account.ended, gpu, owner.clone())).min()
        };
        let Some((_, gpu, owner)) = self.pages.iter().filter_map(over).min() else { return false };
        let page = self.pages.get_mut(&gpu).expect("it was found on this page");
        let account = page.accounts.remove(&owner).expect("it was found there");
        page.gathered += 1;
        page.account(&owner.gathered(), now).figures.add(&account.figures);
        true
    }

    /// What a process has counted since the last time.
    pub fn enter(&mut self, gpu: Gpu, owner: &Owner, counted: &Figures) {
        let Some(page) = self.pages.get_mut(&gpu) else { return };
        page.all.add(counted);
        if owner.class == Class::BestEffort {
            page.harvested = Nanos(page.harvested.0.saturating_add(counted.gpu_ns));
        }
        if let Some(account) = page.accounts.get_mut(owner) {
            account.figures.add(counted);
        }
    }

    /// A process does not count for an account any more.
    pub fn close(&mut self, gpu: Gpu, owner: &Owner, now: Nanos) {
        let account = self.pages.get_mut(&gpu).and_then(|page| page.accounts.get_mut(owner));
        if let Some(account) = account {
            account.processes = account.processes.saturating_sub(1);
            account.ended = now;
        }
    }

    /// Sees how long every GPU has been idle, and forgets who ended long ago.
    pub fn look(&mut self, now: Nanos) {
        for page in self.pages.values_mut() {
            // Tenants count with a delay, so that a GPU may seem idle that was not; it is made up for before the sum grows again.
            let idle = now.since(page.began).since(Nanos(page.all.gpu_ns));
            page.idle = page.idle.max(idle);
        }
        self.forget(now);
    }

    fn forget(&mut self, now: Nanos) {
        let stays = |account: &Account| account.processes > 0 || now.since(account.ended) < KEPT_FOR;
        self.pages.values_mut().for_each(|page| page.accounts.retain(|_, account| stays(account)));
        let mut many = self.pages.values().map(|page| page.accounts.len()).sum::<usize>();
        while many >= MOST_ACCOUNTS && self.forget_oldest() {
            many -= 1;
        }
    }

    /// The one that ended first, of the user who has most of those that ended.
    fn forget_oldest(&mut self) -> bool {
        let ended = || {
            self.pages.iter().flat_map(|(gpu, page)| {
                let ended = page.accounts.iter().filter(|(_, account)| account.processes == 0);
                ended.map(|(owner, account)| (account.ended, *gpu, owner))
            })
        };
        let mut users: BTreeMap<u32, usize> = BTreeMap::new();
        ended().for_each(|(_, _, owner)| *users.entry(owner.user).or_default() += 1);
        let most = users.into_iter().max_by_key(|(_, accounts)| *accounts).map(|(user, _)| user);
        let oldest = ended().filter(|(_, _, owner)| Some(owner.user) == most).min();
        let Some((gpu, owner)) = oldest.map(|(_, gpu, owner)| (gpu, owner.clone())) else { return false };
        self.pages.get_mut(&gpu).is_some_and(|page| page.accounts.remove(&owner).is_some())
    }

    /// For one more GPU, at the cost of those on which there is nobody. A user who names one more gives one of its own for it.
    fn make_room(&mut self, shown: bool, user: u32) {
        let users = self.pages.values().filter(|page| page.is_named_only_by(user)).count();
        if !shown && users >= MOST_NAMED {
            self.remove_first(|_, page| page.is_named_only_by(user).then_some(0));
        }
        while self.pages.len() >= MOST_GPUS {
            // Names first, and those of who has most of them.
            let named = self.named();
            let by_names = |_: &Gpu, page: &Page| (!page.shown).then(|| usize::MAX - page.names(&named));
            let removed =
                self.remove_first(by_names) || shown && self.remove_first(|_, page| page.shown.then_some(0));
            if !removed {
                return;
            }
        }
    }

    /// How many GPUs that nobody has shown each user has accounts on.
    fn named(&self) -> BTreeMap<u32, usize> {
        let mut named = BTreeMap::new();
        for page in self.pages.values().filter(|page| !page.shown) {
            page.users().into_iter().for_each(|user| *named.entry(user).or_default() += 1);
        }
        named
    }

    /// Of the pages on which there is nobody and that have a rank, removes the one of the lowest that ended first. Whether there was
    /// one.
    fn remove_first(&mut self, rank: impl Fn(&Gpu, &Page) -> Option<usize>) -> bool {
        let empty = self.pages.iter().filter(|(_, page)| page.is_empty());
        let ranked = empty.filter_map(|(gpu, page)| Some((rank(gpu, page)?, page.last(), *gpu)));
        let first = ranked.min().map(|(_, _, gpu)| gpu);
        first.is_some_and(|gpu| self.pages.remove(&gpu).is_some())
    }
}

impl Page {
    fn new(now: Nanos) -> Page {
        Page {
            began: now,
            shown: false,
            all: Box::new(Figures::NONE),
            harvested: Nanos::ZERO,
            idle: Nanos::ZERO,
            gathered: 0,
            accounts: BTreeMap::new(),
        }
    }

    fn is_empty(&self) -> bool {
        self.accounts.values().all(|account| account.processes == 0)
    }

    /// When the last of its processes ended.
    fn last(&self) -> Option<Nanos> {
        self.accounts.values().map(|account| account.ended).max()
    }

    fn users(&self) -> BTreeSet<u32> {
        self.accounts.keys().map(|owner| owner.user).collect()
    }

    fn is_named_only_by(&self, user: u32) -> bool {
        !self.shown && !self.accounts.is_empty() && self.accounts.keys().all(|owner| owner.user == user)
    }

    /// How many names those have who use this one: the fewest that any of them has, so that nobody makes a name of somebody else's
    /// one of many by using it.
    fn names(&self, named: &BTreeMap<u32, usize>) -> usize {
        let each = self.users().into_iter().filter_map(|user| named.get(&user).copied());
        each.min().unwrap_or(usize::MAX)
    }

    /// The account of an owner, made where there is none.
    fn account(&mut self, owner: &Owner, now: Nanos) -> &mut Account {
        if !self.accounts.contains_key(owner) {
            let label = self.label(owner);
            let figures = Box::new(Figures::NONE);
            self.accounts.insert(owner.clone(), Account { label, figures, processes: 0, ended: now });
        }
        self.accounts.get_mut(owner).expect("it is there or was just put there")
    }

    fn label(&self, owner: &Owner) -> String {
        // Also those of the other class: whoever changes its class keeps its name.
        let others = || self.accounts.iter().filter(|(other, _)| other.user != owner.user);
        let mut label = owner.name.clone();
        while others().any(|(_, account)| account.label == label) {
            label = format!("{label}@{}", owner.user);
        }
        label
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GPU: Gpu = Gpu([7; 16]);
    const SHOWN: SeatedWith = SeatedWith::Everybody;

    fn owner(name: &str, user: u32) -> Owner {
        Owner { name: name.to_owned(), user, class: Class::BestEffort }
    }

    fn at(seconds: u64) -> Nanos {
        Nanos::from_millis(seconds * 1_000)
    }

    fn gpu_time(seconds: u64) -> Figures {
        Figures { gpu_ns: at(seconds).0, ..Figures::NONE }
    }

    /// A tenant that comes and goes.
    fn pass(book: &mut Book, gpu: Gpu, name: &str, user: u32, now: Nanos) {
        let counts_for = book.open(gpu, SHOWN, &owner(name, user), now);
        book.enter(gpu, &counts_for, &gpu_time(1));
        book.close(gpu, &counts_for, now);
    }

    #[test]
    fn one_users_names_do_not_push_out_anothers() {
        let mut book = Book::default();
        pass(&mut book, GPU, "quiet", 6, at(0));
        (0..3_000).for_each(|number| pass(&mut book, GPU, &format!("n{number}"), 5, at(1)));
        let found = labels(&book);
        assert!(found.contains(&"quiet") && found.contains(&"other@5"), "{found:?}");
        assert_eq!(found.len(), MOST_OF_USER + 2);
        let page = book.pages().next().unwrap().1;
        let gathered = Owner { name: "other@5".to_owned(), ..owner("", 5) };
        let rest = 3_000 - MOST_OF_USER as u64;
        assert_eq!((page.gathered, page.accounts[&gathered].figures.gpu_ns), (rest, at(rest).0));
        let sum: u64 = page.accounts.values().map(|account| account.figures.gpu_ns).sum();
        assert_eq!(sum, page.all.gpu_ns, "nothing is lost");
    }

    #[test]
    fn a_new_name_takes_the_place_of_one_that_everybody_has_seen_end() {
        let mut book = Book::default();
        (0..MOST_OF_USER as u64)
            .for_each(|number| pass(&mut book, GPU, &format!("n{number:03}"), 5, at(number)));
        let late = at(KEPT_AT_LEAST.0 / 1_000_000_000);
        assert_eq!(
            book.open(GPU, SHOWN, &owner("new", 5), late).name,
            "new",
            "the first has ended long enough ago"
        );
        assert_eq!(book.open(GPU, SHOWN, &owner("newer", 5), late).name, "other@5", "the second has not");
        assert_eq!(book.open(GPU, SHOWN, &owner("n001", 5), late).name, "n001", "who comes again is known");
        let page = book.pages().next().unwrap().1;
        assert!(!labels(&book).contains(&"n000"));
        assert_eq!(
            (
                page.gathered,
                page.accounts[&Owner { name: "other@5".to_owned(), ..owner("", 5) }].figures.gpu_ns
            ),
            (2, at(1).0)
        );
    }

    fn labels(book: &Book) -> Vec<&str> {
        let accounts = book.pages().flat_map(|(_, page)| page.accounts.values());
        accounts.map(|account| account.label.as_str()).collect()
    }

    #[test]
    fn who_comes_again_goes_on_with_its_account() {
        let (mut book, train) = (Book::default(), owner("train", 5));
        for start in [0, 10] {
            let _ = book.open(GPU, SHOWN, &train, at(start));
            book.enter(GPU, &train, &gpu_time(3));
            book.close(GPU, &train, at(start + 5));
        }
        book.look(at(20));
        let (_, page) = book.pages().next().unwrap();
        assert_eq!(page.accounts[&train].figures.gpu_ns, at(6).0);
        assert_eq!((page.harvested, page.idle), (at(6), at(14)));
    }

    #[test]
    fn who_ended_long_ago_is_forgotten_and_its_gpu_remembers() {
        let (mut book, train) = (Book::default(), owner("train", 5));
        let _ = book.open(GPU, SHOWN, &train, at(0));
        book.enter(GPU, &train, &gpu_time(3));
        book.look(at(1_000_000));
        assert_eq!(labels(&book), ["train"], "who is there is not forgotten");
        book.close(GPU, &train, at(1_000_000));
        book.look(at(1_000_000) + KEPT_FOR);
        assert_eq!(labels(&book), [""; 0]);
        assert_eq!(book.pages().next().unwrap().1.all.gpu_ns, at(3).0);
    }

    #[test]
    fn two_users_do_not_share_a_name_nor_take_anothers() {
        let mut book = Book::default();
        let _ = book.open(GPU, SHOWN, &owner("train", 5), at(0));
        let _ = book.open(GPU, SHOWN, &owner("train@6", 7), at(0));
        let _ = book.open(GPU, SHOWN, &owner("train", 6), at(0));
        let latency = Owner { class: Class::Latency, ..owner("train", 5) };
        let _ = book.open(GPU, SHOWN, &latency, at(0));
        let mut found = labels(&book);
        found.sort_unstable();
        assert_eq!(found, ["train", "train", "train@6", "train@6@6"]);
    }

    #[test]
    fn no_more_are_kept_than_there_is_room_for() {
        let mut book = Book::default();
        let _ = book.open(GPU, SHOWN, &owner("there", 5), at(0));
        for number in 0..2 * MOST_ACCOUNTS as u64 {
            // Many users, each with few.
            pass(&mut book, GPU, &format!("{number:05}"), 10 + number as u32 / 100, at(number));
        }
        let found = labels(&book);
        assert_eq!((found.len(), found.last()), (MOST_ACCOUNTS, Some(&"there")));
        assert!(found.contains(&"02047") && !found.contains(&"00000"));
        for number in 0..2 * MOST_GPUS as u8 {
            pass(&mut book, Gpu([number; 16]), "passing", 5, at(4_000));
        }
        assert_eq!(book.pages().count(), MOST_GPUS);
        assert!(book.pages().any(|(gpu, _)| *gpu == GPU), "where somebody is");
    }

    /// Who names GPUs that nobody has shown. Names of one user are all of one kind, and its numbers make them.
    fn invent(book: &mut Book, user: u8, numbers: std::ops::Range<u8>, now: Nanos) {
        for number in numbers {
            let gpu = Gpu([0xee, user, number, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
            let counts_for = book.open(gpu, SeatedWith::OwnUser, &owner("x", user.into()), now);
            book.close(gpu, &counts_for, now);
        }
    }

    #[test]
    fn names_that_users_make_up_do_not_push_out_gpus_that_were_shown() {
        let mut book = Book::default();
        let real: Vec<Gpu> = (0..8).map(|number| Gpu([number; 16])).collect();
        real.iter().for_each(|gpu| pass(&mut book, *gpu, "train", 9, at(0)));
        // A name of somebody who has few.
        invent(&mut book, 100, 0..1, at(0));
        invent(&mut book, 5, 0..200, at(1));
        let named = |book: &Book, user: u8| {
            book.pages()
                .filter(|(gpu, _)| gpu.0[..2] == [0xee, user])
                .map(|(gpu, _)| gpu.0[2])
                .collect::<Vec<_>>()
        };
        assert_eq!(
            named(&book, 5),
            (200 - MOST_NAMED as u8..200).collect::<Vec<_>>(),
            "the newest of its own"
        );
        (6..40).for_each(|user| invent(&mut book, user, 0..200, at(2)));
        assert_eq!(book.pages().count(), MOST_GPUS);
        assert!(real.iter().all(|gpu| book.pages().any(|(other, _)| other == gpu)));
        assert_eq!(named(&book, 100), [0], "others have more");
        // A GPU that is shown takes the place of a name, also of the last one.
        (8..80).for_each(|number| pass(&mut book, Gpu([number; 16]), "train", 9, at(3)));
        assert_eq!(book.pages().count(), MOST_GPUS);
        assert!(book.pages().all(|(gpu, page)| page.shown && gpu.0[0] != 0xee));
        invent(&mut book, 5, 0..200, at(4));
        assert_eq!(book.pages().filter(|(_, page)| page.shown).count(), MOST_GPUS);
        assert_eq!(named(&book, 5).len(), 1, "no more than was there last");
    }

    #[test]
    fn a_name_that_is_used_by_somebody_else_is_not_one_of_its_inventor() {
        let (mut book, shared) = (Book::default(), Gpu([3; 16]));
        for user in [5, 6] {
            let counts_for = book.open(shared, SeatedWith::OwnUser, &owner("train", user), at(0));
            book.close(shared, &counts_for, at(0));
        }
        invent(&mut book, 5, 0..200, at(1));
        assert!(book.pages().any(|(gpu, _)| *gpu == shared), "its other user has counted there");
    }

    #[test]
    fn idle_time_never_goes_back() {
        let (mut book, train) = (Book::default(), owner("train", 5));
        let _ = book.open(GPU, SHOWN, &train, at(0));
        book.look(at(10));
        book.enter(GPU, &train, &gpu_time(8));
        for (now, idle) in [(11, 10), (18, 10), (20, 12)] {
            book.look(at(now));
            assert_eq!(book.pages().next().unwrap().1.idle, at(idle), "after {now} s");
        }
    }
}
