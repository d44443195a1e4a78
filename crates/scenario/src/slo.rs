//! What a latency tenant was promised.

use model::Nanos;
use serde::{Deserialize, Serialize};

use crate::span::{self, stretched};
use crate::workload::Workload;

/// Bounds on what a request may take, counted from when it was due. Every bound that is there must be kept.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Slo {
    /// Until it is answered.
    #[serde(default, with = "span::optional", skip_serializing_if = "Option::is_none")]
    pub latency: Option<Nanos>,
    /// The same, as a multiple of the p99 that the tenant has alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub alone_p99: Option<f64>,
    /// Until its first token is there.
    #[serde(default, with = "span::optional", skip_serializing_if = "Option::is_none")]
    pub ttft: Option<Nanos>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub alone_ttft_p99: Option<f64>,
    /// From each token to the next, on average.
    #[serde(default, with = "span::optional", skip_serializing_if = "Option::is_none")]
    pub tpot: Option<Nanos>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub alone_tpot_p99: Option<f64>,
}

const HIGHEST_MULTIPLE: f64 = 100.0;

impl Default for Slo {
    /// A fifth slower than alone is what a user would notice.
    fn default() -> Slo {
        let nothing = Slo {
            latency: None,
            alone_p99: None,
            ttft: None,
            alone_ttft_p99: None,
            tpot: None,
            alone_tpot_p99: None,
        };
        Slo { alone_p99: Some(1.2), ..nothing }
    }
}

impl Slo {
    /// Whether it makes sense, and for this workload.
    pub(crate) fn judge(&self, workload: &Workload) -> Result<(), String> {
        let spans = [("latency", self.latency), ("ttft", self.ttft), ("tpot", self.tpot)];
        let multiples = [
            ("alone_p99", self.alone_p99),
            ("alone_ttft_p99", self.alone_ttft_p99),
            ("alone_tpot_p99", self.alone_tpot_p99),
        ];
        if spans.iter().all(|(_, span)| span.is_none())
            && multiples.iter().all(|(_, multiple)| multiple.is_none())
        {
            return Err(
                "an SLO has at least one of latency, alone_p99, ttft, alone_ttft_p99, tpot, alone_tpot_p99"
                    .into(),
            );
        }
        for ((absolute, span), (relative, multiple)) in spans.into_iter().zip(multiples) {
            if span.is_some() && multiple.is_some() {
                return Err(format!("`{absolute}` and `{relative}` exclude each other"));
            }
            if span == Some(Nanos::ZERO) {
                return Err(format!("{absolute} is zero, which nothing can keep"));
            }
            if let Some(multiple) = multiple.filter(|multiple| !(1.0..=HIGHEST_MULTIPLE).contains(multiple)) {
                return Err(format!("{relative} is {multiple}, not between 1 and {HIGHEST_MULTIPLE}"));
            }
        }
        let first = self.ttft.is_some() || self.alone_ttft_p99.is_some();
        let next = self.tpot.is_some() || self.alone_tpot_p99.is_some();
        match workload.output() {
            None if first || next => {
                Err("ttft and tpot are for models that answer token by token, such as llama".to_owned())
            }
            Some(1) if next => Err("an answer of one token has no time per further token".to_owned()),
            _ => Ok(()),
        }
    }

    /// The same on a device on which everything takes `factor` times as long.
    pub(crate) fn slowed(self, factor: f64) -> Slo {
        let slow = |span: Option<Nanos>| span.map(|span| stretched(span, factor));
        Slo { latency: slow(self.latency), ttft: slow(self.ttft), tpot: slow(self.tpot), ..self }
    }
}
