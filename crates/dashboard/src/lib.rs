//! The daemon's page for people.
//!
//! One document with everything in it (`page`), fed by one stream of server-sent events. It is served beside metrics by the same
//! server, shows what `ebb status`, `ebb top`, `ebb verdicts` and `ebb trace` show, and has nothing that they do not have.
//!
//! # What it costs
//!
//! However many look, the daemon's thread is asked once a second (`hub`); when nobody looks it is not asked at all. The first
//! event has everything, each later one a point for each tenant and whatever else has changed (`document`). What only one of the
//! pages shows is asked for by that page (`detail`).
//!
//! # Who may do what
//!
//! Whoever may read metrics may look. Nothing can be changed, unless the configuration names a file with a secret (`admin`). The
//! page itself is under a policy that lets it load and run nothing but what is in this crate, and speak to nobody but its server;
//! names of tenants and kernels, which are chosen by whoever starts them, are only ever text in it.
//!
//! * [`Dashboard`]: what is served where
//! * `document`, `rows`: what is sent; `hub`: when, and to whom
//! * `shelf`: the ledgers and event logs of tenants; `chronicle`: decisions, out of the latter
//! * `detail`: a tenant, and verdicts; `admin`: changes
//! * `assets`: the files of the page

#![forbid(unsafe_code)]

mod admin;
mod assets;
mod chronicle;
mod detail;
mod document;
mod error;
mod hub;
mod rows;
mod shelf;
mod site;
#[cfg(test)]
mod tests;

pub use admin::Admin;
pub use error::Error;
pub use site::Dashboard;
