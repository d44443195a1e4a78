//! What is done for those who come: let in, heard, seated or answered, let go.

use std::collections::BTreeMap;
use std::os::fd::{AsFd, OwnedFd};

use board::Terms;
use board::link::{self, Malformed, Reason, Reply};
use model::Nanos;
use rustix::event::PollFlags;
use rustix::io::Errno;

use super::connection::{Connection, Heard, Stage, TO_READ, TO_SPEAK, TO_THINK};
use super::{Server, Watched};
use crate::Scope;
use crate::access::Applicant;
use crate::peer::Peer;
use crate::registry::{End, Ticket, remembered};
use crate::request::{self, Answer, Ended, Request};

/// As many as are let in before others have a turn.
const AT_ONCE: usize = 64;

/// How long nobody is let in when there are no descriptors left.
const CLOSED_FOR: Nanos = Nanos::from_millis(100);

/// As many tenants are named to somebody who wants to take a daemon's place.
const NAMED: usize = 8;

impl Server {
    pub(super) fn let_in(&mut self, door: Watched, now: Nanos) {
        for _ in 0..AT_ONCE {
            let listener = if door == Watched::Admins { &self.admins } else { &self.tenants };
            let socket = match listener.accept() {
                Ok(socket) => socket,
                Err(Errno::AGAIN) => return,
                Err(Errno::CONNABORTED | Errno::INTR) => continue,
                Err(error) => {
                    self.log.say(&format!("nobody can be let in for a moment: {error}"));
                    self.closed_until = Some(now + CLOSED_FOR);
                    return;
                }
            };
            // Who cannot be told from others, or comes too often, finds the door closed again.
            let Ok(peer) = Peer::of(socket.as_fd()) else { continue };
            if let Err(reason) = self.admit(&peer) {
                self.registry.turned_away += 1;
                self.log.say(&format!("user {} was turned away: {reason}", peer.user));
                continue;
            }
            let (stage, patience) = match door {
                Watched::Admins => (Stage::Admin(Vec::new()), TO_THINK),
                _ => (Stage::Newcomer, TO_SPEAK),
            };
            self.next += 1;
            self.connections.insert(self.next, Connection::new(socket, peer, stage, now + patience));
        }
    }

