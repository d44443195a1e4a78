//! Which domain and which rung suit a best-effort tenant, from what was seen of its kernels.
//!
//! The isolated domain is where everybody is safe: another tenant's fault harms nobody, and the hardware's switch of contexts stops
//! whatever runs, cooperative kernels, graphs and blocks that take milliseconds included. But a switch has its price, and a
//! latency tenant whose slack is smaller pays it with every request that finds best-effort work on the GPU.
//!
//! The shared domain stops work between blocks, ten times faster, as long as its blocks are short and its kernels can be
//! guarded. Work that is not like that can only be held there: it runs to its end. So the shared domain is better exactly if the
//! switch is too slow for the slack and nearly all of the tenant's GPU time can be stopped within it. One domain serves
//! all tenants of a GPU: a single best-effort tenant that cannot be stopped in the shared one keeps all of them in the other.
//!
//! What was not seen long enough is not judged, and nobody is put into a shared fate that the user did not agree to.

use model::{Domain, Nanos, Rung};

/// What was seen of a best-effort tenant. Shares are of its GPU time, in thousandths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Profile {
    /// How much GPU time was seen.
    pub seen: Nanos,
    /// In kernels that can be stopped between blocks.
    pub guarded: u32,
    /// In blocks that take longer than the slack of the latency tenants.
    pub long_blocks: u32,
    /// In kernels whose blocks wait for each other, so that they run together or not at all.
    pub cooperative: u32,
    /// In graphs, which are held as one.
    pub graphs: u32,
}

/// What a choice depends on besides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Circumstances {
    /// The smallest slack of the latency tenants; `None`: there are none, or nothing is known of them.
    pub slack: Option<Nanos>,
    /// What a switch of contexts costs on this GPU; `None`: this driver does not let slices be set.
    pub switch: Option<Nanos>,
    /// Whether the shared domain can be had at all.
    pub can_share: bool,
    /// Whether the user has agreed that a fault of one may be the fault of all.
    pub may_share: bool,
}

/// Where a tenant should be, how it is stopped there, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    pub domain: Domain,
    pub rung: Rung,
    pub because: Because,
}

/// Why a domain was chosen. The order is that of weight where tenants disagree: the last one wins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Because {
    /// Nearly all of its work can be stopped between blocks within the slack, and a switch would take longer.
    GuardIsFaster,
    /// No switch can be made, and its work can be stopped between blocks.
    NoSwitch,
    /// A switch takes no longer than the slack.
    SwitchIsFastEnough,
    /// There is no latency tenant whose slack would be known.
    NobodyToProtect,
    /// Too little of its work was seen.
    NotSeenEnough,
    /// Too much of its time is in kernels that cannot be guarded.
    Unguarded,
    /// Too much of its time is in graphs.
    Graphs,
    /// Too much of its time is in blocks that take longer than the slack.
    LongBlocks,
    /// Too much of its time is in kernels whose blocks wait for each other.
    Cooperative,
    /// The shared domain cannot be had here.
    NotAvailable,
    /// A shared fate was not agreed to.
    NotAllowed,
}

/// So much GPU time is seen before it is judged.
pub const ENOUGH: Nanos = Nanos::from_millis(500);

/// So much of the GPU time may be what a stop has to wait for, in thousandths: fewer requests meet it than a 99th percentile
/// sees.
pub const MOST: u32 = 10;

/// What suits one best-effort tenant.
pub fn choose(profile: &Profile, around: &Circumstances) -> Choice {
    match obstacle(profile, around) {
        Some(because) => isolated(because, around),
        None => {
            let because = if around.switch.is_none() { Because::NoSwitch } else { Because::GuardIsFaster };
            Choice { domain: Domain::Shared, rung: Rung::Guard, because }
        }
    }
}

/// What suits all best-effort tenants of a GPU together: the shared domain only if it suits each. `None`: there are none.
pub fn together(choices: impl IntoIterator<Item = Choice>) -> Option<Choice> {
    choices.into_iter().max_by_key(|choice| choice.because)
}

/// What speaks against the shared domain, the weightiest first.
fn obstacle(profile: &Profile, around: &Circumstances) -> Option<Because> {
    let found = [
        (!around.may_share, Because::NotAllowed),
        (!around.can_share, Because::NotAvailable),
        (profile.cooperative > MOST, Because::Cooperative),
        (profile.long_blocks > MOST, Because::LongBlocks),
        (profile.graphs > MOST, Because::Graphs),
        (profile.seen >= ENOUGH && profile.guarded < 1_000 - MOST, Because::Unguarded),
        (profile.seen < ENOUGH, Because::NotSeenEnough),
        (around.slack.is_none(), Because::NobodyToProtect),
        (around.switch.is_some_and(|switch| around.slack >= Some(switch)), Because::SwitchIsFastEnough),
    ];
    found.into_iter().find_map(|(speaks_against, because)| speaks_against.then_some(because))
}

fn isolated(because: Because, around: &Circumstances) -> Choice {
    // Where no slice can be set, contexts take turns by the driver's own, and work is held before it begins.
    let rung = if around.switch.is_some() { Rung::Switch } else { Rung::Hold };
    Choice { domain: Domain::Isolated, rung, because }
}

impl Because {
    pub const ALL: [Because; 11] = [
        Because::GuardIsFaster,
        Because::NoSwitch,
        Because::SwitchIsFastEnough,
        Because::NobodyToProtect,
        Because::NotSeenEnough,
        Because::Unguarded,
        Because::Graphs,
        Because::LongBlocks,
        Because::Cooperative,
        Because::NotAvailable,
        Because::NotAllowed,
    ];

    /// In a word, as files and programs name it.
    pub fn name(self) -> &'static str {
        match self {
            Because::GuardIsFaster => "guard-is-faster",
            Because::NoSwitch => "no-switch",
            Because::SwitchIsFastEnough => "switch-is-fast-enough",
            Because::NobodyToProtect => "nobody-to-protect",
            Because::NotSeenEnough => "not-seen-enough",
            Because::Unguarded => "unguarded",
            Because::Graphs => "graphs",
            Because::LongBlocks => "long-blocks",
            Because::Cooperative => "cooperative",
            Because::NotAvailable => "not-available",
            Because::NotAllowed => "not-allowed",
        }
    }

    /// In a sentence without its end, for people.
    pub fn sentence(self) -> &'static str {
        match self {
            Because::GuardIsFaster => {
                "nearly all work that was seen stops between blocks sooner than by a switch"
            }
            Because::NoSwitch => {
                "slices cannot be set here, and nearly all work that was seen stops between blocks"
            }
            Because::SwitchIsFastEnough => "a switch is fast enough",
            Because::NobodyToProtect => "no latency tenant is known",
            Because::NotSeenEnough => "too little is known of the work that runs here",
            Because::Unguarded => "too much of the work that was seen cannot be stopped between blocks",
            Because::Graphs => "too much of the work that was seen is in graphs",
            Because::LongBlocks => {
                "too much of the work that was seen is in blocks that last longer than a switch is worth"
            }
            Because::Cooperative => {
                "too much of the work that was seen is in kernels whose blocks wait for each other"
            }
            Because::NotAvailable => "MPS cannot be had here, or somebody else's runs",
            Because::NotAllowed => "users of one machine do not share a fate",
        }
    }
}
