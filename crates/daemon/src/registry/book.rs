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

use std::collections::BTreeMap;

use board::{Figures, Gpu};
use model::{Class, Nanos};

/// For so long an account is kept without a process. A reader that comes once in a few minutes sees how it ended.
const KEPT_FOR: Nanos = Nanos::from_millis(60 * 60 * 1_000);
/// More accounts than this are not kept for those who have ended.
const MOST_ACCOUNTS: usize = 1_024;
/// More GPUs than any machine has: tenants name their GPUs themselves.
const MOST_GPUS: usize = 64;

/// Whose account it is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Owner {
    pub name: String,
    pub user: u32,
    pub class: Class,
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
    /// By everybody, those who are forgotten too.
    pub all: Box<Figures>,
    /// GPU time of best-effort tenants, those who are forgotten too.
    pub harvested: Nanos,
    pub idle: Nanos,
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

    /// A process begins to count for an account.
    pub fn open(&mut self, gpu: Gpu, owner: &Owner, now: Nanos) {
        self.forget(now);
        self.make_room(gpu);
        let page = self.pages.entry(gpu).or_insert_with(|| Page::new(now));
        if !page.accounts.contains_key(owner) {
            let label = page.label(owner);
            let figures = Box::new(Figures::NONE);
            page.accounts.insert(owner.clone(), Account { label, figures, processes: 0, ended: now });
        }
        page.accounts.get_mut(owner).expect("it is there or was just put there").processes += 1;
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

    fn forget_oldest(&mut self) -> bool {
        let ended = self.pages.iter().flat_map(|(gpu, page)| {
            let ended = page.accounts.iter().filter(|(_, account)| account.processes == 0);
            ended.map(|(owner, account)| (account.ended, *gpu, owner.clone()))
        });
        let Some((_, gpu, owner)) = ended.min() else { return false };
        self.pages.get_mut(&gpu).is_some_and(|page| page.accounts.remove(&owner).is_some())
    }

    /// For one more GPU, at the cost of one on which there is nobody.
    fn make_room(&mut self, gpu: Gpu) {
        if self.pages.len() < MOST_GPUS || self.pages.contains_key(&gpu) {
            return;
        }
        let empty = |page: &Page| page.accounts.values().all(|account| account.processes == 0);
        let last = |page: &Page| page.accounts.values().map(|account| account.ended).max();
        let oldest = self.pages.iter().filter(|(_, page)| empty(page)).min_by_key(|(_, page)| last(page));
        if let Some(gpu) = oldest.map(|(gpu, _)| *gpu) {
            self.pages.remove(&gpu);
        }
    }
}

impl Page {
    fn new(now: Nanos) -> Page {
        Page {
            began: now,
            all: Box::new(Figures::NONE),
            harvested: Nanos::ZERO,
            idle: Nanos::ZERO,
            accounts: BTreeMap::new(),
        }
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

    fn owner(name: &str, user: u32) -> Owner {
        Owner { name: name.to_owned(), user, class: Class::BestEffort }
    }

    fn at(seconds: u64) -> Nanos {
        Nanos::from_millis(seconds * 1_000)
    }

    fn gpu_time(seconds: u64) -> Figures {
        Figures { gpu_ns: at(seconds).0, ..Figures::NONE }
    }

    fn labels(book: &Book) -> Vec<&str> {
        let accounts = book.pages().flat_map(|(_, page)| page.accounts.values());
        accounts.map(|account| account.label.as_str()).collect()
    }

    #[test]
    fn who_comes_again_goes_on_with_its_account() {
        let (mut book, train) = (Book::default(), owner("train", 5));
        for start in [0, 10] {
            book.open(GPU, &train, at(start));
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
        book.open(GPU, &train, at(0));
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
        book.open(GPU, &owner("train", 5), at(0));
        book.open(GPU, &owner("train@6", 7), at(0));
        book.open(GPU, &owner("train", 6), at(0));
        let latency = Owner { class: Class::Latency, ..owner("train", 5) };
        book.open(GPU, &latency, at(0));
        let mut found = labels(&book);
        found.sort_unstable();
        assert_eq!(found, ["train", "train", "train@6", "train@6@6"]);
    }

    #[test]
    fn no_more_are_kept_than_there_is_room_for() {
        let mut book = Book::default();
        book.open(GPU, &owner("there", 5), at(0));
        for number in 0..2 * MOST_ACCOUNTS as u64 {
            let passing = owner(&format!("{number:05}"), 5);
            book.open(GPU, &passing, at(number));
            book.close(GPU, &passing, at(number));
        }
        let found = labels(&book);
        assert_eq!((found.len(), found.last()), (MOST_ACCOUNTS, Some(&"there")));
        assert!(found.contains(&"02047") && !found.contains(&"00000"));
        for number in 0..2 * MOST_GPUS as u8 {
            book.open(Gpu([number; 16]), &owner("passing", 5), at(4_000));
            book.close(Gpu([number; 16]), &owner("passing", 5), at(4_000));
        }
        assert_eq!(book.pages().count(), MOST_GPUS);
        assert!(book.pages().any(|(gpu, _)| *gpu == GPU), "where somebody is");
    }

    #[test]
    fn idle_time_never_goes_back() {
        let (mut book, train) = (Book::default(), owner("train", 5));
        book.open(GPU, &train, at(0));
        book.look(at(10));
        book.enter(GPU, &train, &gpu_time(8));
        for (now, idle) in [(11, 10), (18, 10), (20, 12)] {
            book.look(at(now));
            assert_eq!(book.pages().next().unwrap().1.idle, at(idle), "after {now} s");
        }
    }
}
