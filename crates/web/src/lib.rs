//! A small HTTP server inside the daemon.
//!
//! One request to a connection, and a bound on everything. It has threads of its own, one that lets in and one for each
//! connection, and the daemon's thread is only ever asked for an observation (`export::desk`), so that a slow reader costs a thread
//! of ours and nobody's time. A connection may stay open for as long as its page has something to say: that is
//! why there is a thread for each and not one for all.
//!
//! # Whom to trust
//!
//! Nobody who connects. A request has a greatest length and a deadline; there is a bound on connections, and one for each user of this
//! machine and each address (`places`): who is slow gives its place to who comes. What listens on this machine
//! only is asked for by its name there, so that a page in a browser which has had its own name pointed here is refused.
//! A POST comes through without a reader's password: a page that can change something asks for a proof of its own, and all
//! others refuse it. Where others than this machine are to read, a certificate and a file of readers
//! can be named (`tls`, `access`).
//!
//! * [`Server`], [`Options`]: who listens, and where
//! * [`Pages`], [`Request`], [`Response`]: what is served
//! * [`Stream`], [`Next`]: a body that goes on, such as server-sent events
//! * [`Metrics`]: the page for monitoring; the one for people is in a room of its own (`dashboard`)
//!
//! * [`Access`]: who may read
//!
//! Inside: `request` (what was asked), `wire` (bytes with a deadline), `connection` (one of them), `server` (letting them in),
//! `peer` (who they are), `places` (which of them may stay).

#![forbid(unsafe_code)]

mod access;
mod connection;
mod error;
mod metrics;
mod peer;
mod places;
mod request;
mod response;
mod server;
mod tls;
#[cfg(any(test, feature = "trials"))]
pub mod trials;
mod wire;

pub use access::Access;
pub use error::Error;
pub use metrics::Metrics;
pub use request::{LONGEST_BODY, Method, Refusal, Request};
pub use response::{Next, Response, Stream};
pub use server::{Options, Server};

/// What a server serves. A page that changes nothing answers a POST with [`Response::read_only`].
pub trait Pages: Send + Sync {
    fn page(&self, request: &Request) -> Response;
}
