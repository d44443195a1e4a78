//! A way of sharing, by its name: a policy of ebb in one of its domains, a published system, or what NVIDIA ships.

use std::fmt;
use std::str::FromStr;

use model::{Dials, Domain, Kind, Nanos};

use crate::rivals::Rival;
use crate::{Ebb, Hand, Scheduler, Sharing, Switch};

#[derive(Clone, Debug, PartialEq)]
pub enum Way {
    /// Nobody decides anything.
    Plain(Sharing),
    /// The isolated domain with nothing but its short slices: best-effort work runs whenever nobody else has any.
    Switch,
    Ebb {
        domain: Domain,
        kind: Kind,
        hand: Hand,
    },
    Rival(Rival),
}

/// Every word for a way, as messages list them.
pub const WORDS: &str = "strict, gaps, slo, fair, deadline, switch, fikit, hummingbird, tally, reef, reef-n, timeslice, mps, mps-priority";

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoWay {
    #[error("`{0}` is no policy; known are {WORDS}")]
    Unknown(String),
    #[error("`{0}` shares a GPU in a way of its own, and has no domain to choose")]
    NoDomain(String),
    #[error("`{0}` has no dials")]
    NoDials(String),
    #[error("`{0}` is no domain; known are isolated, shared")]
    Domain(String),
    #[error("{0}")]
    Dial(String),
}

impl Way {
    /// The way that a text means: a word, and for policies of ebb a domain and dials of their own, as in
    /// `slo@shared:quiet=50us,beside=20us`. What it does not say is as given.
    pub fn parse(text: &str, domain: Option<Domain>, hand: Hand) -> Result<Way, NoWay> {
        let (rest, settings) = match text.split_once(':') {
            Some((rest, settings)) => (rest, settings),
            None => (text, ""),
        };
        let (word, own) = match rest.split_once('@') {
            Some((word, own)) => {
                let own = own.parse().map_err(|_| NoWay::Domain(own.to_owned()))?;
                (word, Some(own))
            }
            None => (rest, None),
        };
        let mut hand = hand;
        for setting in settings.split(',').filter(|setting| !setting.is_empty()) {
            set(&mut hand, setting).map_err(NoWay::Dial)?;
        }
        let way = Way::named(word, own.or(domain), hand)?;
        match way {
            Way::Ebb { .. } => Ok(way),
            _ if own.is_some_and(|own| own != way.sharing().domain()) => {
                Err(NoWay::NoDomain(word.to_owned()))
            }
            _ if !settings.is_empty() => Err(NoWay::NoDials(word.to_owned())),
            _ => Ok(way),
        }
    }

    /// The way that a word means. `domain` is for policies of ebb: the others have one of their own. Without one it is what a
    /// tenant of ebb gets without asking.
    pub fn named(word: &str, domain: Option<Domain>, hand: Hand) -> Result<Way, NoWay> {
        if let Ok(kind) = Kind::from_str(word) {
            return Ok(Way::Ebb { domain: domain.unwrap_or(Domain::Isolated), kind, hand });
        }
        Ok(match word {
            "switch" => Way::Switch,
            "timeslice" => Way::Plain(Sharing::TimeSlicing),
            "mps" => Way::Plain(Sharing::Mps),
            "mps-priority" => Way::Plain(Sharing::MpsPriority),
            word => {
                let rival = Rival::ALL.into_iter().find(|rival| rival.name() == word);
                Way::Rival(rival.ok_or_else(|| NoWay::Unknown(word.to_owned()))?)
            }
        })
    }

    pub fn sharing(&self) -> Sharing {
        match self {
            Way::Plain(sharing) => *sharing,
            Way::Switch | Way::Ebb { domain: Domain::Isolated, .. } => Sharing::Isolated,
            Way::Ebb { domain: Domain::Shared, .. } | Way::Rival(_) => Sharing::Shared,
        }
    }

    /// Whoever decides, at the beginning of a run: it has learned nothing yet.
    pub fn scheduler(&self) -> Box<dyn Scheduler> {
        match self {
            // Nobody is asked where nobody decides.
            Way::Plain(_) | Way::Switch => Box::new(Switch::default()),
            Way::Ebb { kind, hand, .. } => Box::new(Ebb::by_hand(*kind, *hand)),
            Way::Rival(rival) => rival.scheduler(),
        }
    }
}

/// As the mode of a result file.
impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Way::Plain(Sharing::Mps) => f.pad("mps"),
            Way::Plain(Sharing::MpsPriority) => f.pad("mps-priority"),
            Way::Plain(_) => f.pad("timeslice"),
            Way::Switch => f.pad("switch"),
            Way::Ebb { domain, kind, hand } => f.pad(&format!("{}-{domain}{}", kind.name(), turned(hand))),
            Way::Rival(rival) => f.pad(rival.name()),
        }
    }
}

/// The dials that were set.
fn turned(hand: &Hand) -> String {
    let span = |value: Option<Nanos>| value.map(scenario::written);
    let number = |value: Option<u32>| value.map(|value| value.to_string());
    let dials = [
        ("quiet", span(hand.quiet)),
        ("threshold", span(hand.threshold)),
        ("in-flight", span(hand.in_flight)),
        ("beside", span(hand.beside)),
        ("confine", number(hand.confine)),
        ("solo-share", number(hand.solo_share)),
    ];
    dials.into_iter().filter_map(|(dial, value)| value.map(|value| format!(" {dial}={value}"))).collect()
}

/// A dial as a person sets it: `quiet=100us`, `threshold=50us`, `in-flight=8ms`, `beside=0us`, `confine=0`, `solo-share=10`.
pub fn set(hand: &mut Hand, text: &str) -> Result<(), String> {
    let (dial, value) = text.split_once('=').ok_or_else(|| format!("`{text}` is not DIAL=VALUE"))?;
    let span = || value.parse::<Nanos>().map_err(|error| format!("{dial}: {error}"));
    match dial {
        "quiet" => hand.quiet = Some(span()?),
        "threshold" => hand.threshold = Some(span()?),
        "in-flight" => hand.in_flight = Some(span()?),
        "beside" => hand.beside = Some(span()?),
        "confine" => {
            let share = value.parse().ok();
            hand.confine =
                Some(share.ok_or("confine: a number of hundredths of the SMs, from 0 to 90, is wanted")?);
        }
        "solo-share" => {
            let share = value.parse().ok().filter(|share| *share <= 1_000);
            hand.solo_share =
                Some(share.ok_or("solo-share: a number of thousandths, from 0 to 1000, is wanted")?);
        }
        _ => {
            return Err(format!(
                "`{dial}` is no dial; known are quiet, threshold, in-flight, beside, confine, solo-share"
            ));
        }
    }
    let dials = hand.over(Dials::default());
    if dials != dials.sane() {
        return Err(format!(
            "{dial}: {value} is beyond what makes sense; the next that does is {}",
            sane(dial, dials)
        ));
    }
    Ok(())
}

fn sane(dial: &str, dials: Dials) -> String {
    let sane = dials.sane();
    match dial {
        "quiet" => sane.quiet.to_string(),
        "threshold" => sane.threshold.to_string(),
        "in-flight" => sane.in_flight.to_string(),
        "beside" => sane.beside.to_string(),
        "confine" => sane.confine.to_string(),
        _ => sane.solo_share.to_string(),
    }
}
