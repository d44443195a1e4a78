//! What a worker's process executes: our player, or the Python workers, which are put into the campaign's private
//! folder.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use model::Class;
use scenario::{Device, Worker, Workload};

use super::post::Post;
use crate::Error;
use crate::crew::{Spec, Start, TenantSpec, class_word};
use crate::modes::Grounds;
use crate::workers;

pub struct Programs {
    /// With a file for each worker that is started.
    folder: PathBuf,
    logs: PathBuf,
    python: OsString,
    started: u32,
}

impl Programs {
    /// `logs` is where the standard errors of workers go.
    pub fn install(folder: &Path, logs: &Path, python: OsString) -> Result<Programs, Error> {
        let folder = folder.join("workers");
        let at = |path: &Path| {
            let path = path.to_owned();
            move |source| Error::File { path, source }
        };
        fs::create_dir_all(logs).map_err(at(logs))?;
        workers::install(&folder).map_err(at(&folder))?;
        Ok(Programs { folder, logs: logs.to_owned(), python, started: 0 })
    }

    /// How the worker of a post is started, on a ground that lies there.
    pub fn start(
        &mut self,
        post: &Post,
        workloads: &BTreeMap<String, Workload>,
        grounds: &Grounds,
    ) -> Result<Start, Error> {
        self.started += 1;
        let slowdown = post.slowdown as f64 / 1000.0;
        let tenants = post.seats.iter().enumerate().map(|(number, seat)| TenantSpec {
            name: post.tenant_name(number),
            class: class_word(class(seat.latency)),
            workload: serde_json::to_value(&workloads[&seat.workload]).expect("a workload is plain data"),
            stream: seat.stream,
        });
        let spec = Spec { tenants: tenants.collect(), slowdown, tiny: false };
        let file = self.folder.join(format!("{}.json", self.started));
        let text = serde_json::to_vec(&spec).expect("a specification is plain data");
        fs::write(&file, text).map_err(|source| Error::File { path: file.clone(), source })?;
        let words = self.words(post, workloads, grounds, file);
        let first = post.seats.first().is_none_or(|seat| seat.latency);
        let name = post.tenant_name(0);
        let (words, environment) = grounds.dress(post.ground, class(first), &name, slowdown, words);
        let log = self.logs.join(format!("{:03}-{}-{name}.log", self.started, post.ground.name()));
        Ok(Start { words, environment, log })
    }

    fn words(
        &self,
        post: &Post,
        workloads: &BTreeMap<String, Workload>,
        grounds: &Grounds,
        spec: PathBuf,
    ) -> Vec<OsString> {
        let site = grounds.site();
        let synthetic = post.seats.iter().all(|seat| workloads[&seat.workload].worker() == Worker::Synthetic);
        if synthetic || site.device == Device::Soft {
            return vec![site.program.clone().into(), "lab".into(), "tenant".into(), spec.into()];
        }
        vec![self.python.clone(), self.folder.join("worker.py").into(), spec.into()]
    }
}

fn class(latency: bool) -> Class {
    if latency { Class::Latency } else { Class::BestEffort }
}
