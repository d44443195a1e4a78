//! What the words of a file mean together. Every mistake is gathered, because whoever mends a file wants to see them all.

use std::collections::HashSet;
use std::ops::Range;

use model::{Class, Nanos};
use serde::Deserialize;
use toml::Spanned;

use super::{File, Origin, SCHEMA, SoftTable, TenantTable};
use crate::arrival::{self, Arrival};
use crate::error::{Error, Mistake};
use crate::mode::{Device, Mode};
use crate::scenario::{SOFT_SLOWDOWN, Scenario, Soft, Tenant};
use crate::slo::Slo;
use crate::workload::{self, Task, Torch, Workload};

const LONGEST: Nanos = Nanos::from_millis(3_600_000);
const SHORTEST: Nanos = Nanos::from_millis(10);
const MOST_REPETITIONS: u32 = 1000;
const MOST_TENANTS: usize = 64;
const MOST_REQUESTS: f64 = 1e6;
const LONGEST_NAME: usize = 60;

pub(super) struct Reader<'a> {
    text: &'a str,
    pub origin: &'a Origin,
    mistakes: Vec<Mistake>,
}

impl<'a> Reader<'a> {
    pub fn new(text: &'a str, origin: &'a Origin) -> Reader<'a> {
        Reader { text, origin, mistakes: Vec::new() }
    }

    pub fn read(mut self) -> Result<Vec<Scenario>, Error> {
        let scenarios = self.words().and_then(|file| self.scenarios(&file));
        match scenarios {
            Some(scenarios) if self.mistakes.is_empty() => Ok(scenarios),
            _ => {
                self.mistakes.sort_by_key(|mistake| mistake.line);
                Err(Error::Wrong(self.mistakes))
            }
        }
    }

    /// The schema is looked at first: the words of another one would be the wrong complaint.
    fn words(&mut self) -> Option<File> {
        #[derive(Deserialize)]
        struct OnlySchema {
            schema: Option<Spanned<i64>>,
        }
        let schema = toml::from_str::<OnlySchema>(self.text).ok().and_then(|file| file.schema);
        if let Some(schema) = schema.filter(|schema| *schema.get_ref() != i64::from(SCHEMA)) {
            let found = schema.get_ref();
            self.wrong(schema.span(), format!("schema is {found}, and this ebb knows only {SCHEMA}"));
            return None;
        }
        match toml::from_str(self.text) {
            Ok(file) => Some(file),
            Err(error) => {
                self.wrong(error.span().unwrap_or_default(), error.message().replace('\n', "; "));
                None
            }
        }
    }

    fn scenarios(&mut self, file: &File) -> Option<Vec<Scenario>> {
        debug_assert_eq!(*file.schema.get_ref(), SCHEMA);
        let name = self.origin.name();
        if let Err(message) = fits_name(&name) {
            self.wrong(0..0, format!("the file's name is the scenario's: {message}"));
        }
        let frame = self.frame(file, name);
        let scenarios = match (&file.cross, file.tenant.is_empty()) {
            (Some(cross), true) => self.cross(frame, cross)?,
            (Some(cross), false) => {
                self.wrong(cross.span(), "a file has [[tenant]] tables or one [cross], not both".to_owned());
                return None;
            }
            (None, true) => {
                self.wrong(0..0, "there is no tenant; write a [[tenant]] table for each".to_owned());
                return None;
            }
            (None, false) => {
                let tenants = self.tenants(&file.tenant)?;
                vec![Scenario { tenants, ..frame }]
            }
        };
        for scenario in &scenarios {
            self.whole(file, scenario);
        }
        Some(scenarios)
    }

    /// All of a scenario but its tenants. What is wrong is noted and stands for something right, so that the tenants can be
    /// judged as well.
    fn frame(&mut self, file: &File, name: String) -> Scenario {
        if file.title.get_ref().trim().is_empty() {
            self.wrong(file.title.span(), "the title is empty".to_owned());
        }
        let duration = self.span(Some(&file.duration), SHORTEST);
        let warmup = self.span(file.warmup.as_ref(), Nanos::ZERO);
        let repetitions = self.repetitions(file.repetitions.as_ref());
        let (wanted, soft) = (self.modes(file.modes.as_deref()), self.soft(&file.soft));
        Scenario {
            name,
            title: file.title.get_ref().clone(),
            source: file.source.clone(),
            about: file.about.as_ref().map(|about| about.trim().to_owned()),
            duration: duration.unwrap_or(SHORTEST),
            warmup: warmup.unwrap_or(Nanos::ZERO),
            repetitions: repetitions.unwrap_or(1),
            seed: file.seed.unwrap_or(1),
            device: Device::Gpu,
            slowdown: 1.0,
            tenants: Vec::new(),
            wanted,
            soft,
        }
    }

    fn soft(&mut self, table: &SoftTable) -> Soft {
        let slowdown = table.slowdown.as_ref().map_or(SOFT_SLOWDOWN, |slowdown| *slowdown.get_ref());
        if let Some(given) =
            table.slowdown.as_ref().filter(|given| !(1.0..=10_000.0).contains(given.get_ref()))
        {
            self.wrong(given.span(), format!("a slowdown of {slowdown} is not between 1 and 10000"));
        }
        Soft {
            slowdown,
            duration: self.span(table.duration.as_ref(), SHORTEST),
            warmup: self.span(table.warmup.as_ref(), Nanos::ZERO),
            repetitions: self.repetitions(table.repetitions.as_ref()),
            modes: self.modes(table.modes.as_deref()),
        }
    }

    fn span(&mut self, text: Option<&Spanned<String>>, least: Nanos) -> Option<Nanos> {
        let text = text?;
        match text.get_ref().parse::<Nanos>() {
            Ok(span) if (least..=LONGEST).contains(&span) => Some(span),
            Ok(span) => {
                self.wrong(text.span(), format!("{span} is not between {least} and {LONGEST}"));
                None
            }
            Err(error) => {
                self.wrong(text.span(), error.to_string());
                None
            }
        }
    }

    fn repetitions(&mut self, given: Option<&Spanned<u32>>) -> Option<u32> {
        let given = given?;
        if !(1..=MOST_REPETITIONS).contains(given.get_ref()) {
            let message = format!("repetitions is {}, not between 1 and {MOST_REPETITIONS}", given.get_ref());
            self.wrong(given.span(), message);
        }
        Some(*given.get_ref())
    }

    fn modes(&mut self, words: Option<&[Spanned<String>]>) -> Option<Vec<Mode>> {
        let words = words?;
        let mut modes = Vec::new();
        for word in words {
            match word.get_ref().parse::<Mode>() {
                Ok(mode) if modes.contains(&mode) => {
                    self.wrong(word.span(), format!("{mode} is there twice"))
                }
                Ok(mode) => modes.push(mode),
                Err(error) => self.wrong(word.span(), error.to_string()),
            }
        }
        Some(modes)
    }

    fn tenants(&mut self, tables: &[Spanned<TenantTable>]) -> Option<Vec<Tenant>> {
        let before = self.mistakes.len();
        if tables.len() > MOST_TENANTS {
            self.wrong(tables[MOST_TENANTS].span(), format!("there are more than {MOST_TENANTS} tenants"));
        }
        let mut names = HashSet::new();
        let mut tenants = Vec::new();
        for table in tables {
            let table = table.get_ref();
            if !names.insert(table.name.get_ref()) {
                let message = format!("two tenants are called {}; names are unique", table.name.get_ref());
                self.wrong(table.name.span(), message);
            }
            tenants.extend(self.tenant(table));
        }
        (self.mistakes.len() == before).then_some(tenants)
    }

    fn tenant(&mut self, table: &TenantTable) -> Option<Tenant> {
        let name = self.name(&table.name);
        let workload = self.workload(&table.workload);
        let class = table.class.get_ref().parse::<Class>();
        let class = class.map_err(|error| self.wrong(table.class.span(), error.to_string())).ok()?;
        match class {
            Class::BestEffort => {
                if let Some(arrival) = &table.arrival {
                    let message = "a best-effort tenant has no arrival; it is always a closed loop";
                    self.wrong(arrival.span(), message.to_owned());
                }
                if let Some(slo) = &table.slo {
                    self.wrong(
                        slo.span(),
                        "a best-effort tenant has no slo; nothing is promised to it".to_owned(),
                    );
                }
                Some(Tenant {
                    name: name?,
                    class,
                    workload: workload?,
                    arrival: Arrival::closed(),
                    slo: None,
                })
            }
            Class::Latency => {
                let Some(arrival) = &table.arrival else {
                    let message =
                        "a latency tenant has an arrival, such as { process = \"poisson\", rate = 100 }";
                    self.wrong(table.name.span(), message.to_owned());
                    return None;
                };
                self.answers(&table.workload, workload.as_ref());
                let arrival = self.arrival(arrival, false);
                let slo = self.slo(table.slo.as_ref(), workload.as_ref()?);
                Some(Tenant { name: name?, class, workload: workload?, arrival: arrival?, slo: Some(slo?) })
            }
        }
    }

    pub fn name(&mut self, name: &Spanned<String>) -> Option<String> {
        let fits = fits_name(name.get_ref());
        fits.map_err(|message| self.wrong(name.span(), message)).ok().map(|()| name.get_ref().clone())
    }

    pub fn workload(&mut self, keys: &Spanned<workload::Keys>) -> Option<Workload> {
        let workload = Workload::try_from(keys.get_ref().clone());
        workload.map_err(|message| self.wrong(keys.span(), message)).ok()
    }

    /// A latency tenant's workload is something that somebody waits for.
    pub fn answers(&mut self, keys: &Spanned<workload::Keys>, workload: Option<&Workload>) {
        if let Some(Workload::Torch(Torch { task: Task::Training, .. })) = workload {
            let message = "a training is best-effort: nobody waits for one iteration of it";
            self.wrong(keys.span(), message.to_owned());
        }
    }

    pub fn arrival(&mut self, keys: &Spanned<arrival::Keys>, paced: bool) -> Option<Arrival> {
        let origin = self.origin;
        let arrival = keys.get_ref().judge(&|name| origin.open(name), paced);
        arrival.map_err(|message| self.wrong(keys.span(), message)).ok()
    }

    pub fn slo(&mut self, given: Option<&Spanned<Slo>>, workload: &Workload) -> Option<Slo> {
        let Some(given) = given else { return Some(Slo::default()) };
        let fits = given.get_ref().judge(workload);
        fits.map_err(|message| self.wrong(given.span(), message)).ok().map(|()| given.get_ref().clone())
    }

    /// What can be judged only when all is known.
    fn whole(&mut self, file: &File, scenario: &Scenario) {
        let soft = scenario.clone().for_device(Device::Soft);
        self.few_enough(file.duration.span(), scenario);
        self.few_enough(file.soft.duration.as_ref().unwrap_or(&file.duration).span(), &soft);
        self.modes_fit(file.modes.as_deref(), scenario);
        self.modes_fit(file.soft.modes.as_deref(), &soft);
    }

    /// Requests at a rate that is known: how many a load comes to is not, before it is calibrated.
    fn few_enough(&mut self, place: Range<usize>, scenario: &Scenario) {
        for tenant in scenario.tenants.iter().filter(|tenant| !tenant.arrival.needs_capacity()) {
            let requests = tenant.arrival.rate(0.0).unwrap_or(0.0) * scenario.until().as_secs_f64();
            if requests > MOST_REQUESTS {
                let message = format!(
                    "{} is offered {requests:.0} requests in a run, more than a million",
                    tenant.name
                );
                self.wrong(place.clone(), message);
            }
        }
    }

    /// A mode that is asked for by name and means nothing here is a mistake.
    fn modes_fit(&mut self, words: Option<&[Spanned<String>]>, scenario: &Scenario) {
        for word in words.unwrap_or_default() {
            let Ok(mode) = word.get_ref().parse::<Mode>() else { continue };
            if let Err(reason) = scenario.applies(mode) {
                self.wrong(word.span(), format!("mode {mode} does not apply: {reason}"));
            }
        }
    }

    pub fn mistakes(&self) -> usize {
        self.mistakes.len()
    }

    pub fn wrong(&mut self, place: Range<usize>, message: String) {
        let before = &self.text.as_bytes()[..place.start.min(self.text.len())];
        let line = before.iter().filter(|&&byte| byte == b'\n').count() + 1;
        let mistake = Mistake { file: self.origin.file.display().to_string(), line, message };
        if !self.mistakes.contains(&mistake) {
            self.mistakes.push(mistake);
        }
    }
}

/// Names are parts of file names, of process names and of the columns of tables.
pub(super) fn fits_name(name: &str) -> Result<(), String> {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    if name.is_empty() || name.starts_with('-') || !name.bytes().all(plain) {
        return Err(format!("`{name}` is no name; write small letters, digits and hyphens"));
    }
    if name.len() > LONGEST_NAME {
        return Err(format!("`{name}` is longer than {LONGEST_NAME} letters"));
    }
    Ok(())
}