    /// Whether somebody may come in. Modes of sockets and folders say it first; but a folder may have been opened to others,
    /// and a user's daemon is nobody else's.
    fn admit(&self, peer: &Peer) -> Result<(), &'static str> {
        let trusted = self.is_trusted(peer.user);
        let groups = [self.group, self.admin_group];
        let member = || groups.into_iter().flatten().any(|group| peer.groups.contains(&group));
        if self.scope == Scope::User && !trusted && !member() {
            return Err("this daemon is another user's");
        }
        // Root and the daemon's own user are let in when all others have taken what they may.
        let all = self.limits.all - if trusted { 0 } else { self.limits.reserved };
        let of_user = || self.connections.values().filter(|connection| connection.peer.user == peer.user);
        let new = of_user().filter(|connection| !matches!(connection.stage, Stage::Seated(_))).count();
        let room = self.connections.len() < all
            && new < self.limits.newcomers
            && (trusted || of_user().count() < self.limits.per_user);
        if room { Ok(()) } else { Err("it has too many connections, or there are too many in all") }
    }

    /// Root and whoever the daemon is may do everything.
    fn is_trusted(&self, user: u32) -> bool {
        user == 0 || user == rustix::process::geteuid().as_raw()
    }

    /// Whether a connection is not heard for the moment, because with what it says may come one more file of a user whose files
    /// do not let themselves be closed. Many good ones at once wait for hardly any time.
    pub(super) fn must_wait(&self, connection: &Connection) -> bool {
        matches!(connection.stage, Stage::Newcomer) && self.disposal.is_behind(connection.peer.user)
    }

    /// Lets go of a connection that has had its time.
    pub(super) fn give_up(&mut self, key: u64) {
        let Some(connection) = self.connections.get(&key) else { return };
        if self.must_wait(connection) {
            let user = connection.peer.user;
            self.registry.turned_away += 1;
            self.log.say(&format!(
                "user {user} was turned away: files that it has shown do not let themselves be closed"
            ));
        }
        self.drop_connection(key, End::Gone);
    }

    pub(super) fn serve_connection(&mut self, key: u64, flags: PollFlags, now: Nanos) {
        let Some(connection) = self.connections.get(&key) else { return };
        if self.must_wait(connection) {
            if flags.intersects(PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL) {
                self.drop_connection(key, End::Gone);
            }
            return;
        }
        let Some(connection) = self.connections.get_mut(&key) else { return };
        if flags.contains(PollFlags::OUT)
            && connection.tell_untold()
            && let Stage::Seated(ticket) = connection.stage
        {
            self.registry.ring(ticket);
        }
        let Some(connection) = self.connections.get_mut(&key) else { return };
        let user = connection.peer.user;
        let (heard, file) = match connection.owes() {
            true => (Heard::Nothing, None),
            false if flags.contains(PollFlags::IN) => connection.hear(),
            false if flags == PollFlags::OUT => (Heard::Nothing, None),
            false => (Heard::End, None),
        };
        let (stays, end) = match heard {
            Heard::End => (false, End::Gone),
            Heard::TooLong => (self.misheard(key, "a message that is too long"), End::Expelled),
            Heard::Nothing => (true, End::Gone),
            Heard::Message(message) => (self.understand(key, &message, file.as_ref(), now), End::Expelled),
        };
        file.into_iter().for_each(|file| self.disposal.close(user, file));
        if !stays || !self.settle(key, flags) {
            self.drop_connection(key, end);
        }
    }

    /// Sends what is owed; `false` when there is nothing more to do for this connection.
    fn settle(&mut self, key: u64, flags: PollFlags) -> bool {
        let Some(connection) = self.connections.get_mut(&key) else { return true };
        let gone = flags.intersects(PollFlags::ERR | PollFlags::NVAL);
        if gone || !connection.send() {
            return false;
        }
        connection.owes() || !matches!(connection.stage, Stage::Answered)
    }

    /// Does what a message asks for; `false` when the connection must end.
    fn understand(&mut self, key: u64, message: &[u8], file: Option<&OwnedFd>, now: Nanos) -> bool {
        let Some(connection) = self.connections.get_mut(&key) else { return false };
        match &mut connection.stage {
            Stage::Newcomer if message.first() == Some(&b'{') => {
                self.answer(key, message, now);
                true
            }
            Stage::Newcomer => self.seat(key, message, file, now),
            // There is nothing that a seated tenant could have to say.
            Stage::Seated(_) => self.misheard(key, "something though it has its seat"),
            Stage::Answered => false,
            Stage::Admin(line) => {
                line.extend_from_slice(message);
                self.administer(key, now)
            }
        }
    }

    /// Somebody broke the rules, which ends its connection and is told: always `false`.
    fn misheard(&mut self, key: u64, what: &str) -> bool {
        self.registry.malformed += 1;
        if let Some(Connection { peer, .. }) = self.connections.get(&key) {
            self.log.say(&format!("process {} of user {} said {what}", peer.number(), peer.user));
        }
        false
    }

    /// The report, of boards that were just looked at.
    fn report(&mut self, now: Nanos) -> Answer {
        // Without tenants nobody waits for anybody.
        if !self.registry.is_empty() {
            self.survey();
        }
        let found = self.registry.inspect(now);
        found.iter().for_each(|sentence| self.log.say(sentence));
        Answer::report(self.registry.report(now))
    }

    /// A request in words on the tenants' socket: reading, and announcing oneself.
    fn answer(&mut self, key: u64, message: &[u8], now: Nanos) {
        let answer = match Request::parse(message) {
            Err(reason) => {
                self.misheard(key, "what is no request");
                Answer::error(reason)
            }
            Ok(Request::Status) => self.report(now),
            Ok(Request::Configuration) => Answer::configuration(self.standing.entries()),
            Ok(Request::Attend { tenant, class, weight, priority }) => {
                self.attend(key, &tenant, &class, weight, priority)
            }
            Ok(_) => Answer::error("this changes something, and is asked for on the admin socket"),
        };
        let Some(connection) = self.connections.get_mut(&key) else { return };
        connection.stage = Stage::Answered;
        connection.deadline = Some(now + TO_READ);
        connection.say(&answer.line());
    }

    /// Somebody is about to become a tenant: we stay for as long as it lives, and say what it would be granted.
    fn attend(&mut self, key: u64, tenant: &str, class: &str, weight: u32, priority: u32) -> Answer {
        let (Ok(tenant), Ok(class)) = (u64::from_str_radix(tenant, 16), class.parse()) else {
            return Answer::error(
                "a tenant is a number of 16 hexadecimal digits, and a class one that ebb knows",
            );
        };
        let Some(connection) = self.connections.get_mut(&key) else { return Answer::default() };
        let user = connection.peer.user;
        let outlook = self.registry.outlook(&connection.peer, class, weight, priority);
        let of_user = self.guests.values().filter(|(_, tenant)| tenant.user == user).count();
        let may = if user == 0 || user == rustix::process::geteuid().as_raw() {
            self.limits.all
        } else {
            self.limits.per_user
        };
        // Who is too many is served all the same, and only not waited for.
        if let (true, Some(life)) = (of_user < may, connection.peer.life.take()) {
            self.next += 1;
            self.guests.insert(self.next, (life, self.registry.expect(user, tenant)));
        }
        Answer::outlook(outlook)
    }

    /// A registration, with the file of the GPU beside it: a seat and the board, or a reason.
    fn seat(&mut self, key: u64, message: &[u8], file: Option<&OwnedFd>, now: Nanos) -> bool {
        let Some(user) = self.connections.get(&key).map(|connection| connection.peer.user) else {
            return false;
        };
        let applicant = Applicant { user, trusted: self.is_trusted(user) };
        let shown = file.map(AsFd::as_fd);
        let Some(connection) = self.connections.get_mut(&key) else { return false };
        let result = match link::Request::decode(message) {
            Ok(link::Request::Register(registration)) => self
                .access
                .judge(registration.gpu, shown, applicant, now)
                .and_then(|with| self.registry.register(&connection.peer, &registration, with)),
            Err(Malformed::Version(_)) => Err(Reason::Version),
            Err(_) => {
                self.registry.malformed += 1;
                Err(Reason::NotUnderstood)
            }
        };
        match result {
            Ok((ticket, granted)) => {
                let file = self.registry.file(ticket);
                connection.stage = Stage::Seated(ticket);
                connection.deadline = None;
                link::reply(connection.socket.as_fd(), &Reply::Granted(granted), file).is_ok()
            }
            Err(reason) => {
                self.registry.refused += 1;
                self.log.say(&format!(
                    "process {} of user {} was refused: {reason}",
                    connection.peer.number(),
                    connection.peer.user
                ));
                // It is told; whether that arrives is its business.
                let _ = link::reply(connection.socket.as_fd(), &Reply::Refused(reason), None);
                false
            }
        }
    }

    /// The lines of an admin that are complete by now; `false` when it broke the rules.
    fn administer(&mut self, key: u64, now: Nanos) -> bool {
        loop {
            let Some(connection) = self.connections.get_mut(&key) else { return false };
            let Stage::Admin(buffer) = &mut connection.stage else { return false };
            let Some(end) = buffer.iter().position(|&byte| byte == b'\n') else {
                let fits = buffer.len() <= request::LONGEST;
                return fits || self.misheard(key, "a line without an end");
            };
            let line: Vec<u8> = buffer.drain(..=end).collect();
            let (user, pid) = (connection.peer.user, connection.peer.number());
            let member = self.admin_group.is_some_and(|group| connection.peer.groups.contains(&group));
            let answer = match self.is_trusted(user) || member {
                true => self.command(&line, pid, user, now),
                false => {
                    self.log.say(&format!("process {pid} of user {user} is no admin, and was told so"));
                    Answer::error("only the daemon's own user, root and the admin group may do this")
                }
            };
            let Some(connection) = self.connections.get_mut(&key) else { return false };
            connection.deadline = Some(now + TO_THINK);
            connection.say(&answer.line());
        }
    }

    fn command(&mut self, line: &[u8], pid: u32, user: u32, now: Nanos) -> Answer {
        let request = match Request::parse(line) {
            Ok(request) => request,
            Err(reason) => return Answer::error(reason),
        };
        match request.wish() {
            None => match request {
                Request::Status => self.report(now),
                Request::Configuration => Answer::configuration(self.standing.entries()),
                Request::Reload => {
                    self.log.say(&format!("process {pid} of user {user} has the configuration read again"));
                    self.reload(true).map_or_else(|error| Answer::error(error.to_string()), Answer::reloaded)
                }
                Request::End { if_idle } => self.end(if_idle, pid, user),
                _ => Answer::error("this is asked for on the tenants' socket"),
            },
            Some(Err(reason)) => Answer::error(reason),
            Some(Ok((target, wish))) => match self.registry.change(target, wish) {
                Ok(changed) => {
                    // Before the admin hears of it: who is told that a change holds may count on it.
                    self.tell_terms();
                    let said = String::from_utf8_lossy(line);
                    self.log.say(&format!("process {pid} of user {user} changed: {}", said.trim_end()));
                    Answer::changed(changed)
                }
                Err(reason) => Answer::error(reason),
            },
        }
    }

    /// Ends soon, or says why not.
    fn end(&mut self, if_idle: bool, pid: u32, user: u32) -> Answer {
        let tenants = self.tenants_in_words();
        if if_idle && !tenants.is_empty() {
            return Answer::error(format!("has tenants: {}", tenants.join(", ")));
        }
        if if_idle && !self.on_demand {
            return Answer::error("was started to stay, though it has no tenants");
        }
        self.log.say(&format!("process {pid} of user {user} has this daemon end"));
        self.told_to_end = true;
        Answer::ended(Ended { pid: std::process::id(), tenants })
    }

    /// Who would miss this daemon: tenants, and commands that may become some.
    fn tenants_in_words(&self) -> Vec<String> {
        let mut words = self.registry.names();
        let named = words.len();
        words.truncate(NAMED);
        if named > NAMED {
            words.push(format!("{} more", named - NAMED));
        }
        let others = self.guests.values().filter(|(_, tenant)| !self.registry.is_seated(*tenant)).count();
        match others {
            0 => {}
            1 => words.push("a command under `ebb run` that has not used the GPU yet".to_owned()),
            some => words.push(format!("{some} commands under `ebb run` that have not used the GPU yet")),
        }
        words
    }

    /// Tells tenants of other terms. Nobody is waited for: who has no room is told later, and only the newest.
    pub(super) fn tell_terms(&mut self) {
        let untold: BTreeMap<Ticket, Terms> = self.registry.take_untold().into_iter().collect();
        if untold.is_empty() {
            return;
        }
        for connection in self.connections.values_mut() {
            let Stage::Seated(ticket) = connection.stage else { continue };
            let Some(terms) = untold.get(&ticket) else { continue };
            connection.tell(*terms);
            self.registry.ring(ticket);
        }
    }

    /// Leaves what admins have changed for the next daemon.
    pub(super) fn keep_changes(&mut self, now: Nanos) {
        let Some(changes) = self.registry.take_changes(now) else { return };
        if let Err(error) = remembered::write(self.place.folder(), &changes) {
            self.log.say(&format!("what was changed about tenants is lost with this daemon: {error}"));
        }
    }

    pub(super) fn drop_connection(&mut self, key: u64, end: End) {
        let Some(connection) = self.connections.remove(&key) else { return };
        if let Stage::Seated(ticket) = connection.stage {
            self.registry.leave(ticket, end, board::now());
        }
    }

    pub(super) fn drop_guest(&mut self, key: u64) {
        if let Some((_, tenant)) = self.guests.remove(&key) {
            self.registry.forget(tenant, board::now());
        }
    }
}
